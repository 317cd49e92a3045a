package process

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/watch"
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

// still suspends and resumes one subjob. Invariants: its processes are suspended or resumed only under acting, to the state that was asked
// for last, and never once the subjob is being stopped or has ended. Its supervisor is told after the kernel, except of the intent to
// suspend, of which it is told before.
type still struct {
	o     *Options
	token job.Token
	told  *executor.Answers
	// lease is not changed once there is a note.
	lease   *shim.Lease
	control *control
	watcher *watcher
	// room is the machine's free memory. done is closed with the executor.
	room *atomic.Int64
	done chan struct{}

	mu sync.Mutex
	// wanted: it is to be suspended, and why.
	wanted bool
	why    string
	// suspended: the machine's watcher has suspended it, as its supervisor and its program are told.
	suspended bool
	// note is its supervisor's, once it runs; restless: its supervisor could not resume it, so it is not suspended.
	note     shim.Note
	restless bool
	// before: it was suspended under an earlier daemon, which this one's node does not know. Written before the run is shared.
	before bool
	// telling serializes telling its supervisor what the watcher does.
	telling sync.Mutex

	// acting serializes uses of hold; nil: there is none, since nothing runs, or it can't be taken.
	acting sync.Mutex
	hold   survival.Hold
	taken  bool // it was tried
	use    survival.Use
	// adopted: an earlier daemon started it, whose kind of survival may have been another.
	adopted bool
	// said is the last reported use; it belongs to the reporting goroutine.
	said survival.Use
}

// want notes whether it is to be suspended; stand carries it out. As with change, the last call counts.
func (s *still) want(m protocol.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = m.Kind == protocol.Suspend
	if b, ok := m.Body.(*protocol.Reason); ok {
		s.why = b.Text
	}
}

// tell tells its supervisor that it is suspended or resumed; watched: by the machine's watcher.
func (s *still) tell(suspended, watched bool) {
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	s.control.suspend(suspended, watched, why, 2*s.o.Airlock.Timer)
}

