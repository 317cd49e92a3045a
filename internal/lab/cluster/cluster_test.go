package cluster_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/planner/preempt"
)

const second = quantity.Instant(time.Second)

// two machines of two devices; the second has another class and a host with limits.
func machines() cluster.Machines {
	return cluster.Machines{
		Classes: []planner.Class{{Name: "a", Weight: planner.Whole}, {Name: "b", Weight: planner.Whole}},
		Nodes:   []planner.Node{{Name: "n0", Devices: []uint8{0, 0}}, {Name: "n1", CPU: 4, Memory: 8, Devices: []uint8{1, 1}}},
	}
}

func run(a, b time.Duration) *[planner.MaxClasses]time.Duration {
	return &[planner.MaxClasses]time.Duration{a, b}
}

func make1(t testing.TB, kind planner.Kind, m cluster.Machines) *cluster.Cluster {
	t.Helper()
	p, err := kind.New(planner.Options{Cluster: m, Restore: time.Second, Checkpoint: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return cluster.New(m, p)
}

func TestStory(t *testing.T) {
	c := make1(t, fcfs.Kind(), machines())
	var out cluster.Out
	step := func(now quantity.Instant, in cluster.Input) { c.Step(now, in, &out) }
	step(0, cluster.Arrive(cluster.Task{ID: 0, Devices: 2, Share: planner.Whole, Classes: 3, Run: run(3*time.Second, 2*time.Second)}))
	step(0, cluster.Arrive(cluster.Task{ID: 1, Devices: 3, Share: planner.Whole, Classes: 3}))
	step(0, cluster.Arrive(cluster.Task{ID: 2, Devices: 1, Share: 500, Classes: 2}))
	if len(out.Effects) != 0 {
		t.Fatalf("before the tick there are effects: %+v", out.Effects)
	}
	step(0, cluster.Tick())
	want := []cluster.Effect{
		{Verb: cluster.Never, Task: 1, End: quantity.Never},
		{Verb: cluster.Start, Class: 1, Task: 0, Node: 1, From: 0, To: 2, End: 2 * second},
	}
	if !slices.Equal(out.Effects, want) || !slices.Equal(out.Devices, []cluster.Device{2, 3}) {
		t.Fatalf("effects %+v on %v, want %+v", out.Effects, out.Devices, want)
	}
	out.Reset()
	step(4*second, cluster.End(0, cluster.Expired))
	step(4*second, cluster.Tick())
	if len(out.Effects) != 1 || out.Effects[0].Task != 2 || out.Effects[0].End != quantity.Never {
		t.Fatalf("the next one starts with no planned end, got %+v", out.Effects)
	}
	step(5*second, cluster.Cancel(2))
	n := c.Counts()
	if n.Arrived != 3 || n.Started != 2 || n.Never != 1 || n.Cancelled != 1 || n.Ended != [3]int64{0, 0, 1} || n.Waiting != 0 ||
		n.Running != 0 || n.Ticks != 2 {
		t.Errorf("counts %+v", n)
	}
	// Task 0 waited for nothing, task 2 for 4 s: 4,000 ms lie from 2^11 to below 2^12.
	if n.Waits[0] != 1 || n.Waits[12] != 1 {
		t.Errorf("waits %v", n.Waits)
	}
	// Two devices for 4 s and a half for 1 s.
	if a := c.Area(6*second, 1); a != 8500 || c.Area(6*second, 0) != 0 {
		t.Errorf("area %d and %d, want 8500 and 0", a, c.Area(6*second, 0))
	}
	if c.Digest() != 0 {
		t.Errorf("nobody is there and the digest is %x", c.Digest())
	}
}

// planned is a planner that says what a test wants.
type planned struct{ decisions []planner.Decision }

func (*planned) Arrive(quantity.Instant, planner.Task) {}
func (*planned) Leave(quantity.Instant, planner.ID)    {}
func (p *planned) Plan(_ quantity.Instant, out *planner.Out) {
	out.Decisions = append(out.Decisions, p.decisions...)
	out.Devices = append(out.Devices, 0, 1, 2, 3, 0, 0)
	p.decisions = nil
}
func (*planned) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	return out
}

// TestBrokenPromises has a planner or a driver break each rule, and wants the process to stop with a text that says which.
func TestBrokenPromises(t *testing.T) {
	start := func(id planner.ID, class uint8, node, from, to int32) planner.Decision {
		return planner.Decision{Verb: planner.Start, Task: id, Class: class, Node: node, From: from, To: to}
	}
	whole := func(id cluster.ID, devices int32) cluster.Task {
		return cluster.Task{ID: id, Devices: devices, Share: planner.Whole, Classes: 1}
	}
	for _, c := range []struct {
		name   string
		inputs []cluster.Input
		say    []planner.Decision
		want   string
	}{
		{"an unknown task", nil, []planner.Decision{start(7, 0, 0, 0, 1)}, "task 7 was decided on and is not known"},
		{"twice", []cluster.Input{cluster.Arrive(whole(0, 1))}, []planner.Decision{start(0, 0, 0, 0, 1), start(0, 0, 0, 1, 2)},
			"task 0 is to be started and does not wait"},
		{"too few devices", []cluster.Input{cluster.Arrive(whole(0, 2))}, []planner.Decision{start(0, 0, 0, 0, 1)},
			"wants 2 devices and is given 1"},
		{"a class it may not use", []cluster.Input{cluster.Arrive(whole(0, 1))}, []planner.Decision{start(0, 1, 1, 2, 3)},
			"may not use devices of class 1"},
		{"a device of another class", []cluster.Input{cluster.Arrive(whole(0, 1))}, []planner.Decision{start(0, 0, 1, 2, 3)},
			"device 2, which is of class 1 and not 0"},
		{"another node", []cluster.Input{cluster.Arrive(whole(0, 1))}, []planner.Decision{start(0, 0, 1, 0, 1)},
			"put on node 1 and on device 0 of node 0"},
		{"no such node", []cluster.Input{cluster.Arrive(whole(0, 1))}, []planner.Decision{start(0, 0, 2, 0, 1)},
			"node 2 and there is none"},
		{"a device that is taken", []cluster.Input{cluster.Arrive(whole(0, 1)), cluster.Arrive(whole(1, 1))},
			[]planner.Decision{start(0, 0, 0, 0, 1), start(1, 0, 0, 0, 1)}, "device 0, where 0 thousandths are free and it wants 1000"},
		{"a device twice", []cluster.Input{cluster.Arrive(whole(0, 2))}, []planner.Decision{start(0, 0, 0, 4, 6)},
			"device 0, where 0 thousandths are free"},
		{"a host", []cluster.Input{cluster.Arrive(cluster.Task{ID: 0, Devices: 1, Share: 1, Classes: 2, CPU: 5})},
			[]planner.Decision{start(0, 1, 1, 2, 3)}, "overfills the host of node 1: 1 thousandths of a core"},
		{"preempts who waits", []cluster.Input{cluster.Arrive(whole(0, 1))}, []planner.Decision{{Verb: planner.Preempt}},
			"to be preempted and does not run"},
		{"never for who runs", []cluster.Input{cluster.Arrive(whole(0, 1))},
			[]planner.Decision{start(0, 0, 0, 0, 1), {Verb: planner.Never}}, "can never run and does"},
		{"arrives twice", []cluster.Input{cluster.Arrive(whole(0, 1)), cluster.Arrive(whole(0, 1))}, nil, "arrives and is there already"},
		{"no share", []cluster.Input{cluster.Arrive(cluster.Task{Devices: 1})}, nil, "0 thousandths of each"},
		{"ends unknown", []cluster.Input{cluster.End(3, cluster.Finished)}, nil, "task 3 ended and is not known"},
		{"ends waiting", []cluster.Input{cluster.Arrive(whole(0, 1)), cluster.End(0, cluster.Finished)}, nil,
			"task 0 ended and does not run"},
		{"returns unasked", []cluster.Input{cluster.Arrive(whole(0, 1)), cluster.Return(whole(0, 1))}, nil, "returned and was not told to"},
		{"no kind", []cluster.Input{{}}, nil, "an input of kind 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				var broken invariant.Broken
				if err, _ := recover().(error); !errors.As(err, &broken) || !strings.Contains(broken.Message, c.want) {
					t.Errorf("got %v, want a broken invariant with %q", err, c.want)
				}
			}()
			a := cluster.New(machines(), &planned{decisions: c.say})
			var out cluster.Out
			for _, in := range c.inputs {
				a.Step(1, in, &out)
			}
			a.Step(1, cluster.Tick(), &out)
		})
	}
	t.Run("time goes back", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("time went back and nobody minded")
			}
		}()
		a := cluster.New(machines(), &planned{})
		a.Step(2, cluster.Tick(), &cluster.Out{})
		a.Step(1, cluster.Tick(), &cluster.Out{})
	})
}

