package process

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

const (
	// glance is how often a run directory is looked at.
	glance = 100 * time.Millisecond
	// overdue is how long after its lease's end a supervisor's tree may be seen to live before both are killed: it gives processes that
	// don't die two seconds. Looks are counted instead of time: after a pause of the machine the end is long past, and no supervisor has
	// had a chance to act on it.
	overdue = 10 * time.Second
	// patienceOfLooks bounds a look at a subjob's memory: its end is seen between two looks.
	patienceOfLooks = 300 * time.Millisecond
	// mostApart is the longest pause between tries to end what remains of a dead supervisor's subjob: each looks at every process of the
	// machine.
	mostApart = 10 * time.Second
)

// watch follows a subjob until its supervisor is gone, and then reports how it ended. again: the subjob has not begun, since its reused
// supervisor died before it took the order.
func (r *run) watch(s *pool.Supervisor) (again bool) {
	rep := reporter{r: r, next: time.Now().Add(r.e.o.Report), meter: tree.Meter{Patience: patienceOfLooks}}
	defer func() { rep.meter.Stores.Close() }()
	glances := time.NewTicker(glance)
	defer glances.Stop()
	late := 0 // looks since its lease is over
	for begun := s.Begun; ; {
		select {
		case <-r.e.done:
			return false
		case <-s.Gone:
			if s.Used && !s.Well && r.untouched() {
				return true
			}
			r.after.Seen(s.Well)
			if len(s.Last) > 0 {
				_ = r.dir.WriteLog(s.Last)
			}
			r.look(&rep)
			r.conclude()
			return false
		case <-begun:
			begun = nil
		case <-glances.C:
		}
		r.look(&rep)
		if r.e.o.now() <= r.end() {
			late = 0
			continue
		}
		if late++; late > int(overdue/glance) && r.neglected() {
			r.e.o.Logger.Error("a subjob lives past its lease: killing its supervisor, and the subjob by it", "subjob", r.token.String())
			_ = s.Kill()
		}
	}
}

// untouched reports whether no supervisor has taken the run directory up.
func (r *run) untouched() bool {
	_, err := os.Lstat(r.dir.Note())
	return errors.Is(err, fs.ErrNotExist)
}

// look reports news of the subjob: that it started, that it is stuck, its progress.
func (r *run) look(rep *reporter) {
	note, err := r.dir.ReadNote()
	if err != nil {
		return // it is about to start
	}
	stuck := r.dir.ReadStuck()
	r.mu.Lock()
	if note.At != 0 && !r.said {
		r.started, r.said = note.At, true
		r.answer(protocol.Message{Kind: protocol.Started, Body: r.beginning(note.At)})
	}
	if stuck != "" && r.stuck == "" {
		r.stuck = stuck
		r.answer(protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: stuck}})
	}
	started := r.started != 0
	r.mu.Unlock()
	r.hold(note)
	if started {
		rep.report(note)
	}
}

// neglected reports whether processes of the subjob live that were not reported as stuck. A supervisor that is only waiting
// to write its result is left alone.
func (r *run) neglected() bool {
	note, err := r.dir.ReadNote()
	r.mu.Lock()
	defer r.mu.Unlock()
	init := tree.Process{PID: note.Init, Started: note.InitStarted}
	return err == nil && r.stuck == "" && init.PID != 0 && init.Alive()
}

// reporter reports a subjob's progress and use now and then.
type reporter struct {
	r     *run
	next  time.Time
	meter tree.Meter
	// stored: the meter knows what of its memory is no process's.
	stored bool
}

func (p *reporter) report(note shim.Note) {
	if time.Now().Before(p.next) {
		return
	}
	begun := time.Now()
	defer func() { p.next = begun.Add(max(p.r.e.o.Report, 20*time.Since(begun))) }() // of thousands of processes a look takes long
	w := p.r.work()
	seen := &protocol.Observation{Slice: w.Slice, Progress: w.Range.From, At: p.r.e.o.now()}
	if said, ok := p.r.dir.ReadProgress(); ok && said.Progress > seen.Progress {
		seen.Progress = said.Progress
	}
	if note.Gone != 0 {
		seen.Storing, seen.Vacant = true, true
		p.r.answer(protocol.Message{Kind: protocol.Report, Body: seen})
		return
	}
	if l := &p.r.lease; l.Isolation.Own && l.Memory > 0 && !p.stored && note.At != 0 {
		p.meter.Stores, p.stored = tree.OpenStores(note.Init), true
	}
	if p.r.lease.Memory > 0 {
		seen.Demand[trp.Memory] = quantity.Amount(p.meter.Measure(tree.Below(note.Init)))
	} else {
		seen.Demand[trp.Memory] = p.r.onDevice(tree.Below(note.Init))
	}
	p.r.answer(protocol.Message{Kind: protocol.Report, Body: seen})
}

// conclude finds out how a subjob whose supervisor is gone has ended. It returns when its last process is gone.
func (r *run) conclude() {
	until, apart := time.Now().Add(aftermath.Patience), glance
	for !r.e.isClosed() {
		var remain aftermath.Remain
		res, err := r.after.Ended()
		wait := glance
		switch {
		case err == nil:
			r.tellStored(res)
			return
		case shim.Held(err) && time.Now().Before(until):
			wait = time.Millisecond // an init that is just dying
		case shim.Held(err):
			r.remains("the init of the subjob remains, though its supervisor is gone")
		case errors.As(err, &remain):
			r.remains(remain)
			wait, apart = apart, min(2*apart, mostApart)
		default:
			r.e.o.Logger.Error("finding out how a subjob ended; trying again", "subjob", r.token.String(), "err", err)
			if faults.OfNode(err) {
				r.trouble = err
				r.e.suspect(&r.start)
			}
			wait = time.Second
		}
		select {
		case <-time.After(wait):
		case <-r.e.done:
		}
	}
}

// remains reports once that processes of the subjob can't be ended.
func (r *run) remains(what aftermath.Remain) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stuck == "" {
		r.stuck = string(what)
		r.answer(protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: r.stuck}})
	}
}
