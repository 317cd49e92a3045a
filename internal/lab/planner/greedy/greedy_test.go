package greedy_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/planner/greedy"
)

// started is a decision of the definitions.
type started struct {
	id    planner.ID
	class uint8
}

// world is a cluster that is counted by class, with the definitions of the three planners that look at nothing but room.
type world struct {
	classes []planner.Class
	free    []int32
	queue   []planner.Task
	running map[planner.ID]started
	sizes   map[planner.ID]int32
}

// choose is the class with room that the rank prefers, the lowest of equals; -1 if none has room.
func (w *world) choose(t planner.Task, rank func(t planner.Task, c int) int64) int {
	best := -1
	for c, n := range w.free {
		if t.Classes&(1<<c) != 0 && t.Devices <= n && (best < 0 || rank(t, c) < rank(t, best)) {
			best = c
		}
	}
	return best
}

// plan goes through the queue; a strict one stops at the first that has to wait.
func (w *world) plan(strict bool, rank func(t planner.Task, c int) int64) (out []started) {
	for i := 0; i < len(w.queue); {
		task := w.queue[i]
		c := w.choose(task, rank)
		if c < 0 && strict {
			return out
		}
		if c < 0 {
			i++
			continue
		}
		w.free[c] -= task.Devices
		w.queue = slices.Delete(w.queue, i, i+1)
		w.running[task.ID], w.sizes[task.ID] = started{task.ID, uint8(c)}, task.Devices
		out = append(out, w.running[task.ID])
	}
	return out
}

func byRun(t planner.Task, c int) int64 {
	if t.Run == nil {
		return 0
	}
	return int64(t.Run[c])
}

func TestAgainstDefinition(t *testing.T) {
	for _, kind := range []planner.Kind{fcfs.Kind(), greedy.Skip(), greedy.StaticMIG()} {
		t.Run(kind.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { definition(t, kind) })
		})
	}
}

func definition(t *rapid.T, kind planner.Kind) {
	w := &world{running: map[planner.ID]started{}, sizes: map[planner.ID]int32{}}
	c := planner.Cluster{}
	for range rapid.IntRange(1, 3).Draw(t, "classes") {
		n := rapid.IntRange(1, 6).Draw(t, "devices")
		class := uint8(len(c.Classes))
		// Equal memories must be told apart by weight, and equal weights by the class itself.
		c.Classes = append(c.Classes, planner.Class{Memory: quantity.Amount(rapid.IntRange(1, 2).Draw(t, "memory")),
			Weight: int64(rapid.IntRange(1, 2).Draw(t, "weight"))})
		c.Nodes = append(c.Nodes, planner.Node{Devices: slices.Repeat([]uint8{class}, n)})
		w.free = append(w.free, int32(n))
	}
	w.classes = c.Classes
	rank := byRun
	if kind.Name == "staticmig" {
		rank = func(_ planner.Task, c int) int64 { return int64(w.classes[c].Memory)*10 + w.classes[c].Weight }
	}
	p, err := kind.New(planner.Options{Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	var now quantity.Instant
	var next planner.ID
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 8).Draw(t, "what") {
		case 0, 1, 2, 3:
			task := planner.Task{ID: next, Share: planner.Whole, Spread: true,
				Classes: uint32(rapid.IntRange(1, 1<<len(w.free)-1).Draw(t, "may"))}
			task.Devices = int32(rapid.IntRange(1, 6).Draw(t, "wants"))
			if rapid.Bool().Draw(t, "known") {
				task.Run = &[planner.MaxClasses]time.Duration{}
				for c := range w.free {
					task.Run[c] = time.Duration(rapid.IntRange(0, 3).Draw(t, "run"))
				}
			}
			next++
			p.Arrive(now, task)
			if slices.ContainsFunc(c.Nodes, func(n planner.Node) bool {
				return int(task.Devices) <= len(n.Devices) && task.Classes&(1<<n.Devices[0]) != 0
			}) {
				w.queue = append(w.queue, task)
			}
		case 4, 5:
			for id := range next {
				if r, runs := w.running[id]; runs && rapid.Bool().Draw(t, "ends") {
					w.free[r.class] += w.sizes[id]
					delete(w.running, id)
					p.Leave(now, id)
				}
			}
		case 6:
			if len(w.queue) > 0 {
				i := rapid.IntRange(0, len(w.queue)-1).Draw(t, "withdrawn")
				p.Leave(now, w.queue[i].ID)
				w.queue = slices.Delete(w.queue, i, i+1)
			}
		default:
			now++
			var out planner.Out
			p.Plan(now, &out)
			var got []started
			for _, d := range out.Decisions {
				if d.Verb == planner.Start {
					got = append(got, started{d.Task, d.Class})
				}
			}
			if want := w.plan(kind.Name == "fcfs", rank); !slices.Equal(got, want) {
				t.Fatalf("at %d it starts %+v, the definition %+v", now, got, want)
			}
		}
	}
}
