// Package clock is the time that the actors of a daemon go by. Of a head, or a daemon alone, it is the machine's wall clock, except that it
// never goes back (Steady). A machine that has joined a cluster goes by its head's (Follower), so that both mean the same by an instant in
// a message, however wrong its own wall clock is (docs/adr/0069-one-clock.md).
package clock

import (
	"slices"
	"sync"
	"time"
)

// Steady is the wall clock, except that it never goes back: when somebody sets the wall clock back, time goes on from where it was at its
// own pace until the process ends. The zero value is ready. Safe for concurrent use.
type Steady struct {
	mu   sync.Mutex
	read time.Time // of the wall clock, with its monotonic reading
	said time.Time // then
}

// Now is the time.
func (s *Steady) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := time.Now()
	said := t.Round(0) // without the monotonic reading, by which it would be compared
	if said.Before(s.said) {
		said = s.said.Add(max(0, t.Sub(s.read)))
	}
	s.read, s.said = t, said
	return said
}

const (
	// worstRound bounds a measurement's round trip: half of it is how wrong the measurement may be. A home allows for 5 s between the end
	// of a lease and what happens on its machine (zone.Config.Skew), of which this is a fifth.
	worstRound = 2 * time.Second
	// kept is how many measurements the best is taken of: that with the shortest round trip.
	kept = 8
	// least is the smallest correction.
	least = time.Millisecond
)

// Follower is a head's clock as a machine reckons it: what it said when it was measured, and the time gone since by a clock that nobody
// sets and that goes on while the machine is suspended. It never goes back: where it is ahead of a better measurement it goes at half its
// pace until that has caught up, and where it is behind it jumps. Before the first measurement it is the machine's wall clock of when it
// was made. Safe for concurrent use.
type Follower struct {
	elapsed func() time.Duration

	mu    sync.Mutex
	base  time.Time     // what it said at from, of elapsed
	from  time.Duration // only grows
	ahead time.Duration // by how much it was too far at from
	trips []trip        // the last measurements
	used  bool          // somebody has gone by it
}

// trip is one measurement: what the head's clock said when elapsed was 0, and how long the way to the head and back took.
type trip struct {
	zero  time.Time
	round time.Duration
}

// Elapsed counts time from some beginning. Nobody sets it, and it goes on while the machine is suspended.
func Elapsed() time.Duration { return elapsed() }

// Follow returns a clock that goes on from now, which the machine's wall clock says, until it is measured.
func Follow(now time.Time) *Follower { return follow(elapsed, now) }

func follow(elapsed func() time.Duration, now time.Time) *Follower {
	return &Follower{elapsed: elapsed, base: now.Round(0), from: elapsed()}
}

// Now is the head's time.
func (f *Follower) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = true
	return f.move()
}

// move reckons what it says now, from where it goes on.
func (f *Follower) move() time.Time {
	now := f.elapsed()
	gone := max(0, now-f.from)
	f.from += gone
	back := min(f.ahead, gone/2)
	f.ahead -= back
	f.base = f.base.Add(gone - back)
	return f.base
}

// Measured takes a measurement: what the head's clock says now, and how long the way there and back took, which bounds how wrong that is.
// One over a slower way than the cluster can do with is not taken.
func (f *Follower) Measured(head time.Time, round time.Duration) {
	if round < 0 || round > worstRound {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.move()
	t := trip{head.Round(0).Add(-f.from), round}
	f.trips = slices.DeleteFunc(f.trips, func(o trip) bool { // both can't be right: the head's clock was set, or it has another head
		return t.zero.Sub(o.zero).Abs() > (t.round+o.round)/2+least
	})
	if f.trips = append(f.trips, t); len(f.trips) > kept {
		f.trips = slices.Delete(f.trips, 0, 1)
	}
	best := slices.MinFunc(f.trips, func(a, b trip) int { return int(a.round - b.round) })
	f.aim(now, best.zero.Add(f.from), best.round/2)
}

// aim has it get to where it should be, which is known but for an error. now is what it says. Behind it is never by more than that error,
// as leases would be long; to be ahead by as much cuts them short, and is left alone.
func (f *Follower) aim(now, should time.Time, wrong time.Duration) {
	switch off := should.Sub(now); {
	case off > 0 || !f.used:
		f.base, f.ahead = should, 0
	case off < -max(wrong, least):
		f.ahead = -off
	default:
		f.ahead = 0
	}
}
