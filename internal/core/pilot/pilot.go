// Package pilot says what is true of a pilot (docs/glossary.md), from what is written down of it, what its host shows, and whether its
// machine has joined: how far it is, that it is gone and how it ended, that nobody wants it any more, that it is gone earlier than its
// machine has said. The rules are the same in host/pilots, which asks real hosts, and in lab/lender, which plays them.
package pilot

import (
	"cmp"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
)

const (
	// A pilot is gone if its host has not shown it in missedLooks looks in a row: over missedFor if it has shown it before, over unseenFor
	// if not, since what was asked may take its time to be seen, as where the answer was lost.
	missedLooks = 3
	missedFor   = 15 * time.Second
	unseenFor   = 2 * time.Minute
	// leftFor is how long a pilot may go on whose machine has left the cluster: it ends by itself.
	leftFor = 30 * time.Second
	// lateAfter is how long after its start a pilot's machine has to have joined at the latest, or three times as long as a start takes.
	lateAfter = 5 * time.Minute
	// slack is by how much a host's end of a pilot may differ from its machine's own and mean the same: hosts count in seconds.
	slack = 2 * time.Second
)

// Record is what is durably known of a pilot that may be there. Instants are 0 where it has not come to that.
type Record struct {
	Name   string
	Length time.Duration
	// Asked is when it was written down, before its host was asked.
	Asked quantity.Instant
	// Shown: its host has shown it.
	Shown bool
	// Started is when it began at its host, Joined when its machine joined.
	Started, Joined quantity.Instant
	// Cancelled is when it was given back, and Why. Late: since its machine has not joined in time, or never could, which is a failure.
	Cancelled quantity.Instant
	Why       string
	Late      bool
	// Limited: when it was last seen to wait, a limit of its host's kept it back.
	Limited bool
}

// State is how far a copy of a pilot is at its host.
type State uint8

// The states.
const (
	// Unseen: its host does not show any.
	Unseen State = iota
	// Waiting: it has not begun.
	Waiting
	// Running: it has begun. Also when its host means to end it.
	Running
	// Ending: it was told to end, and may still run.
	Ending
	// Ended: nothing of it runs, as far as its host knows.
	Ended
)

// Copy is what a host shows of a pilot: of several copies the one that tells most.
type Copy struct {
	State State
	// Alive is how many copies may run, or may still begin.
	Alive int
	// Began is when it began to run, End when it is gone at the latest, or was gone, Expected when its host means to start it, all by the
	// host's clock; 0: nobody knows.
	Began, End, Expected quantity.Instant
	// Preempted: its host takes it back, or did. Failed: it ended otherwise than by its own exit 0 or since it was given back.
	Preempted, Failed bool
	// Limited: it waits since a limit of its host's on how much its users may have keeps it back, and not for room.
	Limited bool
	// Never: it waits, and can never start as it was asked for.
	Never bool
	// Why it waits or ended, in the host's words.
	Why string
}

// Machine is the last that has joined by a pilot's name. The zero value: none has.
type Machine struct {
	Joined quantity.Instant
	// Up: it is linked now.
	Up bool
	// Until is when it is gone for good, as the cluster knows it; 0: it does not. Left is when it left the cluster; 0: it is part of it.
	Until, Left quantity.Instant
}

// Missed are the looks in a row that have not shown a pilot, since the first of them.
type Missed struct {
	Looks int
	Since quantity.Instant
}

// Saw notes what a look showed, and that its machine has joined. before is when the look before was; 0: there was none.
//
// One that has not joined may be put back into its host's queue, and is begun again later: else it would count as one that runs, which is
// never given back, and be late as soon as it is begun again.
func (r *Record) Saw(now, before quantity.Instant, c *Copy, m *Machine) {
	if r.Joined == 0 {
		r.Joined = m.Joined
	}
	if c.State == Unseen {
		return
	}
	if r.Shown = true; c.State == Waiting || c.State == Running {
		r.Limited = c.Limited
	}
	switch {
	case r.Joined == 0 && c.State == Waiting:
		r.Started = 0
	case c.Began != 0 && r.Started == 0:
		r.Started = between(c.Began, now, r.Asked, before)
	}
}

// between is an instant by a host's clock, which may be wrong, held to what is known by the own one: not after now, not before others.
func between(t, now quantity.Instant, others ...quantity.Instant) quantity.Instant {
	t = min(t, now)
	for _, x := range others {
		t = max(t, x)
	}
	return t
}

