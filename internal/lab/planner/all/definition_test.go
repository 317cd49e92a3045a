package all_test

import (
	"cmp"
	"slices"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Waiter is a task that waits. Its Task has only classes that could run it; Seq numbers arrivals.
type Waiter struct {
	Task  planner.Task
	Seq   int64
	Since quantity.Instant
}

// Rank of a task that waits, at an instant.
type Rank func(now quantity.Instant, w *Waiter) int64

// Definition is list scheduling by a rank, written as it is defined, for tasks that are counted in devices alone: no index,
// and no memory between plans.
type Definition struct {
	// First ranks those who wait, the lowest first, of one rank the one that came first; Behind those behind the first that
	// does not fit, nil where that is the same order.
	First, Behind Rank
	// Keeps: the first that does not fit has a reservation as EASY has it. Otherwise it is passed over.
	Keeps bool

	free    []int32 // by class
	queue   []Waiter
	running map[planner.ID]planned
}

type planned struct {
	devices int32
	class   int
	end     quantity.Instant
}

type decided struct {
	id    planner.ID
	class int
}

func finish(t *planner.Task, class int, at quantity.Instant) quantity.Instant {
	if t.Run == nil {
		return quantity.Never
	}
	return at.Add(t.Run[class])
}

// arrive takes a task in, with the classes that could run it.
func (d *Definition) arrive(now quantity.Instant, t planner.Task, total []int32) {
	for c, n := range total {
		if t.Devices > n {
			t.Classes &^= 1 << c
		}
	}
	d.queue = append(d.queue, Waiter{Task: t, Seq: int64(t.ID), Since: now})
}

// end is of a task that runs.
func (d *Definition) end(id planner.ID) {
	d.free[d.running[id].class] += d.running[id].devices
	delete(d.running, id)
}

// sort puts those who wait into the order of a rank.
func (d *Definition) sort(now quantity.Instant, rank Rank) {
	slices.SortFunc(d.queue, func(a, b Waiter) int {
		return cmp.Or(cmp.Compare(rank(now, &a), rank(now, &b)), cmp.Compare(a.Seq, b.Seq))
	})
}

// freeAt is how many devices of a class are free at an instant after now if nothing starts.
func (d *Definition) freeAt(now, at quantity.Instant, class int) int32 {
	n := d.free[class]
	for _, r := range d.running {
		if r.class == class && max(r.end, now+1) <= at {
			n += r.devices
		}
	}
	return n
}

// fastest is the class where t ends first among those that are good, -1 if none is.
func (d *Definition) fastest(t *planner.Task, now quantity.Instant, good func(class int) bool) int {
	best := -1
	for c := range d.free {
		if t.Classes&(1<<c) != 0 && t.Devices <= d.free[c] && good(c) && (best < 0 || finish(t, c, now) < finish(t, best, now)) {
			best = c
		}
	}
	return best
}

func (d *Definition) start(i, class int, now quantity.Instant) decided {
	t := d.queue[i].Task
	d.queue = slices.Delete(d.queue, i, i+1)
	d.free[class] -= t.Devices
	d.running[t.ID] = planned{t.Devices, class, finish(&t, class, now)}
	return decided{t.ID, class}
}

// reserve is class and time of a task that fits nowhere: the instants that count are the ends of what runs.
func (d *Definition) reserve(now quantity.Instant, t *planner.Task) (class int, at quantity.Instant) {
	class = -1
	for c := range d.free {
		if t.Classes&(1<<c) == 0 {
			continue
		}
		first := quantity.Instant(-1)
		for _, r := range d.running {
			if e := max(r.end, now+1); d.freeAt(now, e, c) >= t.Devices && (first < 0 || e < first) {
				first = e
			}
		}
		if first >= 0 && (class < 0 || finish(t, c, first) < finish(t, class, at) || finish(t, c, first) == finish(t, class, at) &&
			first < at) {
			class, at = c, first
		}
	}
	return class, at
}

func anywhere(int) bool { return true }

func (d *Definition) plan(now quantity.Instant) (out []decided) {
	d.sort(now, d.First)
	for i := 0; i < len(d.queue); {
		if class := d.fastest(&d.queue[i].Task, now, anywhere); class >= 0 {
			out = append(out, d.start(i, class, now))
			continue
		}
		if d.Keeps {
			return d.behind(now, d.queue[i], out)
		}
		i++
	}
	return out
}

// behind starts those behind a task that does not fit.
func (d *Definition) behind(now quantity.Instant, blocked Waiter, out []decided) []decided {
	if d.Behind != nil {
		d.sort(now, d.Behind)
	}
	kept, at := d.reserve(now, &blocked.Task)
	for i := 0; i < len(d.queue); {
		t := &d.queue[i].Task
		class := d.fastest(t, now, func(c int) bool {
			return c != kept || finish(t, c, now) <= at || d.freeAt(now, at, c)-t.Devices >= blocked.Task.Devices
		})
		if t.ID == blocked.Task.ID || class < 0 {
			i++
			continue
		}
		out = append(out, d.start(i, class, now))
	}
	return out
}

// Against drives planners of one cluster and their definition through the same arrivals, ends and withdrawals, with several of them
// between plans, and tasks that overrun. What the first decides must be what the definition does, and the others must agree with it.
func Against(t *rapid.T, d Definition, of func(planner.Options) ([]planner.Planner, error)) {
	var c planner.Cluster
	var total []int32
	for i := range rapid.IntRange(1, 3).Draw(t, "classes") {
		n := rapid.IntRange(1, 8).Draw(t, "devices")
		c.Classes = append(c.Classes, planner.Class{Name: string(rune('a' + i))})
		c.Nodes = append(c.Nodes, planner.Node{Devices: slices.Repeat([]uint8{uint8(i)}, n)})
		total = append(total, int32(n))
	}
	planners, err := of(planner.Options{Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	d.free, d.queue, d.running = slices.Clone(total), nil, map[planner.ID]planned{}
	now, next := quantity.Instant(0), planner.ID(0)
	leave := func(id planner.ID) {
		for _, p := range planners {
			p.Leave(now, id)
		}
	}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0, 1, 2, 3:
			task := counted(t, next, total)
			next++
			for _, p := range planners {
				p.Arrive(now, task)
			}
			d.arrive(now, task, total)
		case 4, 5:
			var ids []planner.ID
			for id := range d.running {
				ids = append(ids, id)
			}
			if len(ids) == 0 {
				continue
			}
			slices.Sort(ids)
			id := rapid.SampledFrom(ids).Draw(t, "ends")
			d.end(id)
			leave(id)
		case 6:
			if len(d.queue) > 0 {
				i := rapid.IntRange(0, len(d.queue)-1).Draw(t, "withdrawn")
				leave(d.queue[i].Task.ID)
				d.queue = slices.Delete(d.queue, i, i+1)
			}
		default:
			now += quantity.Instant(rapid.IntRange(0, 12).Draw(t, "later"))
			d.compare(t, now, planners)
		}
	}
}

// compare lets all plan.
func (d *Definition) compare(t *rapid.T, now quantity.Instant, planners []planner.Planner) {
	var out planner.Out
	planners[0].Plan(now, &out)
	var got []decided
	for _, x := range out.Decisions {
		got = append(got, decided{x.Task, int(x.Class)})
	}
	if want := d.plan(now); !slices.Equal(got, want) {
		t.Fatalf("at %d the planner starts %+v, the definition %+v", now, got, want)
	}
	reserved := planners[0].Reservations(now, nil)
	for _, p := range planners[1:] {
		var other planner.Out
		p.Plan(now, &other)
		if !slices.Equal(out.Decisions, other.Decisions) || !slices.Equal(out.Devices, other.Devices) {
			t.Fatalf("at %d one planner decides %+v %v, another %+v %v", now, out.Decisions, out.Devices, other.Decisions, other.Devices)
		}
		if r := p.Reservations(now, nil); !slices.Equal(reserved, r) {
			t.Fatalf("at %d one planner reserves %+v, another %+v", now, reserved, r)
		}
	}
	d.holds(t, now, reserved)
}

// holds: a rule that keeps a place has one reservation while somebody waits, and the others none.
func (d *Definition) holds(t *rapid.T, now quantity.Instant, got []planner.Reservation) {
	if !d.Keeps || len(d.queue) == 0 {
		if len(got) > 0 {
			t.Fatalf("at %d the planner reserves %+v", now, got)
		}
		return
	}
	d.sort(now, d.First)
	if class, at := d.reserve(now, &d.queue[0].Task); len(got) != 1 || int(got[0].Class) != class || got[0].Start != at ||
		got[0].Task != d.queue[0].Task.ID {
		t.Fatalf("at %d the planner reserves %+v, the definition task %d, class %d at %d", now, got, d.queue[0].Task.ID, class, at)
	}
}

// counted is a task that some class could run, and for which counting devices is enough.
func counted(t *rapid.T, id planner.ID, total []int32) planner.Task {
	task := planner.Task{ID: id, Share: planner.Whole, Spread: true}
	task.Classes = uint32(rapid.IntRange(1, 1<<len(total)-1).Draw(t, "classes"))
	most := int32(1)
	for c, n := range total {
		if task.Classes&(1<<c) != 0 {
			most = max(most, n)
		}
	}
	task.Devices = rapid.Int32Range(1, most).Draw(t, "wants")
	if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
		task.Run = new([planner.MaxClasses]time.Duration)
		for c := range total {
			task.Run[c] = time.Duration(rapid.IntRange(0, 30).Draw(t, "run"))
		}
	}
	return task
}
