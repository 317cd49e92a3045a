package place_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/place"
)

func scored() []planner.Kind {
	return []planner.Kind{place.DotProduct(), place.Clustering(), place.Packing(), place.BestFit(), fgd.Kind()}
}

// clusters draws hosts with and without limits, nodes with one class of devices and with several.
func clusters(t *rapid.T) planner.Cluster {
	c := planner.Cluster{Classes: []planner.Class{
		{Name: "whole", Weight: 1000, Memory: 80}, {Name: "half", Weight: 500, Memory: 40},
		{Name: "slice", Weight: 142, Memory: 10}, {Name: "other whole", Weight: 1000, Memory: 80},
	}}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		n := planner.Node{Name: fmt.Sprint("node-", i)}
		if rapid.Bool().Draw(t, "bounded") {
			n.CPU, n.Memory = rapid.Int64Range(0, 16).Draw(t, "cpu")*1000, rapid.Int64Range(0, 64).Draw(t, "memory")
		}
		if rapid.Bool().Draw(t, "mixed") {
			n.Devices = rapid.SliceOfN(rapid.Uint8Range(0, 3), 0, 6).Draw(t, "devices")
		} else {
			n.Devices = slices.Repeat([]uint8{rapid.Uint8Range(0, 3).Draw(t, "class")}, rapid.IntRange(0, 4).Draw(t, "count"))
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

func tasks(t *rapid.T) planner.Task {
	x := planner.Task{Share: planner.Whole, Classes: rapid.Uint32Range(0, 15).Draw(t, "classes")}
	x.CPU, x.Memory = rapid.Int64Range(0, 6).Draw(t, "cpu")*1000, rapid.Int64Range(0, 20).Draw(t, "memory")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0: // processors alone
	case 1:
		x.Devices = int32(rapid.IntRange(1, 4).Draw(t, "count"))
	case 2:
		x.Devices, x.Spread = int32(rapid.IntRange(1, 5).Draw(t, "count")), true
	default:
		x.Devices, x.Share = 1, int32(rapid.IntRange(1, 10).Draw(t, "share")*100)
	}
	return x
}

func options(t *rapid.T) planner.Options {
	o := planner.Options{Cluster: clusters(t), Seed: rapid.Uint64().Draw(t, "seed")}
	for i := range o.Cluster.Nodes {
		o.Ranks = append(o.Ranks, int32(i))
	}
	o.Ranks = rapid.Permutation(o.Ranks).Draw(t, "ranks")
	for range rapid.IntRange(1, 5).Draw(t, "typical") {
		o.Typical = append(o.Typical, planner.Typical{Task: tasks(t), Count: rapid.Int64Range(1, 9).Draw(t, "count")})
	}
	return o
}

// storm lets tasks of a few shapes come and go, and calls plan now and then; ids are used again.
func storm(t *rapid.T, p planner.Planner, w *world, plan func()) {
	shapes := rapid.SliceOfN(rapid.Custom(tasks), 1, 6).Draw(t, "shapes")
	var known, free []planner.ID
	for next := planner.ID(0); next < 40; {
		switch rapid.IntRange(0, 5).Draw(t, "step") {
		case 0:
			plan()
		case 1, 2:
			if len(known) > 0 {
				i := rapid.IntRange(0, len(known)-1).Draw(t, "who")
				p.Leave(0, known[i])
				w.leave(known[i])
				free = append(free, known[i])
				known = slices.Delete(known, i, i+1)
			}
		default:
			x := rapid.SampledFrom(shapes).Draw(t, "shape")
			if len(free) > 0 {
				x.ID, free = free[0], free[1:]
			} else {
				x.ID = next
			}
			next++
			p.Arrive(0, x)
			if w.possible(x) {
				w.queue = append(w.queue, x)
				known = append(known, x.ID)
			} else {
				var never planner.Out
				p.Plan(0, &never)
				check(t, p, w, &never, x.ID)
				free = append(free, x.ID)
			}
		}
	}
	plan()
}

// check lets the world make the same plan, and compares. refused is a task that was just refused, or -1.
func check(t *rapid.T, p planner.Planner, w *world, got *planner.Out, refused planner.ID) {
	var want planner.Out
	if refused >= 0 {
		want.Decisions = append(want.Decisions, planner.Decision{Verb: planner.Never, Task: refused})
	}
	w.plan(&want)
	if !slices.Equal(got.Decisions, want.Decisions) || !slices.Equal(got.Devices, want.Devices) {
		t.Fatalf("the planner says\n%+v %v, a plain search\n%+v %v", got.Decisions, got.Devices, want.Decisions, want.Devices)
	}
	var again planner.Out
	if p.Plan(0, &again); len(again.Decisions) > 0 {
		t.Fatalf("without news the planner adds %+v", again.Decisions)
	}
}

// TestAgainstPlainSearch: every decision of every kind is that of a search that keeps no scores, no levels and no shapes.
func TestAgainstPlainSearch(t *testing.T) {
	for _, kind := range scored() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				o := options(t)
				p, err := kind.New(o)
				if err != nil {
					t.Fatal(err)
				}
				if rapid.Bool().Draw(t, "forget") {
					place.LimitShapes(p, 1)
				}
				w := newWorld(kind.Name, o)
				storm(t, p, w, func() {
					var got planner.Out
					p.Plan(0, &got)
					check(t, p, w, &got, -1)
				})
			})
		})
	}
}