// Over says whether a pilot is gone, and how it ended. One whose machine is linked is there, whatever its host says.
func (r *Record) Over(now quantity.Instant, c *Copy, m *Machine, missed Missed) (supply.Ending, bool) {
	if c.Alive > 0 || m.Up && m.Left == 0 {
		return supply.Ending{}, false
	}
	e := supply.Ending{Name: r.Name, How: supply.Done, Length: r.Length, Asked: r.Asked, Started: r.Started, Joined: r.Joined, Ended: now,
		Why: c.Why}
	if c.State == Unseen {
		least := unseenFor
		if r.Shown {
			least = missedFor
		}
		if missed.Looks < missedLooks || now.Sub(missed.Since) < least {
			return supply.Ending{}, false
		}
		e.Why = "its host does not know it any more"
	}
	ran := now.Sub(r.Started)
	if c.State == Ended && c.End != 0 {
		e.Ended = between(c.End, now, r.Asked, r.Started, r.Joined)
		if ran = e.Ended.Sub(r.Started); c.Began != 0 {
			ran = c.End.Sub(c.Began) // both by one clock
		}
	}
	inTime := r.Started != 0 && ran >= r.Length-slack
	switch {
	case c.Preempted:
		e.How = supply.Preempted
	case r.Late && r.Joined == 0:
		e.How, e.Why = supply.Failed, r.Why
	case r.Cancelled != 0 && r.Joined == 0:
		e.How, e.Why, e.Limited = supply.Withdrawn, r.Why, r.Limited
	case r.Cancelled != 0:
		e.Why = r.Why
	case r.Joined != 0 && (inTime || m.Left != 0):
		// It ran as long as it was to, or has left the cluster by itself.
	case c.State != Ended:
		e.How = supply.Vanished
	case r.Started == 0 && r.Joined == 0:
		e.How = supply.Refused // somebody else took it from the queue
	case c.Failed || r.Joined == 0:
		e.How = supply.Failed
	}
	return e, true
}

// Useless says why a pilot is given back whatever is ordered; empty: it is not. start is what a start is expected to take, wait how long it
// may wait at its host. late: its machine has not joined in time, or never could.
func (r *Record) Useless(now quantity.Instant, c *Copy, m *Machine, start, wait time.Duration) (why string, late bool) {
	last := max(lateAfter, 3*start)
	switch {
	case r.Cancelled != 0:
	case r.Joined != 0:
		if m.Left != 0 && now.Sub(m.Left) >= leftFor && c.Alive > 0 {
			return "its machine has left the cluster", false
		}
	case c.State == Running && r.Started != 0 && now.Sub(r.Started) >= last:
		return fmt.Sprintf("its machine has not joined within %v of its start", last), true
	case r.Started == 0 && c.Never:
		return "its host can never start it: " + c.Why, true
	case r.Started == 0 && now.Sub(r.Asked) >= wait:
		return "it has waited as long as its token is good", false
	}
	return "", false
}

// Closing is that a machine is gone by Until, for a reason in words. From From on nothing is sold there, and what runs is to end; 0: at
// once, by the machine's own clock.
type Closing struct {
	From, Until quantity.Instant
	Why         string
}

// Shorter says that a pilot's machine is gone earlier than it has said, or is waited for; false: it is not. What was sold before may use
// the time up to the hand-over, but where others wait for the machine: then it ends at once, also if the machine has known its end from the
// start, as one does that was preempted before it joined. closed is how it was closed before; none: it was not. Of several copies nobody
// knows which the machine is of.
func (r *Record) Shorter(now quantity.Instant, c *Copy, m *Machine, handOver time.Duration, closed Closing) (Closing, bool) {
	if m.Joined == 0 || m.Left != 0 || c.Alive != 1 || !c.Preempted && c.End == 0 {
		return Closing{}, false
	}
	x := Closing{c.End.Add(-handOver), c.End, "its host ends it then"}
	if c.Preempted {
		x = Closing{0, cmp.Or(c.End, now.Add(handOver)), "its host takes it back for others"}
	}
	if x.From <= now {
		x.From = 0
	}
	known, told := m.Until, closed.Until != 0
	if told && (known == 0 || closed.Until < known) {
		known = closed.Until
	}
	return x, known == 0 || x.Until < known.Add(-slack) || c.Preempted && !(told && closed.From == 0)
}

// Standing is how far a pilot is. idle is since when orders have called it idle.
func (r *Record) Standing(c *Copy, m *Machine, idle quantity.Instant) supply.Pilot {
	p := supply.Pilot{Name: r.Name, State: supply.Sent, Length: r.Length, Asked: r.Asked, Started: r.Started, Joined: r.Joined, Idle: idle,
		Expected: c.Expected}
	if p.Joined == 0 { // since the last look
		p.Joined = m.Joined
	}
	until := func(t quantity.Instant) {
		if t != 0 && (p.Until == 0 || t < p.Until) {
			p.Until = t
		}
	}
	if p.Started != 0 {
		until(p.Started.Add(p.Length))
	}
	until(c.End)
	until(m.Until)
	switch c.State {
	case Unseen:
	case Waiting:
		p.State = supply.Waiting
	case Running:
		p.State = supply.Starting
	case Ending, Ended:
		p.State = supply.Leaving
	}
	if p.Joined != 0 && p.State != supply.Leaving {
		p.State = supply.Joined
	}
	if r.Cancelled != 0 || m.Left != 0 || c.Preempted {
		p.State = supply.Leaving
		p.Recalled = c.Preempted && r.Cancelled == 0 && m.Left == 0
	}
	return p
}
