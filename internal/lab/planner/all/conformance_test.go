package all_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Run checks a kind.
func Run(t *testing.T, kind planner.Kind) {
	t.Helper()
	t.Run("card", func(t *testing.T) { card(t, kind) })
	t.Run("any life", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { life(t, kind) })
	})
	t.Run("ends of one instant in any order", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { anyOrder(t, kind) })
	})
	t.Run("a broken cluster is refused", func(t *testing.T) {
		_, err := kind.New(planner.Options{Cluster: planner.Cluster{
			Classes: []planner.Class{{Name: "a"}}, Nodes: []planner.Node{{Devices: []uint8{0, 3}}},
		}})
		if errkind.Of(err) != errkind.Invalid {
			t.Errorf("device 1 is of class 3 and there is none: got %v, want an error of kind Invalid", err)
		}
	})
	t.Run("no allocation in steady state", func(t *testing.T) { allocations(t, kind) })
}

// card checks what a kind says of itself.
func card(t *testing.T, kind planner.Kind) {
	if kind.Name == "" || kind.Summary == "" || kind.New == nil {
		t.Errorf("a kind has a name, a summary and a way to make one: %+v", kind)
	}
}

// life arrives, ends, withdraws and plans at random, then lets everything run out.
func life(t *rapid.T, kind planner.Kind) {
	w := newWorld(t, kind)
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0, 1, 2, 3:
			w.arrive(t)
		case 4, 5, 6:
			if ids := w.in(running, leaving); len(ids) > 0 {
				w.end(rapid.SampledFrom(ids).Draw(t, "ends"))
			}
		case 7:
			if ids := w.in(waiting); len(ids) > 0 {
				w.end(rapid.SampledFrom(ids).Draw(t, "withdrawn"))
			}
		case 8:
			w.now += quantity.Instant(rapid.Int64Range(1, 20).Draw(t, "later") * int64(w.unit))
			w.plan(t)
		case 9:
			w.plan(t)
		}
	}
	w.drain(t)
}

// drain ends all that runs until nobody waits: on an empty cluster somebody must start.
func (w *world) drain(t *rapid.T) {
	w.plan(t)
	for len(w.in(waiting, running, leaving)) > 0 {
		for _, id := range w.in(running, leaving) {
			w.end(id)
		}
		w.now += quantity.Instant(w.unit)
		before := len(w.in(waiting))
		w.plan(t)
		if before > 0 && len(w.in(waiting)) == before {
			t.Fatalf("nothing runs, %d tasks wait that could, and none is started: %+v", before, w.tasks)
		}
	}
}

// anyOrder brings two planners of a kind to the same state, ends the same tasks in opposite orders, and wants one plan.
func anyOrder(t *rapid.T, kind planner.Kind) {
	w := newWorld(t, kind)
	for range rapid.IntRange(1, 12).Draw(t, "first") {
		w.arrive(t)
	}
	w.plan(t)
	for range rapid.IntRange(0, 12).Draw(t, "then") {
		w.arrive(t)
	}
	w.plan(t)
	w.now += quantity.Instant(w.unit)
	ids := rapid.SliceOfDistinct(rapid.IntRange(0, 24), func(i int) int { return i }).Draw(t, "ends")
	ids = slices.DeleteFunc(ids, func(i int) bool { return i >= len(w.tasks) || w.tasks[i].state != running })
	for _, id := range ids {
		w.forget(planner.ID(id))
		w.a.Leave(w.now, planner.ID(id))
	}
	slices.Reverse(ids)
	for _, id := range ids {
		w.b.Leave(w.now, planner.ID(id))
	}
	w.plan(t)
}

// allocations puts a planner through the same rounds until its tables have grown, and counts.
func allocations(t *testing.T, kind planner.Kind) {
	c := planner.Cluster{Classes: []planner.Class{{Name: "a", Weight: planner.Whole, Memory: 80},
		{Name: "b", Weight: planner.Whole, Memory: 40}}}
	for i := range 8 {
		c.Nodes = append(c.Nodes, planner.Node{Devices: []uint8{uint8(i % 2), uint8(i % 2), 0, 1}})
	}
	for _, gangs := range []bool{false, true} {
		p, err := kind.New(planner.Options{Cluster: c, Seed: 1, Typical: typical(), Restore: time.Second, Checkpoint: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var out planner.Out
		var state [64]byte // 0 absent, 1 waiting, 2 running, 3 leaving
		now, turn := quantity.Instant(0), 0
		run := [planner.MaxClasses]time.Duration{5 * time.Second, 7 * time.Second}
		round := func() {
			for i := range state {
				id := planner.ID(i)
				now += quantity.Instant(time.Second / 4)
				turn++
				switch {
				case state[i] == 0:
					task := planner.Task{ID: id, Devices: int32(1 + turn%3), Share: planner.Whole, Spread: !gangs, Classes: 3, Run: &run}
					p.Arrive(now, task)
					state[i] = 1
				case state[i] >= 2:
					p.Leave(now, id)
					state[i] = 0
				}
				out.Reset()
				p.Plan(now, &out)
				for _, d := range out.Decisions {
					state[d.Task] = 2
					if d.Verb == planner.Preempt {
						state[d.Task] = 3
					}
				}
			}
		}
		for range 50 {
			round()
		}
		if n := testing.AllocsPerRun(20, round); n > 0 {
			t.Errorf("gangs %v: %.1f allocations in a round of %d events, want none", gangs, n, len(state))
		}
	}
}
