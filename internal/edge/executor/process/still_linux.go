package process

import (
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
)

const (
	// settles is how long to wait for a subjob to be suspended; the node asks again.
	settles = 2 * time.Second
	// bite is how much of a subjob's memory is moved out at a time: it can't be resumed meanwhile.
	bite = quantity.Amount(8 << 20)
	// meal is how long its memory is moved out before it is reported suspended: until then its memory counts as being moved.
	meal = 10 * time.Second
	// misses is how often nothing may be moved until there is taken to be nothing more.
	misses = 3
)

// want notes whether it is to be suspended; stand carries it out. As with change, the last call counts.
func (r *run) want(m protocol.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.still.wanted = m.Kind == protocol.Suspend
	if b, ok := m.Body.(*protocol.Reason); ok {
		r.still.why = b.Text
	}
}

// tell tells its supervisor that it is suspended or resumed; watched: by the machine's watcher. A supervisor that is told nothing more
// resumes it by itself.
func (r *run) tell(stands, watched bool) {
	r.mu.Lock()
	c := shim.Control{End: r.work().End, Range: r.work().Range}
	if r.control != nil {
		c = *r.control
	}
	if watched && !stands && !c.Watched { // somebody else has it stand still since, or has had it go on
		r.mu.Unlock()
		return
	}
	if stands && c.Still == 0 {
		c.Stood++
	}
	if c.Still, c.Watched = 0, false; stands && !r.still.leaving {
		c.Still, c.Short, c.Watched = r.e.o.now().Add(2*r.e.o.Airlock.Timer), r.still.why, watched
	}
	c.Anchor = shim.AnchorAt(r.e.o.now())
	r.control = &c
	r.mu.Unlock()
	r.pass()
}

// hold takes the handle of its processes.
func (r *run) hold(note shim.Note) {
	s := &r.still
	if r.e.o.Survival == nil || note.At == 0 {
		return
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	if s.taken {
		return
	}
	s.taken = true
	r.mu.Lock()
	s.note, s.restless = note, !note.Thaws || r.lease.Watch != r.e.sensor.watcher.path
	r.mu.Unlock()
	defer r.e.sensor.watcher.wake()
	var err error
	if s.hold, err = r.e.o.Survival.Take(survival.Subjob{Token: r.token, Init: note.Init, InitStarted: note.InitStarted,
		Group: note.Cgroup}); err != nil {
		s.hold = nil
		if errkind.Of(err) != errkind.NotFound { // what is gone is no trouble
			r.e.o.Logger.Warn("a subjob can't be made to stand still where memory is short", "err", err)
		}
	}
}

// found reports whether a subjob of an earlier daemon is suspended and can be resumed. Where that is no longer known it is resumed here.
func (r *run) found(note shim.Note) bool {
	r.hold(note)
	if r.e.o.Survival == nil || r.e.o.Survival.Capability().Level == survival.Observe {
		r.thaw(note)
		return false
	}
	r.still.acting.Lock()
	defer r.still.acting.Unlock()
	r.still.adopted = true
	// One that was to be suspended, and was not yet, counts as suspended: resuming it does no harm.
	stands := tree.Group(note.Cgroup).Frozen() || r.control != nil && r.control.Still != 0
	if r.still.hold == nil || stands {
		return stands
	}
	stands, err := r.still.hold.Still()
	if err != nil {
		r.e.o.Logger.Warn("looking whether a subjob of an earlier boot stands still", "err", err)
	}
	return stands
}

// thaw resumes a subjob of an earlier daemon, if that daemon suspended it: one that has stopped itself is left alone.
func (r *run) thaw(note shim.Note) {
	var stopped []tree.Member
	if r.control != nil && r.control.Still != 0 {
		stopped = below(note)
	} else if !tree.Group(note.Cgroup).Frozen() {
		return
	}
	if err := tree.Thaw(tree.Group(note.Cgroup), stopped); err != nil {
		r.e.o.Logger.Error("having a subjob of an earlier boot go on", "subjob", r.token.String(), "err", err)
		return
	}
	r.tell(false, false)
}

// below returns the processes of a subjob; none where its init is gone: the pid may be another's by now.
func below(note shim.Note) []tree.Member {
	if !(tree.Process{PID: note.Init, Started: note.InitStarted}).Alive() {
		return nil
	}
	return tree.Below(note.Init)
}

// letGo releases the handle of a finished subjob.
func (r *run) letGo() {
	r.still.acting.Lock()
	defer r.still.acting.Unlock()
	if r.still.hold != nil {
		_ = r.still.hold.Close()
		r.still.hold = nil
	}
}

// stands reports whether it is to be suspended, and whether anything is to be done to it at all.
func (r *run) stands() (wanted, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.still.wanted, r.result == nil && !r.still.leaving
}

// stand suspends or resumes a subjob, as was wanted last, and reports it. The kernel is told before anything is written: a disk may have
// to wait for memory.
func (r *run) stand() {
	r.still.acting.Lock()
	wanted, open := r.stands()
	h := r.still.hold
	switch {
	case !open:
		r.still.acting.Unlock()
	case wanted && (h == nil || r.restless()):
		r.still.acting.Unlock()
		r.answer(protocol.Message{Kind: protocol.Suspended, Body: &protocol.Stillness{Refused: true}})
	case wanted && r.e.sensor.watcher.lives(): // the watcher decides, and the node is about to be told so
		r.still.acting.Unlock()
	case wanted:
		stands := r.suspend(h)
		r.still.acting.Unlock()
		if stands {
			r.drain()
		}
	case r.watched():
		r.still.acting.Unlock()
	default:
		err := r.goOn(h)
		r.still.acting.Unlock()
		if err != nil {
			r.e.o.Logger.Error("having a subjob go on; the node asks again", "err", err)
			return
		}
		r.tell(false, false)
		r.answer(protocol.Message{Kind: protocol.Suspended, Body: &protocol.Stillness{}})
	}
}

// restless reports whether it must not be suspended, since its supervisor could not resume it.
func (r *run) restless() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.still.restless
}

