package clock

import (
	"slices"
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

// TestWhatAMeasurementDoes to a clock that was right: each is of a head whose clock was set by so much, over a way that took so long.
func TestWhatAMeasurementDoes(t *testing.T) {
	type measured struct{ set, round time.Duration }
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		all  []measured
		want time.Duration // what it says then, beside what it would say had nobody set the head's clock
	}{
		{"over the slowest way that counts", []measured{{set: time.Second, round: 2 * time.Second}}, time.Second},
		{"over a slower one", []measured{{set: time.Minute, round: 2*time.Second + 1}}, 0},
		{"of a way that took less than nothing", []measured{{set: time.Minute, round: -1}}, 0},
		{"that may be as true as a better one", []measured{{round: 90 * ms}, {set: 100 * ms, round: 110 * ms}}, 0},
		{"that can't be true beside a better one", []measured{{round: 90 * ms}, {set: 102 * ms, round: 110 * ms}}, 102 * ms},
		{"the eighth after a better one", append([]measured{{}}, slices.Repeat([]measured{{set: 20 * ms, round: 100 * ms}}, 7)...), 0},
		{"the ninth", append([]measured{{}}, slices.Repeat([]measured{{set: 20 * ms, round: 100 * ms}}, 8)...), 20 * ms},
		{"that it is ahead by less than may be wrong", []measured{{set: -40 * ms, round: 100 * ms}}, 0},
	} {
		w := &world{head: time.Unix(1_000_000, 0)}
		f := follow(w.elapsed, w.at())
		f.Now()
		for _, m := range c.all {
			f.Measured(w.at().Add(m.set), m.round)
		}
		w.now += time.Hour
		if off := f.Now().Sub(w.at()); off != c.want {
			t.Errorf("a measurement %s: it is %v ahead, want %v", c.name, off, c.want)
		}
	}
}

// TestAClockThatIsAhead is set back at once if nobody has gone by it; else it goes at half its pace for twice as long as it is ahead, and
// then at its own, with no measurement more.
func TestAClockThatIsAhead(t *testing.T) {
	for _, used := range []bool{false, true} {
		w := &world{head: time.Unix(1_000_000, 0)}
		f := follow(w.elapsed, w.at().Add(10*time.Second))
		left := time.Duration(0)
		if used {
			f.Now()
			left = 10 * time.Second
		}
		f.Measured(w.at(), 0)
		for range 10 {
			if off := f.Now().Sub(w.at()); off != left {
				t.Fatalf("used before: %v; %v later it is %v ahead, want %v", used, w.now, off, left)
			}
			w.now += 6 * time.Second
			left = max(0, left-3*time.Second)
		}
	}
}
