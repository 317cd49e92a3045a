package node

import (
	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Where a watcher lives on the machine it decides, and the node follows: it says what it does with each subjob, and the leases take the
// turns that lead there, however many words were lost. What only the node can do is left to it: to ask a subjob to yield, and to say why
// one is ended.

// follow takes in what the watcher does. The table is of the same word.
func (n *Node) follow(now quantity.Instant, s *protocol.Strain, out *protocol.Out) *airlock.Decision {
	n.succeed(now, s)
	d := n.memory.lock.Overdue(now, &airlock.Snapshot{Capacity: s.Capacity, Used: s.Used, Growth: s.Growth, Room: s.Room, Stall: s.Stall})
	n.noteWatched(now, s, d)
	for i := range s.Uses {
		u := &s.Uses[i]
		l := n.lease(u.Token)
		if l == nil || !l.runs() && l.phase != leaseStopping {
			continue
		}
		if u.Stand.State == protocol.StandsStill {
			d.ParkedTasks++
			d.Parked += u.Parked
		}
		n.align(now, l, u, d, out)
	}
	for i := range s.Others {
		if t := taskOf(&s.Others[i]); t.State == airlock.Suspended {
			d.ParkedTasks++
			d.Parked += t.Parked
		}
	}
	n.memory.due = 0 // entries are the watcher's to end
	return d
}

// succeed: another decides than at the last word. Everything goes on when a watcher begins, and when it ends.
func (n *Node) succeed(now quantity.Instant, s *protocol.Strain) {
	if s.Watch == n.memory.watch {
		return
	}
	n.memory.watch = s.Watch
	for _, l := range n.byToken() {
		if l.phase == leaseSuspending || l.phase == leaseSuspended || l.phase == leaseResuming {
			n.goOn(l, now)
		}
	}
}

// align turns a lease to what its subjob does.
func (n *Node) align(now quantity.Instant, l *lease, u *protocol.Use, d *airlock.Decision, out *protocol.Out) {
	s := &u.Stand
	l.stand.times = max(l.stand.times, s.Times)
	switch s.State {
	case protocol.StandsStill:
		if l.phase == leaseStopping {
			return
		}
		if l.phase != leaseSuspended {
			if l.phase != leaseSuspending {
				n.turn(l, suspends)
			}
			n.turn(l, stands)
		}
		l.stand.since = s.Since
	case protocol.GoesOn:
		if l.phase == leaseSuspending || l.phase == leaseSuspended || l.phase == leaseResuming {
			n.goOn(l, s.Resumed)
		}
	case protocol.IsToYield, protocol.IsEnded:
		ends := s.State == protocol.IsEnded
		if l.phase == leaseStopping && (!ends || l.stand.reclaimed) {
			return
		}
		if l.stand.since == 0 {
			l.stand.since = s.Since
		}
		l.stand.asked, l.stand.reclaimed = l.stand.asked || !ends, ends
		n.leaves(now, n.planned(l), u.Resident)
		n.turn(l, halted)
		l.why = shortOfMemory + ": " + d.Reading.String()
		n.memory.words = l.why
		n.outstanding(now, l, out)
	}
}

// goOn has a lease be what it was before its entry.
func (n *Node) goOn(l *lease, at quantity.Instant) {
	if l.phase == leaseSuspending {
		n.turn(l, stands)
	}
	if l.phase == leaseSuspended {
		n.turn(l, thaws)
	}
	n.turn(l, moves)
	l.stand.since, l.stand.resumed = 0, at
}
