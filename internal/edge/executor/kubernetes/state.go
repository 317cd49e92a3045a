//go:build kubernetes

package kubernetes

import (
	"context"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// Executor is the kubernetes kind of executor.Executor. Make it with Open.
type Executor struct {
	o   Options
	box *executor.Outbox
	// ctx ends when the executor is closed; loops are the goroutines that Close waits for.
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup

	api     api
	keys    keys
	devices devices
	shelf   shelf

	// pods are all of ours as last seen; watching starts the watch, once.
	pods     *board
	watching sync.Once
	tending  sync.Once
	warned   sync.Once

	mu sync.Mutex
	// runs are the subjobs that are not settled; past is how the settled ones ended.
	runs map[job.Token]*run
	past executor.Settled[passed]
	// strangers are subjobs of another journal, by Pod.
	strangers map[string]*run
	// swept are Pods without a subjob that are being removed; looked: Find has registered all subjobs, so that such a Pod can be
	// recognized.
	swept  map[types.UID]bool
	looked bool
	// purging are the purges in progress.
	purging map[purging]bool
	closed  bool
}

// purging identifies a purge.
type purging struct {
	job    job.ID
	before job.Generation
}

// passed is a settled subjob.
type passed struct {
	rec    *record
	result *job.Result
}

// forget moves a settled subjob from runs to past.
func (e *Executor) forget(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.stranger() {
		delete(e.strangers, r.key())
		return
	}
	delete(e.runs, r.rec.Token)
	e.past.Add(r.rec.Token, passed{r.rec, r.told.State().Result})
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
	if r := e.runs[t]; r != nil && r.key() == keyOf(p) {
		return r
	}
	return nil
}

// unsettled reports whether a subjob that is not settled fulfils a condition.
func (e *Executor) unsettled(is func(*run) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if is(r) {
			return true
		}
	}
	return false
}

// needed reports whether an unsettled subjob, other than one, may still read a checkpoint, or left it.
func (e *Executor) needed(t job.Token, other *run) bool {
	return e.unsettled(func(r *run) bool { return r != other && (r.rec.Token == t || r.rec.Resume == t) })
}

// run is one subjob from its Start, or from when it was found, until it is settled.
type run struct {
	e   *Executor
	rec *record
	// wake has an element when something has changed.
	wake chan struct{}
	// told is what its node was told.
	told executor.Answers

	mu   sync.Mutex
	seen view

	// The rest belongs to the loop. plan is what its Pod is made by. whole: create has nothing left to do.
	plan  blueprint
	pod   object
	whole bool
	// unproven: found before its begin, and whether its claim and keys exist is not known. proven is when that was last known.
	unproven bool
	proven   quantity.Instant
	// blame is the result of a subjob that was given up before its begin.
	blame *job.Result
	// said is how it ended, once known; it is reported only after what it left is stored.
	said  *pod.Said
	heard hearing
	// vanished is since when the Pod of a lease without an end has been removed, or failed by the garbage collector, without a kubelet's
	// word; 0: it has not.
	vanished quantity.Instant
	// parting is when to tell its home next that the Pod's other containers (sidecars) are waited for.
	parting quantity.Instant
	// denied is since when the cluster has refused it for something that an administrator may fix; 0: it does not.
	denied quantity.Instant
}

func newRun(e *Executor, of record) *run {
	rec, first := &of, pod.Order{End: of.End}
	r := &run{e: e, rec: rec, wake: make(chan struct{}, 1), heard: hearing{every: firstPeek},
		told: executor.Answers{Origin: rec.Origin, Token: rec.Token, Job: rec.Job, Slice: rec.Slice, Range: rec.Range},
		plan: blueprint{o: &e.o, rec: rec},
		pod:  object{api: &e.api, ns: e.o.namespace(rec), name: e.o.podName(rec), ordered: first}}
	if !r.stranger() { // the node of another journal does not exist here
		r.told.Post = e.box.Post
	}
	r.seen.want.order = first
	return r
}

// newFound makes the subjob of a Pod that was found.
func newFound(e *Executor, of record, p *corev1.Pod) *run {
	r := newRun(e, of)
	r.pod.tried, r.whole, r.pod.made = true, true, p
	r.seen.pod, r.pod.ordered = p, orderOf(p, r.rec)
	r.seen.want.order = r.pod.ordered
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

// report reports progress.
func (r *run) report(storing bool) {
	r.told.Send(protocol.Report, &protocol.Observation{Slice: r.rec.Slice, Progress: max(r.heard.word.Progress, r.rec.Range.From),
		At: r.e.o.now(), Storing: storing})
}

// stranger reports whether a subjob is of another journal.
func (r *run) stranger() bool { return r.rec.Journal != r.e.o.Journal }

// key is its Pod's.
func (r *run) key() string { return r.pod.ns + "/" + r.pod.name }

// hearing is what was heard of a subjob by its own word, and how often it is read. Invariant: the interval between reads without news
// doubles, up to seldom, and is short again after news; and a word that it stores counts no longer than storing may take.
type hearing struct {
	word pod.Word
	// storing is since when its Pod has said that it is storing; 0: it does not.
	storing quantity.Instant
	// next is when to read its word next, every the interval after that, last when it was last read.
	next, last quantity.Instant
	every      time.Duration
}

// hear takes over a word that was read, if there was one, and reports whether it is news. soon is the interval after news.
func (h *hearing) hear(w pod.Word, ok bool, soon time.Duration) bool {
	h.every = min(2*h.every, max(soon, seldom))
	if !ok || w == h.word && !w.Storing {
		return false
	}
	h.word, h.every = w, soon
	return true
}

// stores reports whether a subjob is left alone since it is storing what it left: orders, a stop and its end wait, unless told Now. It is
// the subjob's own word, which its program could fake, so it holds no longer than storing may take.
func (h *hearing) stores(now quantity.Instant, most time.Duration) bool {
	if !h.word.Storing {
		h.storing = 0
		return false
	}
	if h.storing == 0 {
		h.storing = now
	}
	return now < h.storing.Add(most)
}

const (
	// firstPeek is the first interval between reads of a subjob's word. It is short since the word says when the subjob began.
	firstPeek = 50 * time.Millisecond
	// seldom is the longest interval, after reads without news.
	seldom = 30 * time.Second
	// wordless is how long a running container may be without a word before it counts as begun: what has not begun can't be stopped in
	// order.
	wordless = 10 * time.Second
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