// TestPreemption: a long task is told to leave for one that comes later, holds its devices until it returns, and is queued.
func TestPreemption(t *testing.T) {
	m := cluster.Machines{Classes: []planner.Class{{Name: "a"}}, Nodes: []planner.Node{{Devices: []uint8{0}}}}
	c := make1(t, preempt.Migrate(), m)
	var out cluster.Out
	long := cluster.Task{ID: 0, Devices: 1, Share: planner.Whole, Classes: 1, Run: run(10*time.Hour, 0)}
	short := cluster.Task{ID: 1, Devices: 1, Share: planner.Whole, Classes: 1, Run: run(time.Minute, 0)}
	hour := 3600 * second
	c.Step(0, cluster.Arrive(long), &out)
	c.Step(0, cluster.Tick(), &out)
	out.Reset()
	c.Step(hour, cluster.Arrive(short), &out)
	c.Step(hour, cluster.Tick(), &out)
	if len(out.Effects) != 1 || out.Effects[0].Verb != cluster.Preempt || out.Effects[0].Task != 0 || c.Counts().Running != 1 {
		t.Fatalf("an hour of service gives way to none: got %+v", out.Effects)
	}
	out.Reset()
	long.Run = run(9*time.Hour, 0)
	c.Step(hour+second, cluster.Return(long), &out)
	c.Step(hour+second, cluster.Tick(), &out)
	if len(out.Effects) != 1 || out.Effects[0].Verb != cluster.Start || out.Effects[0].Task != 1 || c.Counts().Returned != 1 ||
		c.Counts().Waiting != 1 {
		t.Fatalf("the short one starts where it left: got %+v", out.Effects)
	}
	if at := c.Wake(hour + second); at <= hour+second || at == quantity.Never {
		t.Errorf("while somebody waits it wants to be asked again, not at %d", at)
	}
	if at := make1(t, fcfs.Kind(), m).Wake(0); at != quantity.Never {
		t.Errorf("first-come wants to be woken at %d", at)
	}
}

