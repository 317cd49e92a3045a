package watch

import (
	"testing"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
)

// TestWhatAnotherResumesIsRunning: a supervisor that ends its subjob, or saw no watcher, resumes it. The watcher sees it, counts it as
// running, and suspends it again where memory is short, no more often than any task.
func TestWhatAnotherResumesIsRunning(t *testing.T) {
	x := newWorld(t)
	s := x.add(1, 20*gib, nil)
	x.look(rest)
	x.m.base = 72 * gib // short with it, and calm once it is moved out
	for n := range 20 {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		x.look(alert)
		st, _ := x.board().Of(job.Token{Epoch: 1, Seq: 1})
		if stands := st.State == airlock.Suspending || st.State == airlock.Suspended; s.told != stands {
			t.Fatalf("thawed for the %d. time it is %v on the board, told %v", n, st.State, s.told)
		}
		for range 20 {
			x.look(alert)
		}
	}
	if st, _ := x.board().Of(job.Token{Epoch: 1, Seq: 1}); st.Entries != x.w.lock.Config().Entries {
		t.Fatalf("it was told to be suspended %d times", st.Entries)
	}
}

// TestAPartlyFrozenGroupGoesOn: of a frozen group one process is killed, and for that moment the kernel calls it not frozen. What
// counts as running is resumed.
func TestAPartlyFrozenGroupGoesOn(t *testing.T) {
	for _, looks := range []int{2, 2000} { // while it is moved out, and later
		x := newWorld(t)
		s := x.add(1, 20*gib, nil)
		x.m.base = 73 * gib
		for range looks {
			x.look(alert)
		}
		if !s.told || !s.still {
			t.Fatal("it goes on over the line")
		}
		x.m.base, s.still = 0, false
		x.look(0)
		if s.told || x.state(1) != airlock.Running {
			t.Fatalf("after %d looks: it is %v, and was never resumed: %v", looks, x.state(1), s.told)
		}
	}
}

// TestALifeOfAnotherKindThawsBothWays what it takes over, and what begins later it leaves alone.
func TestALifeOfAnotherKindThawsBothWays(t *testing.T) {
	x := newWorld(t)
	x.add(1, gib, nil)
	var thawed []int
	x.w.thaw = func(r *Row, _ string) { thawed = append(thawed, r.Init) }
	x.look(rest)
	x.add(2, gib, nil)
	x.look(rest)
	if len(thawed) != 1 || thawed[0] != 1 {
		t.Fatalf("thawed %v, want 1 alone", thawed)
	}
}
