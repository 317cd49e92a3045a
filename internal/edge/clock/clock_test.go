package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// world has a head whose clock is right, and a machine whose clocks are not. Time is that of the head, from its start.
type world struct {
	now time.Duration
	// head is what the head's clock says beside now; it is only set forward.
	head time.Time
	// drift of the machine's oscillator in parts per million, and what its count began with.
	drift int64
	began time.Duration
}

func (w *world) at() time.Time { return w.head.Add(w.now) }

// elapsed is the machine's count of time.
func (w *world) elapsed() time.Duration {
	return w.began + w.now + w.now*time.Duration(w.drift)/1_000_000
}

// measure has the machine measure the head's clock over ways that take so long.
func (w *world) measure(f *Follower, out, back time.Duration) {
	begun := w.elapsed()
	w.now += out
	said := w.at()
	w.now += back
	round := w.elapsed() - begun
	f.Measured(said.Add(round/2), round)
}

const (
	mostDrift = 200 // parts per million: worse than any crystal
	ppm       = 1_000_000
	skew      = 5 * time.Second // zone.Config.Skew
)

func span(t *rapid.T, name string, from, to time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(from), int64(to)).Draw(t, name))
}

// TestAFollowedClock: whatever the machine's clocks, the network and the head's clock do, time never goes back; it is never further behind
// than half of the slowest way that counts, what the oscillator lost since, and what the head's clock was set forward since it was
// measured; and once measurements are good it gets within theirs, at half pace if it was ahead.
func TestAFollowedClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{head: time.Unix(1_000_000, 0), drift: rapid.Int64Range(-mostDrift, mostDrift).Draw(t, "drift"),
			began: span(t, "began", 0, 1000*time.Hour)}
		f := follow(w.elapsed, w.at().Add(span(t, "wall clock", -time.Hour, time.Hour)))
		var last time.Time
		var measured, set time.Duration // when it was last, and by how much the head's was set since
		known := false
		look := func() time.Duration {
			now := f.Now()
			if now.Before(last) {
				t.Fatalf("it goes back by %v", last.Sub(now))
			}
			last = now
			return now.Sub(w.at())
		}
		if rapid.Bool().Draw(t, "used before it is measured") {
			look()
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				by := span(t, "set forward", 0, 10*time.Minute)
				w.head, set = w.head.Add(by), set+by
			case 1, 2, 3, 4:
				out, back := span(t, "out", 0, 1500*time.Millisecond), span(t, "back", 0, 1500*time.Millisecond)
				if w.measure(f, out, back); out+back < worstRound-time.Millisecond {
					known, measured, set = true, w.now, min(set, worstRound+least) // less is not noticed where ways are slow
				}
			default:
				w.now += span(t, "pass", 0, 90*time.Second)
			}
			off := look()
			lost := (w.now-measured)*mostDrift/ppm + 20*time.Second*mostDrift/ppm // what the oscillator lost since, and within the trips
			if allowed := worstRound/2 + set + lost + 2*least; known && off < -allowed {
				t.Fatalf("it is %v behind, and %v is allowed", -off, allowed)
			}
		}
		for range kept {
			w.now += time.Second
			w.measure(f, 5*time.Millisecond, 5*time.Millisecond)
			look()
		}
		for ahead := look(); ahead > 50*time.Millisecond; {
			before := ahead
			w.now += min(2*ahead, time.Minute)
			w.measure(f, 5*time.Millisecond, 5*time.Millisecond)
			if ahead = look(); ahead > before*7/10 && ahead > before-25*time.Second {
				t.Fatalf("it was %v ahead, and is %v", before, ahead)
			}
		}
		if off := look(); off.Abs() > 50*time.Millisecond {
			t.Fatalf("in the end it is %v ahead", off)
		}
	})
}

// TestALeaseByAFollowedClock: a machine starts a lease when its clock says so, and its supervisor ends it by the count of time alone, as
// was reckoned at the start. However wrong the machine's clocks are, it begins no more than the error of a measurement early, and nothing
// runs when the home, which allows for the skew of clocks, gives the lease up.
func TestALeaseByAFollowedClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{head: time.Unix(1_000_000, 0), drift: rapid.Int64Range(-mostDrift, mostDrift).Draw(t, "drift")}
		f := follow(w.elapsed, w.at().Add(span(t, "wall clock", -time.Hour, time.Hour)))
		link := func() {
			w.measure(f, span(t, "out", 0, worstRound/2), span(t, "back", 0, worstRound/2-10*time.Millisecond))
		}
		link() // with the settings of its node, before it begins
		for range rapid.IntRange(0, 20).Draw(t, "beats") {
			w.now += span(t, "pause", 0, 4*time.Second)
			f.Now()
			link()
		}
		start := w.at().Add(span(t, "start", 0, time.Minute))
		end := start.Add(span(t, "length", time.Second, time.Hour))
		for f.Now().Before(start) {
			w.now += max(time.Millisecond, start.Sub(f.Now())/2)
			if rapid.Bool().Draw(t, "a beat") {
				link()
			}
		}
		const wrong = worstRound/2 + 100*time.Millisecond
		if early := start.Sub(w.at()); early > wrong {
			t.Fatalf("it starts %v early", early)
		}
		left := end.Sub(f.Now()) // the supervisor's anchor
		w.now += left - left*time.Duration(w.drift)/ppm
		if late := w.at().Sub(end); late > skew {
			t.Fatalf("it ends %v after its end", late)
		}
	})
}

// TestASteadyClock follows the wall clock.
func TestASteadyClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Steady
		for range 3 {
			if now := s.Now(); !now.Equal(time.Now()) {
				t.Errorf("it says %v at %v", now, time.Now())
			}
			time.Sleep(time.Second)
		}
		s.said = s.said.Add(time.Hour) // the wall clock is set back by that
		before := s.Now()
		time.Sleep(time.Minute)
		if gone := s.Now().Sub(before); gone != time.Minute {
			t.Errorf("after that a minute takes %v", gone)
		}
		time.Sleep(time.Hour)
		if now := s.Now(); now.Before(time.Now()) {
			t.Errorf("it is behind: %v at %v", now, time.Now())
		}
	})
}