// TestSameInstant: ends and cancels of one instant in another order give the same effects and the same digest.
func TestSameInstant(t *testing.T) {
	kinds := all.Kinds()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		m := machines()
		var cs [2]*cluster.Cluster
		for i := range cs {
			p, err := kind.New(planner.Options{Cluster: m, Typical: typical})
			if err != nil {
				t.Fatal(err)
			}
			cs[i] = cluster.New(m, p)
		}
		present := map[cluster.ID]bool{}
		var now quantity.Instant
		for range rapid.IntRange(1, 10).Draw(t, "instants") {
			now += quantity.Instant(rapid.IntRange(1, 5).Draw(t, "later"))
			var ins []cluster.Input
			for id := range cluster.ID(8) {
				if present[id] && rapid.Bool().Draw(t, "cancel") {
					ins = append(ins, cluster.Cancel(id))
					delete(present, id)
				}
			}
			arrivals := len(ins)
			for id := range cluster.ID(8) {
				if !present[id] && rapid.Bool().Draw(t, "arrive") {
					ins = append(ins, cluster.Arrive(cluster.Task{
						ID: id, Devices: int32(rapid.IntRange(1, 2).Draw(t, "devices")), Share: planner.Whole,
						Spread:  rapid.Bool().Draw(t, "spread"),
						Classes: uint32(rapid.IntRange(1, 3).Draw(t, "classes")), Run: run(time.Duration(rapid.IntRange(0, 9).Draw(t, "a")),
							time.Duration(rapid.IntRange(0, 9).Draw(t, "b"))),
					}))
					present[id] = true
				}
			}
			var outs [2]cluster.Out
			for i, c := range cs {
				for _, in := range ins {
					c.Step(now, in, &outs[i])
				}
				c.Step(now, cluster.Tick(), &outs[i])
				slices.Reverse(ins[:arrivals])
			}
			if !slices.Equal(outs[0].Effects, outs[1].Effects) || !slices.Equal(outs[0].Devices, outs[1].Devices) ||
				cs[0].Digest() != cs[1].Digest() {
				t.Fatalf("%s: %+v and %+v", kind.Name, outs[0], outs[1])
			}
			for _, e := range outs[0].Effects {
				if e.Verb == cluster.Never {
					delete(present, e.Task)
				}
			}
		}
	})
}

func TestInputIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(cluster.Input{}); n > 64 {
		t.Errorf("an input has %d bytes, and is passed by value: at most 64", n)
	}
}

// TestNoAllocation runs a thousand instants of each planner after its tables have grown.
func TestNoAllocation(t *testing.T) {
	for _, kind := range all.Kinds() {
		if kind.Preempts {
			continue // the loop knows no stops; the tests of planner/all count theirs
		}
		t.Run(kind.Name, func(t *testing.T) {
			l := newLoop(t, kind, 256, parallel)
			l.backlog = 100
			for l.events < 20_000 {
				if l.plan(); l.c.Counts().Waiting < l.backlog {
					l.arrive()
				} else {
					l.instant()
				}
			}
			n := testing.AllocsPerRun(5, func() {
				for range 200 {
					l.instant()
				}
			})
			if n > 0 {
				t.Errorf("%.0f allocations in 200 instants, want none", n)
			}
		})
	}
}
