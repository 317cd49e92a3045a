//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/store"
)

// record is what a restarted operator must know of a subjob, kept as an annotation of its Pod. It holds no secret.
type record struct {
	Token job.Token
	// Journal that made the token.
	Journal    string `json:",omitempty"`
	Job        job.ID
	Generation job.Generation
	Slice      job.SliceID
	Range      job.Range
	Start, End quantity.Instant
	Grace      time.Duration
	// Resume is the subjob whose checkpoint it starts from; zero for none.
	Resume job.Token `json:",omitzero"`
	executor.Origin
}

// recordOf reads a Pod's record and verifies its seal, since its witness counts against the journal, and a forged one could pass a Pod's
// end off as a subjob's. Errors are of kind Corrupt. A record of another journal is sealed with that one's key; it is returned, and
// nothing in it is trusted.
func (e *Executor) recordOf(p *corev1.Pod) (rec record, err error) {
	if rec, err = recordOf(p); err != nil || rec.Journal != e.o.Journal {
		return rec, err
	}
	if name := cluster.PodName(e.o.Operator, rec.Journal, rec.Token); p.Name != name || p.Namespace != e.namespace(&rec) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s has the record of Pod %s/%s", p.Namespace, p.Name, e.namespace(&rec), name)
	}
	if !cluster.Sealed(e.o.Key, e.o.Made, p.CreationTimestamp.Time, p.Namespace, p.Name, p.Annotations) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s: annotation %s is not what this operator has written: somebody else has "+
			"made or changed it", p.Namespace, p.Name, cluster.AnnotationRun)
	}
	return rec, nil
}

func recordOf(p *corev1.Pod) (rec record, err error) {
	if err = json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &rec); err == nil &&
		(rec.Token.String() != p.Labels[cluster.LabelToken] || rec.Journal != p.Labels[cluster.LabelJournal]) {
		err = errkind.Errorf(errkind.Corrupt, "it is of subjob %v of journal %q", rec.Token, rec.Journal)
	}
	if err != nil {
		return rec, errkind.Errorf(errkind.Corrupt, "annotation %s of Pod %s/%s: %w", cluster.AnnotationRun, p.Namespace, p.Name, err)
	}
	return rec, nil
}

// orderOf is the order that a Pod has; without one its lease's end alone counts.
func orderOf(p *corev1.Pod, rec *record) pod.Order {
	o := pod.Order{End: rec.End}
	if text := p.Annotations[cluster.AnnotationNotice]; text != "" {
		_ = json.Unmarshal([]byte(text), &o) // an unreadable one is written anew
	}
	return o
}

// newRecord makes the record of a subjob to start.
func newRecord(m *protocol.Message, witness journal.Position, of string) record {
	w := m.Body.(*protocol.Work)
	return record{
		Token: m.Token, Journal: of, Job: m.Job, Generation: m.Generation.Number(), Slice: w.Slice, Range: w.Range, Start: w.Start,
		End:   w.End,
		Grace: w.Spec.Launch.Grace, Resume: w.Plan.Resume, Origin: executor.Origin{Witness: witness, Node: m.From, Executor: m.To},
	}
}

// same reports whether two records are of one subjob.
func (rec *record) same(other *record) bool {
	return rec.Job == other.Job && rec.Generation == other.Generation && rec.Range == other.Range && rec.Slice == other.Slice
}

// Executor is the kubernetes kind of executor.Executor. Make it with Open.
type Executor struct {
	o      Options
	lender store.Lender
	box    *executor.Outbox
	// ctx ends when the executor is closed; loops are the goroutines that Close waits for.
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
	// turns and shelves are semaphores for calls to the API server and to the store.
	turns, shelves chan struct{}
	// pods are all of ours as last seen; watching starts the watch, once.
	pods     *board
	watching sync.Once
	tending  sync.Once
	warned   sync.Once
	calls    counts

	mu sync.Mutex
	// runs are the subjobs that are not settled; past is how the settled ones ended, in the order of old.
	runs map[job.Token]*run
	past map[job.Token]*passed
	old  []job.Token
	// strangers are subjobs of another journal, by Pod.
	strangers map[string]*run
	// swept are Pods without a subjob that are being removed; looked: Find has registered all subjobs, so that such a Pod can be
	// recognized.
	swept  map[types.UID]bool
	looked bool
	// devices caches ResourceSlices, by driver and machine.
	devices map[string]known
	// keys are this process's sealing keys, by namespace.
	keys map[string]*keyring
	// purging are the purges in progress.
	purging map[purging]bool
	closed  bool

	// naming excludes naming a work directory while unneeded names are pruned.
	naming sync.Mutex
}