// take takes the handle of its processes.
func (s *still) take(note shim.Note) {
	if s.o.Survival == nil || note.At == 0 {
		return
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	if s.taken {
		return
	}
	s.taken = true
	s.mu.Lock()
	s.note, s.restless = note, !note.Thaws || s.lease.Watch != s.watcher.path
	s.mu.Unlock()
	defer s.watcher.wake()
	var err error
	if s.hold, err = s.o.Survival.Take(survival.Subjob{Token: s.token, Init: note.Init, InitStarted: note.InitStarted,
		Group: note.Cgroup}); err != nil {
		s.hold = nil
		if errkind.Of(err) != errkind.NotFound { // what is gone is no trouble
			s.o.Logger.Warn("a subjob can't be suspended where memory is short", "err", err)
		}
	}
}

// found reports whether a subjob of an earlier daemon is suspended and can be resumed. Where that is no longer known it is resumed here.
func (s *still) found(note shim.Note) bool {
	s.take(note)
	if s.o.Survival == nil || s.o.Survival.Capability().Level == survival.Observe {
		s.thaw(note)
		return false
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	s.adopted = true
	last, _ := s.control.state()
	// One that was to be suspended, and was not yet, counts as suspended: resuming it does no harm.
	suspended := tree.Group(note.Cgroup).Frozen() || last.Still != 0
	if s.hold == nil || suspended {
		return suspended
	}
	suspended, err := s.hold.Still()
	if err != nil {
		s.o.Logger.Warn("looking whether a subjob of an earlier boot is suspended", "err", err)
	}
	return suspended
}

// thaw resumes a subjob of an earlier daemon, if that daemon suspended it: one that has stopped itself is left alone.
func (s *still) thaw(note shim.Note) {
	var stopped []tree.Member
	if last, _ := s.control.state(); last.Still != 0 {
		stopped = below(note)
	} else if !tree.Group(note.Cgroup).Frozen() {
		return
	}
	if err := tree.Thaw(tree.Group(note.Cgroup), stopped); err != nil {
		s.o.Logger.Error("having a subjob of an earlier boot go on", "subjob", s.token.String(), "err", err)
		return
	}
	s.tell(false, false)
}

// below returns the processes of a subjob; none where its init is gone: the pid may be another's by now.
func below(note shim.Note) []tree.Member {
	if !(tree.Process{PID: note.Init, Started: note.InitStarted}).Alive() {
		return nil
	}
	return tree.Below(note.Init)
}

// release releases the handle of a finished subjob.
func (s *still) release() {
	s.acting.Lock()
	defer s.acting.Unlock()
	if s.hold != nil {
		_ = s.hold.Close()
		s.hold = nil
	}
}

// due reports whether it is to be suspended, and whether anything is to be done to it at all.
func (s *still) due() (wanted, open bool) {
	_, leaving := s.control.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted, s.told.State().Result == nil && !leaving
}

// known is what is known of it: its supervisor's note, whether it must not be suspended, and whether the watcher has suspended it.
func (s *still) known() (note shim.Note, restless, suspended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note, s.restless, s.suspended
}

// stand suspends or resumes a subjob, as was wanted last, and reports it. The kernel is told before anything is written: a disk may have
// to wait for memory.
func (s *still) stand() {
	s.acting.Lock()
	wanted, open := s.due()
	_, restless, suspended := s.known()
	h := s.hold
	switch {
	case !open:
		s.acting.Unlock()
	case wanted && (h == nil || restless):
		s.acting.Unlock()
		s.told.Send(protocol.Suspended, &protocol.Stillness{Refused: true})
	case wanted && s.watcher.lives(): // the watcher decides, and the node is about to be told so
		s.acting.Unlock()
	case wanted:
		suspended = s.suspend(h)
		s.acting.Unlock()
		if suspended {
			s.drain()
		}
	case suspended:
		s.acting.Unlock()
	default:
		err := s.goOn(h)
		s.acting.Unlock()
		if err != nil {
			s.o.Logger.Error("having a subjob go on; the node asks again", "err", err)
			return
		}
		s.tell(false, false)
		s.told.Send(protocol.Suspended, &protocol.Stillness{})
	}
}

// goOn resumes it. One that an earlier daemon suspended, by whatever kind of survival, is resumed after both calls.
func (s *still) goOn(h survival.Hold) (err error) {
	if h != nil {
		err = h.Resume()
	}
	if s.adopted && err == nil {
		note, _, _ := s.known()
		err = tree.Thaw(tree.Group(note.Cgroup), below(note))
		s.adopted = err != nil
	}
	return err
}

// suspend suspends it, and reports whether it did. One that can't be suspended is left to run. The intent is written first: a supervisor
// resumes a suspended subjob without a recorded intent. A watcher that has begun meanwhile resumes it as it begins, unless it suspended it
// itself.
func (s *still) suspend(h survival.Hold) bool {
	s.tell(true, false)
	suspended, err := false, h.Suspend()
	if err == nil {
		suspended, err = h.Settle(settles)
	}
	if err == nil && s.watcher.lives() {
		if err = h.Resume(); err == nil {
			s.tell(false, false)
			return false
		}
	}
	switch {
	case errkind.Of(err) == errkind.NotFound: // it has ended
	case err != nil:
		s.o.Logger.Warn("a subjob can't be suspended, and goes on", "err", err)
		_ = h.Resume()
		s.tell(false, false)
		s.told.Send(protocol.Suspended, &protocol.Stillness{Refused: true})
	case !suspended:
		s.o.Logger.Warn("a subjob is not suspended yet", "subjob", s.token.String())
	}
	return err == nil && suspended
}

// drain moves out the memory of a suspended subjob, while there is room and it is to be suspended, and reports it suspended when that is
// done, or takes long.
func (s *still) drain() {
	said := false
	say := func() {
		if wanted, open := s.due(); !said && wanted && open {
			said = true
			s.told.Send(protocol.Suspended, &protocol.Stillness{Still: true})
		}
	}
	defer say()
	if s.o.Survival.Capability().Level < survival.Full {
		return
	}
	for began, missed := time.Now(), 0; missed < misses; {
		if time.Since(began) >= meal {
			say()
		}
		moved, more := s.bite()
		if !more {
			return
		}
		if missed++; moved > 0 {
			missed = 0
		}
	}
}

// bite moves a little out, and reports whether there may be more.
func (s *still) bite() (moved quantity.Amount, more bool) {
	s.acting.Lock()
	defer s.acting.Unlock()
	wanted, open := s.due()
	h := s.hold
	if !wanted || !open || h == nil || closed(s.done) || s.room.Load() < int64(bite) {
		return 0, false
	}
	if suspended, err := h.Still(); err != nil || !suspended {
		return 0, false
	}
	moved, err := h.Reclaim(bite)
	if err != nil {
		s.o.Logger.Warn("moving the memory of a subjob out", "err", err)
		return 0, false
	}
	_ = h.Measure(shim.Boottime(), &s.use)
	return moved, true
}

// row returns the watcher's row for a subjob, below a base control group; false: it does not run.
func (s *still) row(base string) (row watch.Row, ok bool) {
	note, restless, _ := s.known()
	l := s.lease
	if note.At == 0 || s.told.State().Result != nil {
		return row, false
	}
	last, leaving := s.control.state()
	row = watch.Row{
		Token: s.token, Start: note.At, Planned: l.Planned, Priority: l.Rank.Priority, Value: l.Rank.Value, Class: ranked[l.Rank.Class],
		Bound: l.Members > 0 || restless, Yields: l.Rank.Yields, Stopping: leaving || s.o.now() >= last.End.Add(-l.Grace), Init: note.Init,
		InitStarted: note.InitStarted,
	}
	if note.Cgroup != "" && filepath.Dir(note.Cgroup) == base {
		row.Group = filepath.Base(note.Cgroup)
	}
	return row, true
}

var ranked = [protocol.Classes]airlock.Class{ //nolint:gochecknoglobals // a table, written to by nobody
	protocol.Fleeting: airlock.Fleeting, protocol.Lasting: airlock.Lasting, protocol.Collective: airlock.Collective,
}

// shortOfMemory is why a subjob is suspended, for its program.
const shortOfMemory = "the node is short of memory"

// reclaimed is why the machine's watcher had ended it, as a supervisor asks that has not died itself; empty: it had not.
func (s *still) reclaimed() string {
	w := watch.Witness{Path: s.lease.Watch}
	stand, ok := w.Stand(s.token)
	if !ok {
		stand, ok = s.watcher.lastStand(s.token)
	}
	if ok && stand.State == airlock.Reclaiming {
		return shortOfMemory
	}
	return ""
}

// findSuspended finds out of a subjob of an earlier daemon whether it was suspended under that one, or since: its node knows nothing of it.
func (s *still) findSuspended() {
	stand, ok := s.watcher.lastStand(s.token)
	last, _ := s.control.state()
	s.before = last.Stood > 0 || ok && stand.Entries > 0
}

// excused is the result of a subjob that an earlier daemon suspended, as its node would report one that this daemon
// suspended: that it came no further is not its own failure.
func (s *still) excused(res job.Result) job.Result {
	if s.before && (res.Outcome == job.Yielded || res.Outcome == job.DeadlineKilled) {
		res.Outcome = job.Stopped
		if res.Detail == "" {
			res.Detail = shortOfMemory
		}
	}
	return res
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
