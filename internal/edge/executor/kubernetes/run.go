//go:build kubernetes

package kubernetes

import (
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

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

// Pauses between tries of a call that failed.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 10 * time.Second
	// forever waits until something has changed.
	forever = time.Duration(math.MaxInt64)
)

// loop calls step until the subjob is settled.
func (r *run) loop() {
	pause := firstPause
	for {
		wait, err := r.step()
		if r.e.ctx.Err() != nil {
			return
		}
		if err != nil {
			wait, pause = min(wait, pause), min(2*pause, lastPause)
			r.e.o.Log.Warn("a call for a subjob failed; trying again", "subjob", r.rec.Token.String(), "err", err)
		} else {
			pause = firstPause
		}
		if wait < 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.wake:
			if err != nil { // the pause after a failure is not cut short by news
				<-timer.C
			}
		case <-r.e.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// step makes the next call towards the desired state, and says how long to wait unless something changes; negative: the subjob is settled.
func (r *run) step() (time.Duration, error) {
	v, now := r.view(), r.e.now()
	if v.result != nil {
		if v.want.settle == nil {
			return forever, nil
		}
		if err := r.clear(&v); err != nil {
			return forever, err
		}
		return -1, nil
	}
	if r.said == nil {
		r.said = r.over(&v, now)
	}
	switch {
	case r.said != nil:
		return r.keep(&v)
	case !r.whole:
		if err := r.create(&v, now); err != nil { // retried after a pause
			return forever, err
		}
		return 0, nil
	}
	if err := r.obey(&v, now); err != nil {
		return forever, err
	}
	// after obey: what can't be found out delays no order
	if r.unproven && !r.deleted && (v.pod == nil || !running(v.pod)) || r.pends(&v) && now >= r.proven.Add(checkKeys) {
		if err := r.prove(r.e.ctx); err != nil {
			return forever, err
		}
		r.unproven, r.proven = false, now
		if r.blame != nil {
			return 0, nil
		}
	}
	return r.listen(&v, now), nil
}

// pends reports whether the Pod is bound and has not begun: it may be waiting for a key that somebody deleted.
func (r *run) pends(v *view) bool {
	return v.pod != nil && v.pod.Spec.NodeName != "" && !running(v.pod) && !r.deleted && !v.gone
}

// over is how the subjob ended; nil while it may run.
func (r *run) over(v *view, now quantity.Instant) *pod.Said {
	p := v.pod
	switch {
	case p != nil && spoken(p):
		said := ended(p, &r.rec)
		if res := &said.Result; res.Start == 0 && r.blame != nil {
			res.Outcome, res.Detail = r.blame.Outcome, r.blame.Detail
		} else if res.Start == 0 && v.want.order.Stop {
			res.Outcome = job.Stopped
		}
		return &said
	case p != nil && !v.unsure && (neverBound(p) || v.gone && p.Spec.NodeName == ""):
		return r.never(v, now)
	case r.tried && now >= r.until(v, now):
		return r.lost(now)
	}
	return nil
}

// lost is the end of a subjob whose Pod was not heard of until well after its lease. That is its machine's failure. If it had started, it
// is charged from then until the end of its lease.
func (r *run) lost(now quantity.Instant) *pod.Said {
	s := r.end(job.NodeFailed, "nothing was heard of it until well after its lease's end: its machine, or the way to it, is gone", now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if res := &s.Result; r.started != 0 {
		res.Start, res.End = r.started, max(r.started, min(now, r.rec.End))
	}
	return s
}

// until is until when the subjob may run unheard of. For a lease without an end that is Never while its Pod exists; after the Pod was
// removed, or failed by the garbage collector since its machine is gone, grace, Linger and Skew count.
func (r *run) until(v *view, now quantity.Instant) quantity.Instant {
	last := latest(v.pod, r.rec.End, &r.e.o)
	if last != quantity.Never || !v.gone && (v.pod == nil || !collected(v.pod)) {
		return last
	}
	if r.vanished == 0 {
		r.vanished = now
	}
	return latest(nil, r.vanished.Add(r.rec.Grace), &r.e.o)
}

// never is the end of a subjob whose Pod was never bound.
func (r *run) never(v *view, now quantity.Instant) *pod.Said {
	switch {
	case r.blame != nil:
		return r.end(r.blame.Outcome, r.blame.Detail, now)
	case v.want.order.Stop:
		return r.end(job.Stopped, "stopped before the start: "+v.want.order.Why, now)
	case now < v.want.order.End:
		return r.end(job.NodeFailed, "somebody has deleted its Pod before a machine had it", now)
	case v.pod == nil:
		return r.end(job.NodeFailed, "the lease was over before the start", now)
	}
	return r.end(job.NodeFailed, "no machine had it before its lease was over: "+unscheduled(v.pod), now)
}

// end makes an end without a process.
func (r *run) end(o job.Outcome, why string, now quantity.Instant) *pod.Said {
	return &pod.Said{Result: job.Result{Outcome: o, ExitCode: -1, Progress: r.rec.Range.From, End: now, Detail: why}}
}

// giveUp records why the subjob can't begin, where no reason stands yet, and that nothing more is to be created; obey then deletes the Pod.
func (r *run) giveUp(kind errkind.Kind, why string) {
	outcome := job.StartFailed
	if kind == errkind.Exhausted || kind == errkind.NotFound {
		outcome = job.NodeFailed
	}
	if r.blame == nil {
		r.blame = &job.Result{Outcome: outcome, Detail: why}
	}
	r.whole = true
}

// Answers.

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
