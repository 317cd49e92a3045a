// Package survival is the contract of what senses the memory of this machine and of its subjobs, suspends and resumes subjobs, and moves
// their memory out. (with line 2: "and give memory back") and give memory back. Kinds live in folders below; every kind passes
// survivaltest. A kind decides nothing: core/airlock does, called by the node, or by whoever watches a machine while the daemon is dead.
//
// What is called again and again allocates nothing once it has run a few times, and neither waits for a lock nor writes to a disk: it is
// needed when there is no memory left. To open something (Take, the kinds' Open) may allocate.
package survival

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Survival senses one machine's memory, and what of it subjobs have. Its methods, and those of one Hold, are called by one goroutine at a
// time, but for Take and Wake; different Holds may be used at once.
type Survival interface {
	// Capability is what can be done here, as found when it was opened.
	Capability() Capability
	// Sense reads what the machine's memory is like. now is by any clock that never goes back, as in Hold.Measure.
	Sense(now time.Duration, m *Memory) error
	// Await waits for patience, or until the kernel says that tasks were stalled for want of memory, or Wake is called. Where the
	// kernel says nothing it only waits.
	Await(patience time.Duration)
	// Wake ends an Await that is under way, or else the next one, at once.
	Wake()
	// Take opens a subjob. An error is of kind NotFound if it is gone, Unsupported if this kind can do nothing with it.
	Take(s Subjob) (Hold, error)
	// Close releases everything, but leaves what is suspended so. It may be called twice.
	Close() error
}

// Subjob is where the processes of one subjob are.
type Subjob struct {
	Token job.Token
	// Init and InitStarted name its top process, which does nothing itself and is not stopped.
	Init        int
	InitStarted uint64
	// Group is its control group's directory; empty: it has none.
	Group string
}

// Hold is one subjob of this machine.
type Hold interface {
	// Measure reads what it has. What is gone has nothing.
	Measure(now time.Duration, u *Use) error
	// Suspend freezes it: it returns once the kernel was told, and Still says when it is. One that is frozen already is no error. An
	// error is of kind NotFound if it is gone, Denied if that is not allowed, Unsupported if this kind can't.
	Suspend() error
	// Resume thaws it. One that runs already is no error; errors are as those of Suspend.
	Resume() error
	// Still reports whether all of it is frozen by a Suspend, whoever called it. A tree that is gone is not.
	Still() (bool, error)
	// Settle waits at most patience until it is frozen, and reports whether it is. A tree that grew meanwhile is frozen again.
	Settle(patience time.Duration) (bool, error)
	// Reclaim moves at most most of its memory out, and returns how much that was: less, or nothing, is no error. It may take long, some
	// ten milliseconds for each MiB where there is little processor time; a caller with other tasks asks for little at a time.
	Reclaim(most quantity.Amount) (quantity.Amount, error)
	// Close releases it in its present state. It may be called twice.
	Close() error
}

// Memory is what a machine's memory is like.
type Memory struct {
	// Capacity of the machine, or of the control group that all of this is in, whichever is the shorter of it; Used is what can't be
	// had without taking it from somebody. Growth of that in a second, averaged over some two.
	Capacity, Used, Growth quantity.Amount
	// Least is the smallest of these memories, however full each is: more of it nobody here ever has.
	Least quantity.Amount
	// Room is how much can be moved out still, to swap; 0: nothing.
	Room quantity.Amount
	// Some and Full are the shares of the last two seconds or so in which some or all tasks were stalled for want of memory, in parts per
	// thousand; 0 where the kernel does not tell.
	Some, Full int64
}

// Use is what a subjob has: Resident can be had by ending it, Parked is what was moved out; Growth of Resident in a second, averaged over
// some two.
type Use struct {
	Resident, Parked, Growth quantity.Amount
}

// Level is how much can be done.
type Level uint8

const (
	// Observe: pressure is seen, and subjobs can only be asked, or ended.
	Observe Level = iota
	// FreezeOnly: subjobs are frozen and take no more; what they have stays.
	FreezeOnly
	// Full: what is suspended can be moved out.
	Full

	levels = iota
)

// String is the level for people.
func (l Level) String() string { return [levels]string{"observe", "freeze-only", "full"}[l] }

// Capability is what can be done here, and why not more.
type Capability struct {
	Level Level
	// Kind that does it; Why says how, or what is missing for more, for people.
	Kind, Why string
}

// String is the capability for people: "full (cgroup): ...".
func (c Capability) String() string { return fmt.Sprintf("%v (%s): %s", c.Level, c.Kind, c.Why) }

const (
	// rateWindow is over how long growth is averaged: a process that starts is no trend.
	rateWindow = 2 * time.Second
	// rateStep is how far apart what is remembered is at least, and ratePoints is room for all of a window.
	rateStep   = rateWindow / 16
	ratePoints = 18
)

// Rate is how fast a number grows, over the last two seconds. The zero value has seen nothing.
type Rate struct {
	at    [ratePoints]time.Duration
	value [ratePoints]int64
	// first point of n, in a ring.
	first, n int
}

// Add adds a value, and returns its growth in a second. As long as less than the window is known the rest of it counts as without growth.
func (r *Rate) Add(now time.Duration, value int64) quantity.Amount {
	// The oldest point that is left is the last one that is no younger than the window.
	for r.n > 1 && now-r.at[(r.first+1)%ratePoints] >= rateWindow {
		r.first, r.n = (r.first+1)%ratePoints, r.n-1
	}
	if last := (r.first + r.n + ratePoints - 1) % ratePoints; r.n == 0 || now-r.at[last] >= rateStep {
		if r.n == ratePoints {
			r.first, r.n = (r.first+1)%ratePoints, r.n-1
		}
		next := (r.first + r.n) % ratePoints
		r.at[next], r.value[next] = now, value
		r.n++
	}
	over := max(now-r.at[r.first], rateWindow)
	grown, sign := value-r.value[r.first], quantity.Amount(1)
	if grown < 0 {
		grown, sign = -grown, -1
	}
	return sign * quantity.Amount(quantity.MulDiv(grown, int64(time.Second), int64(over)))
}
