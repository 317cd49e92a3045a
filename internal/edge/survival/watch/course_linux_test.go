package watch

import (
	"testing"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

// TestAllThatStandsIsMovedOut, one in turn, and the board has what of each is where after every move.
func TestAllThatStandsIsMovedOut(t *testing.T) {
	x := newWorld(t)
	subjobs := []*subjob{x.add(1, 3*gib, nil), x.add(2, 3*gib, nil), x.add(3, 3*gib, nil)}
	x.m.base = 84*gib + 512*mib // below the lines without them, and above the calm one with one
	x.look(rest)
	for n := 0; subjobs[0].parked+subjobs[1].parked+subjobs[2].parked < 9*gib; n++ {
		if x.look(alert); n > 10_000 {
			t.Fatal("there is room, and what is suspended is not moved there")
		}
		for i, s := range subjobs {
			if st, _ := x.board().Of(job.Token{Epoch: 1, Seq: uint64(i + 1)}); st.Resident != s.resident || st.Parked != s.parked {
				t.Fatalf("subjob %d has %d MiB and %d outside, and the board says %d and %d", i+1, s.resident/mib, s.parked/mib,
					st.Resident/mib, st.Parked/mib)
			}
		}
		x.m.base = 87 * gib // nothing goes on
	}
}

// TestAnEntryThatAnotherEndedIsOver: between the lines, where nothing is decided. It would else be ended early when it is asked to yield.
func TestAnEntryThatAnotherEndedIsOver(t *testing.T) {
	x := newWorld(t)
	s := x.add(1, 7*gib, nil)
	x.m.base = 86 * gib
	x.look(rest)
	x.look(alert)
	if !s.told {
		t.Fatal("it goes on over the line")
	}
	x.m.base = 80 * gib
	_ = s.Resume()
	x.look(alert)
	if st, _ := x.board().Of(job.Token{Epoch: 1, Seq: 1}); st.State != airlock.Running || st.Since != 0 || st.Resumed == 0 {
		t.Errorf("another resumed it, and the board says %+v", st)
	}
}

// TestWhatAnEarlierLifeLeftHoldsForTheFirstTableAlone: one that comes later is not ended for what was to be ended then.
func TestWhatAnEarlierLifeLeftHoldsForTheFirstTableAlone(t *testing.T) {
	x := newWorld(t)
	x.add(1, 20*gib, nil)
	x.m.base, x.m.room = 78*gib, 0
	x.look(rest)
	if x.state(1) != airlock.Reclaiming {
		t.Fatalf("at the emergency line it is %v", x.state(1))
	}
	x.m.base, x.table.Rows = 0, nil
	x.publish()
	x.begin()
	x.look(rest)
	s := x.add(1, gib, nil)
	x.look(rest)
	if s.ended || x.state(1) != airlock.Running {
		t.Errorf("it is %v, ended %v", x.state(1), s.ended)
	}
}

// TestWhatGrowsFastIsWatchedClosely: from where ten seconds of it lie over the severe line.
func TestWhatGrowsFastIsWatchedClosely(t *testing.T) {
	x := newWorld(t)
	x.add(1, gib, nil)
	x.look(rest)
	for _, c := range []struct {
		used, growth quantity.Amount
		near         bool
	}{{80, 1, false}, {80, 2, true}, {80, 0, false}, {91, -5, false}} {
		x.w.memory = survival.Memory{Capacity: 100 * gib, Used: c.used * gib, Growth: c.growth * gib}
		if got := x.w.near(); got != c.near {
			t.Errorf("%d of 100 GiB used, growing by %d GiB/s: near is %v", c.used, c.growth, got)
		}
	}
}
