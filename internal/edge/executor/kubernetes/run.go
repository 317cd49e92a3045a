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

// run is one subjob, from its Start (or from when it was found) until it is settled.
type run struct {
	e   *Executor
	rec record
	// work is what is to be started, asked since when; nil where it was found.
	work   *protocol.Work
	asked  quantity.Instant
	device cluster.Device
	// wake has something once there is something new to look at.
	wake chan struct{}

	mu   sync.Mutex
	seen view
	// started is what was told of its begin, 0 if nothing was.
	started quantity.Instant

	// The rest is the loop's own. tried: there may be a Pod, made is it as it was created, and whole that nothing more is to be created. ordered is what the
	// Pod was told, deleted that it was asked to end.
	tried, whole, deleted bool
	// unproven: it was found before its start, and whether it can ever start is not known yet. proven is when that was known last.
	unproven bool
	proven   quantity.Instant
	made     *corev1.Pod
	ordered  pod.Order
	// blame is why it was given up, where that is no doing of its own.
	blame *job.Result
	// said is how it ended, once that is known: not before it is in the store is it told.
	said *pod.Said
	word pod.Word
	// storing is since when it has been saying that what it has left is being stored, 0 if it does not.
	storing quantity.Instant
	// vanished is since when its Pod is away for good though nobody has said that it is over, 0 if it is not.
	vanished quantity.Instant
	// peek is when it is looked next at how far it is, every after how long again, and looked when it was last.
	peek, looked quantity.Instant
	every        time.Duration
	// parting is when its home is told next that others' containers in its Pod are waited for.
	parting quantity.Instant
	// denied is since when the cluster refuses it for what somebody may be mending, 0 if it does not.
	denied quantity.Instant
}

// view is what is known of a subjob from outside.
type view struct {
	want wanted
	// pod is its Pod as it was seen last. gone: it is no more; unsure: and what it was at last was not seen.
	pod          *corev1.Pod
	gone, unsure bool
	// result is what was told, nil while nothing was.
	result *job.Result
}

func newRun(e *Executor, rec record) *run {
	r := &run{e: e, rec: rec, wake: make(chan struct{}, 1), ordered: pod.Order{End: rec.End}, every: firstPeek}
	r.seen.want.order = r.ordered
	return r
}

// change changes what is wanted.
func (r *run) change(do func(*wanted)) {
	r.mu.Lock()
	do(&r.seen.want)
	r.mu.Unlock()
	r.poke()
}

// see takes down what the watch says of the Pod.
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

// Pauses between two tries of what has failed.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 10 * time.Second
	// forever is a wait until something is new.
	forever = time.Duration(math.MaxInt64)
)

// loop brings together what is wanted and what is, until the subjob is settled.
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
			if err != nil { // what failed has its pause, whatever is new
				<-timer.C
			}
		case <-r.e.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// step makes the next call, and says when to look again unless something is new before; a negative time: never.
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
		if err := r.create(&v, now); err != nil { // it has its pause
			return forever, err
		}
		return 0, nil
	}
	if err := r.obey(&v, now); err != nil {
		return forever, err
	}
	if r.unproven && !r.deleted && (v.pod == nil || !running(v.pod)) || r.pends(&v) && now >= r.proven.Add(checkKeys) { // after what was ordered: what can't be found out holds nothing up
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

// pends says whether a machine has the Pod, and it has not begun: it may wait for a key that somebody has deleted.
func (r *run) pends(v *view) bool {
	return v.pod != nil && v.pod.Spec.NodeName != "" && !running(v.pod) && !r.deleted && !v.gone
}

// over is how the subjob ended, nil while it may run.
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
		return r.end(job.Lost, "nothing was heard of it until well after its lease's end: its machine, or the way to it, is gone", now)
	}
	return nil
}

// until is until when something of the subjob may run though nothing is heard of it. A lease without an end says nothing of that: there counts that its Pod was taken
// away for good, by whoever says so (a person, or the cluster that has removed the machine), and what it then had as grace.
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

// never is how a subjob ended that no machine had.
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

// end is an end without a process.
func (r *run) end(o job.Outcome, why string, now quantity.Instant) *pod.Said {
	return &pod.Said{Result: job.Result{Outcome: o, ExitCode: -1, Progress: r.rec.Range.From, End: now, Detail: why}}
}

// giveUp has the Pod deleted, and says why the subjob did not begin.
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
		return // nobody here has asked for it
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

// repeat says again what was said, to a Start that came again.
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

// begun tells when it began, once.
func (r *run) begun(at quantity.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started == 0 && at != 0 {
		r.started = at
		r.answer(r.beginning(at))
	}
}

// report tells how far it is.
func (r *run) report(storing bool) {
	r.answer(protocol.Message{Kind: protocol.Report, Body: &protocol.Observation{Slice: r.rec.Slice, Progress: max(r.word.Progress, r.rec.Range.From), At: r.e.now(), Storing: storing}})
}

// tell tells how it ended.
func (r *run) tell(res *job.Result) {
	r.begun(res.Start)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.result = res
	r.answer(protocol.Message{Kind: protocol.Exited, Body: r.conclusion(res)})
}