func (e *Executor) now() quantity.Instant { return quantity.At(e.o.Clock()) }

// purging identifies a purge.
type purging struct {
	job    job.ID
	before job.Generation
}

// passed is a settled subjob.
type passed struct {
	rec    record
	result *job.Result
}

// forget moves a settled subjob from runs to past.
func (e *Executor) forget(r *run, res *job.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.stranger() {
		delete(e.strangers, r.key())
		return
	}
	delete(e.runs, r.rec.Token)
	if e.past[r.rec.Token] == nil {
		e.old = append(e.old, r.rec.Token)
	}
	e.past[r.rec.Token] = &passed{r.rec, res}
	for len(e.old) > e.o.KeepSettled {
		delete(e.past, e.old[0])
		e.old = e.old[1:]
	}
}

// ours reports whether a Pod bears this operator's label.
func (e *Executor) ours(p *corev1.Pod) bool { return p.Labels[cluster.LabelOperator] == e.o.Operator }

// of finds the subjob of a Pod; nil if there is none.
func (e *Executor) of(p *corev1.Pod) *run {
	t, err := job.ParseToken(p.Labels[cluster.LabelToken])
	if err != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.strangers[keyOf(p)]; r != nil {
		return r
	}
	if r := e.runs[t]; r != nil && r.name() == p.Name && e.namespace(&r.rec) == p.Namespace {
		return r
	}
	return nil
}

// needed reports whether an unsettled subjob, other than one, may still read a checkpoint, or left it.
func (e *Executor) needed(t job.Token, other *run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r != other && (r.rec.Token == t || r.rec.Resume == t) {
			return true
		}
	}
	return false
}

// wanted is the desired state of a subjob.
type wanted struct {
	order pod.Order
	// settle is the node's Settle: what to do with what the subjob left; nil until it comes.
	settle *protocol.Message
}

// shift moves the lease's end; a Pod's can only be made earlier.
func (w *wanted) shift(s *protocol.Shift) {
	if s.End < w.order.End {
		w.order.End, w.order.Cut, w.order.Why = s.End, true, s.Text
	}
}

func (w *wanted) halt(h *protocol.Halt) {
	if !w.order.Stop {
		w.order.Stop, w.order.Why = true, h.Text
	}
	w.order.Now = w.order.Now || h.Now
}

// counts is a set of counters by name.
type counts struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int64{}
	}
	c.n[name]++
}

func (c *counts) all() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// run is one subjob from its Start, or from when it was found, until it is settled.
type run struct {
	e   *Executor
	rec record
	// work is what to start, and asked when that was wanted; nil for a subjob that was found.
	work   *protocol.Work
	asked  quantity.Instant
	device cluster.Device
	// wake has an element when something has changed.
	wake chan struct{}

	mu   sync.Mutex
	seen view
	// started is the begin that was reported; 0 before that.
	started quantity.Instant

	// The rest belongs to the loop. tried: a creation was sent, so there may be a Pod; made is the Pod as created; whole: create has
	// nothing left to do. ordered is the order that the Pod was last given; deleted: its deletion was asked for.
	tried, whole, deleted bool
	// unproven: found before its begin, and whether its claim and keys exist is not known. proven is when that was last known.
	unproven bool
	proven   quantity.Instant
	made     *corev1.Pod
	ordered  pod.Order
	// blame is the result of a subjob that was given up before its begin.
	blame *job.Result
	// said is how it ended, once known; it is reported only after what it left is stored.
	said *pod.Said
	word pod.Word
	// storing is since when its Pod has said that it is storing; 0: it does not.
	storing quantity.Instant
	// vanished is since when the Pod of a lease without an end has been removed, or failed by the garbage collector, without a kubelet's
	// word; 0: it has not.
	vanished quantity.Instant
	// peek is when to read its progress next, every the interval after that, looked when it was last read.
	peek, looked quantity.Instant
	every        time.Duration
	// parting is when to tell its home next that the Pod's other containers (sidecars) are waited for.
	parting quantity.Instant
	// denied is since when the cluster has refused it for something that an administrator may fix; 0: it does not.
	denied quantity.Instant
}

// view is what others tell the loop.
type view struct {
	want wanted
	// pod is the Pod as last seen. gone: it was removed; unsure: its last state was not seen.
	pod          *corev1.Pod
	gone, unsure bool
	// result is the result that was reported; nil before that.
	result *job.Result
}

