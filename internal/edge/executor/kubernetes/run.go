//go:build kubernetes

package kubernetes

import (
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
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
	v, now := r.view(), r.e.o.now()
	if r.told.State().Result != nil {
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
		return r.storeAndReport(&v)
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
	if r.unproven && !r.pod.deleted && (v.pod == nil || !running(v.pod)) || r.pends(&v) && now >= r.proven.Add(checkKeys) {
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
	return v.pod != nil && v.pod.Spec.NodeName != "" && !running(v.pod) && !r.pod.deleted && !v.gone
}

// over is how the subjob ended; nil while it may run.
func (r *run) over(v *view, now quantity.Instant) *pod.Said {
	p := v.pod
	switch {
	case p != nil && spoken(p):
		said := ended(p, r.rec)
		if res := &said.Result; res.Start == 0 && r.blame != nil {
			res.Outcome, res.Detail = r.blame.Outcome, r.blame.Detail
		} else if res.Start == 0 && v.want.order.Stop {
			res.Outcome = job.Stopped
		}
		return &said
	case p != nil && !v.unsure && (neverBound(p) || v.gone && p.Spec.NodeName == ""):
		return r.never(v, now)
	case r.pod.tried && now >= r.until(v, now):
		return r.lost(now)
	}
	return nil
}

// lost is the end of a subjob whose Pod was not heard of until well after its lease. That is its machine's failure. If it had started, it
// is charged from then until the end of its lease.
func (r *run) lost(now quantity.Instant) *pod.Said {
	s := r.end(job.NodeFailed, "nothing was heard of it until well after its lease's end: its machine, or the way to it, is gone", now)
	if began := r.told.State().Began; began != 0 {
		s.Result.Start, s.Result.End = began, max(began, min(now, r.rec.End))
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

// listen reads the subjob's word if that is due, and says how long to wait before the next step.
func (r *run) listen(v *view, now quantity.Instant) time.Duration {
	next := r.until(v, now)
	for _, at := range []quantity.Instant{v.want.order.End, v.want.order.End.Add(r.e.o.Linger)} {
		if at > now {
			next = min(next, at)
		}
	}
	switch over := now >= v.want.order.End; {
	case v.pod == nil:
	case running(v.pod):
		if now >= r.heard.next || over && r.heard.last < v.want.order.End { // after its end it is read whatever the interval has grown to
			r.heard.last = now
			r.look(over)
			if over || r.heard.word.Storing || v.want.order != (pod.Order{End: r.rec.End}) { // its home waits to be told
				r.heard.every = min(r.heard.every, r.e.o.Report)
			}
			r.heard.next = r.e.o.now().Add(r.heard.every)
			if at := quantity.At(ours(v.pod).State.Running.StartedAt.Time); now >= at.Add(wordless) {
				r.told.Began(at)
			}
		}
		next = min(next, r.heard.next)
	case parted(v.pod): // its end is known, and is reported once the kubelet says that the Pod is over
		if now >= r.parting {
			r.report(true)
			r.parting = now.Add(r.e.o.Report)
		}
		next = min(next, r.parting)
	default: // waits for an image, or a key
		if r.pends(v) {
			next = min(next, r.proven.Add(checkKeys))
		}
		if at := quantity.At(v.pod.CreationTimestamp.Time).Add(pulling + time.Second); at > now {
			next = min(next, at)
		}
	}
	if r.heard.storing != 0 {
		if at := r.heard.storing.Add(r.e.o.Linger); at > now {
			next = min(next, at)
		}
	}
	if next == quantity.Never {
		return forever
	}
	return max(0, next.Sub(r.e.o.now()))
}

// look reads the subjob's word and reports it if it is news. A store that can't be reached costs reports alone. A subjob past its end
// whose Pod still runs must be storing: its home has to hear that whether or not the store answers.
func (r *run) look(over bool) {
	quiet := func() {}
	if over || r.heard.word.Storing { // and meanwhile: a store that hangs may take longer than its home waits
		quiet = executor.Every(r.e.o.Report, func() { r.report(true) })
	}
	w, ok := r.e.shelf.peek(r.e.ctx, r.rec)
	quiet()
	if !r.heard.hear(w, ok, r.e.o.Report) {
		if over || r.heard.word.Storing {
			r.report(true)
		}
		return
	}
	r.told.Began(w.Started)
	r.report(w.Storing)
}

// pulling is how long after a Pod's creation causes that may pass are tolerated, such as a failed image pull.
const pulling = 2 * time.Minute

// obey brings the Pod to its desired state: its orders, its end, its removal.
func (r *run) obey(v *view, now quantity.Instant) error {
	p, o := v.pod, v.want.order
	began := r.heard.word.Started != 0 || p != nil && running(p)
	alone := p != nil && parted(p)
	if p != nil && !began && !alone && r.blame == nil {
		if why, kind := hopeless(p, now.Sub(quantity.At(p.CreationTimestamp.Time)) > pulling); why != "" {
			r.giveUp(kind, why)
		}
	}
	over := now >= o.End && !began || o.End != quantity.Never && now >= o.End.Add(r.e.o.Linger)
	stores := r.heard.stores(now, r.e.o.Linger)
	over = (over || o.Stop || r.blame != nil) && (!stores || o.Now) || alone // alone: only sidecars run, and nothing is left to store
	if o != r.pod.ordered && !r.pod.deleted && !alone && (!stores || o.Now) && p != nil && p.Spec.NodeName != "" {
		if err := r.pod.order(v, now); err != nil {
			return err
		}
	}
	if p != nil && p.DeletionTimestamp != nil {
		r.pod.deleted = true
	}
	if !over || r.pod.deleted || v.gone {
		return nil
	}
	grace := r.rec.Grace + r.e.o.Linger
	if o.Now || alone {
		grace = r.e.o.Linger
	}
	err := r.pod.remove(v, seconds(grace))
	r.pod.deleted = err == nil
	return err
}
