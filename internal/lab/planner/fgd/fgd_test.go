package fgd

import (
	"math"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// TestScoreIsTheSigmoid compares the limits with the published formula over falls of F in steps that no limit lies on.
func TestScoreIsTheSigmoid(t *testing.T) {
	for _, total := range []int64{1, 7744, 1 << 30} {
		s := scorer{limits: limits(total)}
		for fall := -8000.125; fall <= 8000; fall += 0.25 {
			x := int64(math.Round(fall * planner.Whole * float64(total)))
			if want, got := int(100/(1+math.Exp(-fall/1000))), s.of(x); got != want {
				t.Fatalf("F falls by %v for each of %d typical tasks: score %d, want %d", fall, total, got, want)
			}
		}
		for fall, want := range map[int64]int{0: 50, -1: 49, 1: 50} {
			if got := s.of(fall); got != want {
				t.Errorf("F falls by %d of %d: score %d, want %d", fall, total, got, want)
			}
		}
	}
}

func TestTypical(t *testing.T) {
	a := planner.Task{Devices: 1, Share: 500, Classes: 3, CPU: 4000}
	b := planner.Task{Devices: 2, Share: planner.Whole, Classes: 3, CPU: 4000}
	c := planner.Task{Share: planner.Whole, CPU: 4000}
	d := planner.Task{Devices: 1, Share: planner.Whole, Classes: 1, CPU: 8000}
	var tasks []planner.Task
	add := func(k planner.Task, n int) {
		for range n {
			k.ID = planner.ID(len(tasks))
			k.Memory = int64(len(tasks)) // which does not tell classes apart
			if k.Devices == 0 {
				k.Classes = uint32(len(tasks)) // nor do these without devices
			}
			tasks = append(tasks, k)
		}
	}
	add(a, 40)
	add(b, 40)
	add(c, 14)
	add(d, 6)
	got := Typical(tasks)
	want := []planner.Typical{{Task: b, Count: 40}, {Task: a, Count: 40}, {Task: c, Count: 14}, {Task: d, Count: 6}}
	if !equal(got, want) {
		t.Errorf("94%% are not enough: %+v", got)
	}
	add(c, 20) // 114 of 120 are 95%
	want = []planner.Typical{{Task: b, Count: 40}, {Task: a, Count: 40}, {Task: c, Count: 34}}
	if got := Typical(tasks); !equal(got, want) {
		t.Errorf("95%% are enough: %+v", got)
	}
	if got := Typical(nil); len(got) > 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

func equal(a, b []planner.Typical) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestFragments works F out by hand for one node: two GPUs with 300 and 1000 thousandths left, and 4 processors.
func TestFragments(t *testing.T) {
	c := planner.Cluster{
		Classes: []planner.Class{{Name: "A", Weight: 1000}, {Name: "B", Weight: 1000}},
		Nodes:   []planner.Node{{Name: "n", CPU: 8000, Memory: 8, Devices: []uint8{0, 0}}},
	}
	s := place.NewState(c)
	s.Take(0, &planner.Task{Devices: 1, Share: 700, CPU: 4000, Memory: 8}, []planner.Device{0})
	for _, k := range []struct {
		name string
		task planner.Task
		want int64
	}{
		{"a share that fits on both", planner.Task{Devices: 1, Share: 300, Classes: 1, CPU: 4000}, 0},
		{"a share that fits on one", planner.Task{Devices: 1, Share: 400, Classes: 1}, 300},
		{"one whole device", planner.Task{Devices: 1, Share: 1000, Classes: 3}, 300},
		{"two whole devices", planner.Task{Devices: 2, Share: 1000, Classes: 3}, 1300},
		{"two on any nodes", planner.Task{Devices: 2, Share: 1000, Classes: 3, Spread: true, CPU: 99_000}, 300},
		{"no processors for it", planner.Task{Devices: 1, Share: 300, Classes: 1, CPU: 4001}, 1300},
		{"memory does not count", planner.Task{Devices: 1, Share: 300, Classes: 1, Memory: 9}, 0},
		{"another model", planner.Task{Devices: 1, Share: 300, Classes: 2}, 1300},
		{"no device", planner.Task{Share: 1000, CPU: 1000}, 1300},
	} {
		f := NewFragments([]planner.Typical{{Task: k.task, Count: 3}})
		if got := f.Of(&s.Nodes[0]); got != k.want*planner.Whole*3 {
			t.Errorf("%s: F is %d, want %d for each of three", k.name, got, k.want*planner.Whole)
		}
	}
}

func TestTypicalTasksAreWanted(t *testing.T) {
	c := planner.Cluster{Classes: []planner.Class{{Weight: 1000}}, Nodes: []planner.Node{{Devices: []uint8{0}}}}
	for name, typical := range map[string][]planner.Typical{
		"none": nil, "a count of 0": {{Count: 0}}, "too many": {{Count: maxTotal}, {Count: maxTotal}}, "far too many": {{Count: 1 << 62}},
	} {
		if _, err := Kind().New(planner.Options{Cluster: c, Typical: typical}); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