func newRun(e *Executor, rec record) *run {
	r := &run{e: e, rec: rec, wake: make(chan struct{}, 1), ordered: pod.Order{End: rec.End}, every: firstPeek}
	r.seen.want.order = r.ordered
	return r
}

// change updates the desired state.
func (r *run) change(do func(*wanted)) {
	r.mu.Lock()
	do(&r.seen.want)
	r.mu.Unlock()
	r.poke()
}

// see records the Pod as the watch shows it.
func (r *run) see(p *corev1.Pod, gone, unsure bool) {
	r.mu.Lock()
	r.seen.pod, r.seen.gone, r.seen.unsure = p, gone, unsure
	r.mu.Unlock()
	r.poke()
}

func (r *run) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *run) view() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func (r *run) answer(m protocol.Message) {
	if r.stranger() {
		return // of another journal: its node does not exist here
	}
	m.From, m.To, m.Token, m.Job = r.rec.Executor, r.rec.Node, r.rec.Token, r.rec.Job
	r.e.box.Post(m)
}

func (r *run) conclusion(res *job.Result) *protocol.Conclusion {
	return &protocol.Conclusion{Slice: r.rec.Slice, Range: r.rec.Range, Result: res}
}

func (r *run) beginning(at quantity.Instant) protocol.Message {
	return protocol.Message{Kind: protocol.Started, Body: &protocol.Beginning{Slice: r.rec.Slice, Range: r.rec.Range, At: at}}
}

// repeat sends the earlier answers again, for a repeated Start.
func (r *run) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.seen.result != nil:
		r.answer(protocol.Message{Kind: protocol.Exited, Body: r.conclusion(r.seen.result)})
	case r.started != 0:
		r.answer(r.beginning(r.started))
	}
}

// begun reports the begin, once.
func (r *run) begun(at quantity.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started == 0 && at != 0 {
		r.started = at
		r.answer(r.beginning(at))
	}
}

// report reports progress.
func (r *run) report(storing bool) {
	r.answer(protocol.Message{Kind: protocol.Report, Body: &protocol.Observation{Slice: r.rec.Slice,
		Progress: max(r.word.Progress, r.rec.Range.From), At: r.e.now(), Storing: storing}})
}

// tell reports the end.
func (r *run) tell(res *job.Result) {
	r.begun(res.Start)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.result = res
	r.answer(protocol.Message{Kind: protocol.Exited, Body: r.conclusion(res)})
}

// keyring holds the keys that seal run files in one namespace. The Secret there also has keys of earlier processes, for Pods that have not
// begun.
type keyring struct {
	mu sync.Mutex
	// mine are the keys that this process made: it seals with no other, since others may be able to write the Secret.
	mine    map[string]pod.Key
	checked time.Time
}

// known are the cached devices of one machine and driver.
type known struct {
	at      time.Time
	devices []described
}

// described is a device with its pool.
type described struct {
	pool string
	resourcev1.Device
}

// board is all our Pods as last seen by the watch. It implements cache.ReflectorStore.
type board struct {
	tell   func(p *corev1.Pod, gone, unsure bool)
	listed chan struct{}

	mu    sync.Mutex
	whole bool
	pods  map[string]*corev1.Pod
}

func keyOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// namespace of a job's Pods.
func (e *Executor) namespace(rec *record) string {
	if ns, _, ok := cluster.SplitJob(rec.Job); ok {
		return ns
	}
	return e.o.Namespace
}

// name of a subjob's Pod and claim.
func (r *run) name() string { return cluster.PodName(r.e.o.Operator, r.rec.Journal, r.rec.Token) }

// stranger reports whether a subjob is of another journal.
func (r *run) stranger() bool { return r.rec.Journal != r.e.o.Journal }

// key is its Pod's.
func (r *run) key() string { return r.e.namespace(&r.rec) + "/" + r.name() }

const (
	// firstPeek is the first interval between reads of a subjob's word. It is short since the word says when the subjob began.
	firstPeek = 50 * time.Millisecond
	// seldom is the longest interval, after reads without news.
	seldom = 30 * time.Second
	// wordless is how long a running container may be without a word before it counts as begun: what has not begun can't be stopped in
	// order.
	wordless = 10 * time.Second
	// mostWord bounds a word, in bytes.
	mostWord = 4 << 10
	// peeking bounds one read.
	peeking = 10 * time.Second
	// spread is the time between the first reads of two found subjobs; all come within seldom.
	spread = time.Millisecond
)

// Pauses between tries of a call that failed.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 10 * time.Second
	// forever waits until something has changed.
	forever = time.Duration(math.MaxInt64)
)