// watched reports whether the machine's watcher has suspended it.
func (r *run) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.still.stands
}

// goOn resumes it. One that an earlier daemon suspended, by whatever kind of survival, is resumed after both calls.
func (r *run) goOn(h survival.Hold) (err error) {
	if h != nil {
		err = h.Resume()
	}
	if s := &r.still; s.adopted && err == nil {
		r.mu.Lock()
		note := s.note
		r.mu.Unlock()
		err = tree.Thaw(tree.Group(note.Cgroup), below(note))
		s.adopted = err != nil
	}
	return err
}

// suspend suspends it, and reports whether it did. One that can't be suspended is left to run. The intent is written first: a supervisor
// resumes a suspended subjob without a recorded intent. A watcher that has begun meanwhile resumes it as it begins, unless it suspended it
// itself.
func (r *run) suspend(h survival.Hold) bool {
	r.tell(true, false)
	stands, err := false, h.Suspend()
	if err == nil {
		stands, err = h.Settle(settles)
	}
	if err == nil && r.e.sensor.watcher.lives() {
		if err = h.Resume(); err == nil {
			r.tell(false, false)
			return false
		}
	}
	switch {
	case errkind.Of(err) == errkind.NotFound: // it has ended
	case err != nil:
		r.e.o.Logger.Warn("a subjob can't be made to stand still, and goes on", "err", err)
		_ = h.Resume()
		r.tell(false, false)
		r.answer(protocol.Message{Kind: protocol.Suspended, Body: &protocol.Stillness{Refused: true}})
	case !stands:
		r.e.o.Logger.Warn("a subjob does not stand still yet", "subjob", r.token.String())
	}
	return err == nil && stands
}

// drain moves out the memory of a suspended subjob, while there is room and it is to be suspended, and reports it suspended when that is
// done, or takes long.
func (r *run) drain() {
	said := false
	say := func() {
		if wanted, open := r.stands(); !said && wanted && open {
			said = true
			r.answer(protocol.Message{Kind: protocol.Suspended, Body: &protocol.Stillness{Still: true}})
		}
	}
	defer say()
	if r.e.o.Survival.Capability().Level < survival.Full {
		return
	}
	for began, missed := time.Now(), 0; missed < misses; {
		if time.Since(began) >= meal {
			say()
		}
		moved, more := r.bite()
		if !more {
			return
		}
		if missed++; moved > 0 {
			missed = 0
		}
	}
}

// bite moves a little out, and reports whether there may be more.
func (r *run) bite() (moved quantity.Amount, more bool) {
	r.still.acting.Lock()
	defer r.still.acting.Unlock()
	wanted, open := r.stands()
	h := r.still.hold
	if !wanted || !open || h == nil || r.e.isClosed() || r.e.sensor.pressure.room.Load() < int64(bite) {
		return 0, false
	}
	if stands, err := h.Still(); err != nil || !stands {
		return 0, false
	}
	moved, err := h.Reclaim(bite)
	if err != nil {
		r.e.o.Logger.Warn("moving the memory of a subjob out", "err", err)
		return 0, false
	}
	_ = h.Measure(monotonic(), &r.still.use)
	return moved, true
}