// TestRandomIsFair: the random planner starts what fits, never oversubscribes, leaves nobody waiting who fits, and picks
// nodes alike often.
func TestRandomIsFair(t *testing.T) {
	c := planner.Cluster{Classes: []planner.Class{{Weight: 1000}}}
	for range 5 {
		c.Nodes = append(c.Nodes, planner.Node{Devices: []uint8{0, 0}})
	}
	nodes, devices := map[int32]int{}, map[planner.Device]int{}
	const runs = 20_000
	p, err := place.Random().New(planner.Options{Cluster: c, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var out planner.Out
	for range runs {
		out.Reset()
		p.Arrive(0, planner.Task{ID: 0, Devices: 1, Share: 300, Classes: 1})
		p.Plan(0, &out)
		nodes[out.Decisions[0].Node]++
		devices[out.Devices[0]]++
		p.Leave(0, 0)
	}
	for node := range int32(5) {
		if n := nodes[node]; n < runs/5-300 || n > runs/5+300 { // five standard deviations are 283
			t.Errorf("node %d was drawn %d times of %d", node, n, runs)
		}
	}
	for device := range planner.Device(10) {
		if n := devices[device]; n < runs/10-220 || n > runs/10+220 { // five are 212
			t.Errorf("device %d was drawn %d times of %d", device, n, runs)
		}
	}
}

func TestRandomPlacesWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options(t)
		p, err := place.Random().New(o)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld("random", o)
		var known []planner.Task
		for id := range planner.ID(30) {
			x := tasks(t)
			x.ID = id
			p.Arrive(0, x)
			if w.possible(x) {
				known = append(known, x)
				w.queue = append(w.queue, x)
			}
			if len(known) > 0 && rapid.Bool().Draw(t, "leave") {
				i := rapid.IntRange(0, len(known)-1).Draw(t, "who")
				p.Leave(0, known[i].ID)
				w.leave(known[i].ID)
				known = slices.Delete(known, i, i+1)
			}
			var out planner.Out
			p.Plan(0, &out)
			for _, d := range out.Decisions {
				if d.Verb == planner.Never {
					continue
				}
				at := slices.IndexFunc(w.queue, func(q planner.Task) bool { return q.ID == d.Task })
				q := w.queue[at]
				if q.Spread {
					q.CPU, q.Memory = 0, 0
				}
				r := &run{q, d.Node, out.Devices[d.From:d.To]}
				for _, device := range r.devices {
					if w.class[device] != d.Class || q.Classes>>d.Class&1 == 0 || !q.Spread && w.node[device] != d.Node {
						t.Fatalf("%+v is put on device %d of node %d and class %d: %+v", q, device, w.node[device], w.class[device], d)
					}
				}
				w.take(r, 1)
				if len(r.devices) != int(q.Devices) || w.bounded(d.Node) && (w.cpu[d.Node] < 0 || w.memory[d.Node] < 0) {
					t.Fatalf("%+v is put where it does not fit: %+v on %v", q, d, r.devices)
				}
				w.running[d.Task] = r
				w.queue = slices.Delete(w.queue, at, at+1)
			}
			for i := range w.queue {
				if w.place(&w.queue[i]) != nil {
					t.Fatalf("%+v fits and waits", w.queue[i])
				}
			}
		}
	})
}
