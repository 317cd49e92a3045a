package fgd_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/experiment/fgd"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

func total(w *fgd.Workload, pods []int32) int64 {
	sum := int64(0)
	for _, p := range pods {
		sum += int64(w.Pods[p].Devices) * int64(w.Pods[p].Share)
	}
	return sum
}

// TestArrivals: the list comes once, in a random order, then copies until 130% of the capacity are reached; a list that is
// too long loses pods.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := synthetic(rapid.IntRange(1, 6).Draw(t, "eights"), 1, 2, rapid.IntRange(20, 120).Draw(t, "pods"))
		seed := rapid.Uint64().Draw(t, "seed")
		order := w.Arrivals(seed)
		if again := w.Arrivals(seed); !slices.Equal(order, again) {
			t.Fatal("a seed draws two orders")
		}
		all := make([]int32, len(w.Pods))
		for i := range all {
			all[i] = int32(i)
		}
		limit, largest := w.Capacity*130/100, int64(8*planner.Whole)
		if total(w, all) > limit {
			kept := slices.Clone(order)
			slices.Sort(kept)
			if got := total(w, order); got > limit || got <= limit-largest || len(slices.Compact(kept)) != len(order) {
				t.Fatalf("%d thousandths of %d remain, some twice: %v", got, limit, order)
			}
			return
		}
		base := slices.Clone(order[:len(all)])
		if slices.Sort(base); !slices.Equal(base, all) {
			t.Fatal("the list does not come whole at first")
		}
		if got := total(w, order); got <= limit-largest || got > limit+largest {
			t.Fatalf("%d thousandths arrive, want about %d", got, limit)
		}
		ranks := w.Ranks(seed)
		if slices.Sort(ranks); len(ranks) != len(w.Cluster.Nodes) || ranks[0] != 0 || int(ranks[len(ranks)-1]) != len(ranks)-1 ||
			len(slices.Compact(ranks)) != len(w.Cluster.Nodes) {
			t.Fatalf("the ranks are no permutation: %v", ranks)
		}
	})
}

// TestCounting works a run out by hand: one node with one GPU; halves arrive until 1.3 GPUs would be passed.
func TestCounting(t *testing.T) {
	half := planner.Task{Devices: 1, Share: 500, Classes: 1}
	w := &fgd.Workload{
		Cluster: planner.Cluster{Classes: []planner.Class{{Name: "A", Weight: planner.Whole}},
			Nodes: []planner.Node{{Name: "n", Devices: []uint8{0}}}},
		Pods:    []planner.Task{half, {Devices: 1, Share: 200, Classes: 1}, {Devices: 1, Share: 100, Classes: 2}},
		Typical: []planner.Typical{{Task: half, Count: 1}}, Capacity: planner.Whole,
	}
	// Arrived 50, 70, 80 (a model that is not there), 130 (does not fit) percent; allocated 50, 70, 70, 70.
	c, err := fgd.Run(place.BestFit(), fgd.Setup{Workload: w, Arrivals: []int32{0, 1, 2, 0}, Ranks: []int32{0}})
	if err != nil {
		t.Fatal(err)
	}
	for column, want := range map[int]float64{50: 50, 49: 50, 51: 50, 70: 70, 80: 70, 79: 70, 130: 70, 129: 70} {
		if math.Abs(c.Allocated[column]-want) > 1e-9 {
			t.Errorf("at %d%% arrived %v%% is allocated, want %v%%", column, c.Allocated[column], want)
		}
	}
	if !math.IsNaN(c.Allocated[0]) || !math.IsNaN(c.Allocated[100]) || c.Last() != c.Allocated[130] {
		t.Errorf("at 0%% and 100%% nothing arrived: %v and %v", c.Allocated[0], c.Allocated[100])
	}
	// Half a GPU is idle and a half fits: no fragment. Then 0.3 are idle, and all of it is one.
	if c.Fragmented[50] != 0 || math.Abs(c.Fragmented[70]-100) > 1e-9 || c.Placed != 2 || c.Dropped != 2 {
		t.Errorf("fragmented %v%% and %v%%, %d placed, %d dropped", c.Fragmented[50], c.Fragmented[70], c.Placed, c.Dropped)
	}
}

// TestTableInParallel: workers change nothing.
func TestTableInParallel(t *testing.T) {
	dir := dataFolder(t)
	o := fgd.Options{Dir: dir, Workloads: []string{"default", "cpu050"}, Kinds: fgd.Policies(), Seeds: []uint64{3, 9, 4}, Workers: 1}
	one, err := fgd.Table(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(one) != 2*6*3 || one[0].Workload != "default" || one[1].Seed != 9 || one[3].Policy != "dotproduct" ||
		one[18].Workload != "cpu050" {
		t.Fatalf("%d runs in the wrong order", len(one))
	}
	calls := 0
	o.Workers, o.Progress = 4, func(done, total int) {
		if calls++; done != calls || total != 36 {
			t.Errorf("call %d says that %d of %d are done", calls, done, total)
		}
	}
	four, err := fgd.Table(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range one {
		if a, b := one[i], four[i]; a.Workload != b.Workload || a.Policy != b.Policy || a.Seed != b.Seed ||
			a.Curve.Last() != b.Curve.Last() || a.Curve.Placed != b.Curve.Placed {
			t.Errorf("%+v with one worker, %+v with four", a, b)
		}
	}
}

// TestTableInterrupted: what is done is returned.
func TestTableInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := fgd.Options{Dir: dataFolder(t), Workloads: []string{"default"}, Kinds: fgd.Policies(), Seeds: []uint64{1, 2, 3}, Workers: 1}
	o.Progress = func(done, _ int) {
		if done == 4 {
			cancel()
		}
	}
	got, err := fgd.Table(ctx, o)
	if err != nil || len(got) != 4 || got[3].Policy != "packing" || got[3].Seed != 1 {
		t.Errorf("%d runs, %v: %+v", len(got), err, got)
	}
}

// TestOtherPlannersAreRefused: who starts tasks later than they arrive has no place here.
func TestOtherPlannersAreRefused(t *testing.T) {
	w := synthetic(2, 1, 1, 60)
	late := planner.Kind{Name: "late", New: func(o planner.Options) (planner.Planner, error) {
		p, err := place.BestFit().New(o)
		return &one{Planner: p}, err
	}}
	if _, err := fgd.Run(late, w.Draw(1)); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("got %v", err)
	}
}

// one plans at every second call.
type one struct {
	planner.Planner
	calls int
}

func (o *one) Plan(now quantity.Instant, out *planner.Out) {
	if o.calls++; o.calls%2 == 0 {
		o.Planner.Plan(now, out)
	}
}

func (o *one) Leave(quantity.Instant, planner.ID) {}
