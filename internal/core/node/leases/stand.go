package leases

import (
	"cmp"

	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Stands is what is done to leases for their host's memory. Each is suspended within an entry, which has a beginning, and ends by going on
// or by being ended.
type Stands struct {
	leases *Leases
	runner *Runner
}

// NewStands returns that of the leases that a runner has.
func NewStands(r *Runner) *Stands { return &Stands{r.leases, r} }

// Suspend freezes a lease for its host's memory, Resume makes it go on.
func (s *Stands) Suspend(now quantity.Instant, l *Lease, out *protocol.Out) {
	s.leases.change(l, onSuspend)
	l.stand.Since = now
	l.stand.Times++
	s.runner.SendDue(now, l, out)
}

// Resume see Suspend.
func (s *Stands) Resume(now quantity.Instant, l *Lease, out *protocol.Out) {
	s.leases.change(l, onResume)
	l.stand.Since, l.stand.Resumed = 0, now
	s.runner.SendDue(now, l, out)
}

// Yield asks a lease to leave a checkpoint, in the time of its entry that is left.
func (s *Stands) Yield(now quantity.Instant, l *Lease, why string, out *protocol.Out) {
	l.stand.Since = cmp.Or(l.stand.Since, now)
	l.stand.Asked = true
	s.leases.change(l, onHalt)
	l.why = why
	s.runner.SendDue(now, l, out)
}

// Reclaim ends a lease at once.
func (s *Stands) Reclaim(now quantity.Instant, l *Lease, why string, out *protocol.Out) {
	l.stand.Reclaimed = true
	s.leases.change(l, onHalt)
	l.why = why
	s.runner.SendDue(now, l, out)
}

// Stood records that a lease is frozen, goes on, or can't be frozen. A late report is of an order that was withdrawn.
func (s *Stands) Stood(now quantity.Instant, l *Lease, is *protocol.Stillness, out *protocol.Out) {
	switch {
	case is.Refused && l.phase == Suspending: // the entry is over, and there is no other
		s.leases.change(l, onMoving)
		l.restless = true
		l.stand.Since, l.stand.Times = 0, l.stand.Times-1
	case is.Still && l.phase == Suspending:
		s.leases.change(l, onSuspended)
	case !is.Still && l.phase == Resuming:
		s.leases.change(l, onMoving)
	default:
		return
	}
	s.runner.SendDue(now, l, out)
}

// Follow sets a lease to what its machine's watcher reports, however many reports were lost, and returns whether it is newly to end; stop
// is why it would be.
func (s *Stands) Follow(now quantity.Instant, l *Lease, is *protocol.Stand, stop func() string, out *protocol.Out) (ends bool) {
	l.stand.Times = max(l.stand.Times, is.Times)
	switch is.State {
	case protocol.IsSuspended:
		if l.phase == Stopping {
			return false
		}
		if l.phase != Suspended {
			if l.phase != Suspending {
				s.leases.change(l, onSuspend)
			}
			s.leases.change(l, onSuspended)
		}
		l.stand.Since = is.Since
	case protocol.GoesOn:
		s.GoOn(l, is.Resumed)
	case protocol.IsToYield, protocol.IsEnded:
		at := is.State == protocol.IsEnded
		if l.phase == Stopping && (!at || l.stand.Reclaimed) {
			return false
		}
		l.stand.Since = cmp.Or(l.stand.Since, is.Since)
		l.stand.Asked, l.stand.Reclaimed = l.stand.Asked || !at, at
		s.leases.change(l, onHalt)
		l.why = inventory.ShortOfMemory + ": " + stop()
		s.runner.SendDue(now, l, out)
		return true
	}
	return false
}

// GoOn has a lease that is suspended, or is about to be or to go on, be what it was before its entry.
func (s *Stands) GoOn(l *Lease, at quantity.Instant) {
	if l.phase < Suspending || l.phase > Resuming {
		return
	}
	if l.phase == Suspending {
		s.leases.change(l, onSuspended)
	}
	if l.phase == Suspended {
		s.leases.change(l, onResume)
	}
	s.leases.change(l, onMoving)
	l.stand.Since, l.stand.Resumed = 0, at
}
