package memory

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/fabric/fabrictest"
)

func TestConformance(t *testing.T) {
	fabrictest.Run(t, fabrictest.Kind{
		Fresh: func(*testing.T) fabric.Fabric { return New(Faults{}) },
		Rough: func(_ *testing.T, seed uint64) fabric.Fabric {
			return New(Faults{Seed: seed, Loss: 300, Double: 300, MaxDelay: 3 * time.Millisecond})
		},
	})
}

// order sends n numbered messages and returns the order in which they arrived.
func order(t *testing.T, f Faults, n int) []uint64 {
	t.Helper()
	var got []uint64
	synctest.Test(t, func(t *testing.T) {
		to := protocol.Address{Role: protocol.Gate}
		fab := New(f)
		arrived := make(chan uint64, 4*n)
		if err := fab.Attach(to, func(m protocol.Message) { arrived <- m.Session }); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			fab.Send(protocol.Message{To: to, Session: uint64(i)})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		if err := fab.Close(); err != nil {
			t.Fatal(err)
		}
		close(arrived)
		for a := range arrived {
			got = append(got, a)
		}
	})
	return got
}

func TestWithoutFaultsInOrder(t *testing.T) {
	got := order(t, Faults{}, 200)
	if len(got) != 200 || !slices.IsSorted(got) {
		t.Errorf("%d messages, sorted %v", len(got), slices.IsSorted(got))
	}
}

func TestFaultsFollowTheSeed(t *testing.T) {
	f := Faults{Seed: 7, Loss: 100, Double: 200, MaxDelay: 20 * time.Millisecond}
	a, b := order(t, f, 1000), order(t, f, 1000)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave another order")
	}
	if slices.IsSorted(a) {
		t.Error("nothing was reordered")
	}
	counts := map[uint64]int{}
	for _, x := range a {
		counts[x]++
	}
	lost, doubled := 1000-len(counts), len(a)-len(counts)
	if lost < 60 || lost > 140 || doubled < 120 || doubled > 240 {
		t.Errorf("lost %d of 1000 (want about 100), doubled %d (want about 180)", lost, doubled)
	}
	f.Seed = 8
	if slices.Equal(a, order(t, f, 1000)) {
		t.Error("another seed gave the same order")
	}
}

func TestCloseStopsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := protocol.Address{Role: protocol.Gate}
		f := New(Faults{Seed: 1, MaxDelay: time.Hour})
		if err := f.Attach(to, func(protocol.Message) { t.Error("delivered after Close") }); err != nil {
			t.Fatal(err)
		}
		f.Send(protocol.Message{To: to})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if f.Dropped() != 1 {
			t.Errorf("dropped %d, want 1", f.Dropped())
		}
	})
}
