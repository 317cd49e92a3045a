package easy

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// oracle is EASY written as its definition, for tasks that are counted in devices alone: no index, no memory between plans.
type oracle struct {
	free    []int32
	queue   []planner.Task
	running map[planner.ID]planned
}

type planned struct {
	task  planner.Task
	class int
	end   quantity.Instant
}

type decided struct {
	id    planner.ID
	class int
}

func finish(t planner.Task, class int, at quantity.Instant) quantity.Instant {
	if t.Run == nil {
		return quantity.Never
	}
	return at.Add(t.Run[class])
}

// freeAt is how many devices of a class are free at an instant after now if nothing starts.
func (o *oracle) freeAt(now, at quantity.Instant, class int) int32 {
	n := o.free[class]
	for _, r := range o.running {
		if r.class == class && max(r.end, now+1) <= at {
			n += r.task.Devices
		}
	}
	return n
}

// fastest is the class where t ends first among those that are good.
func (o *oracle) fastest(t planner.Task, now quantity.Instant, good func(class int) bool) int {
	best := -1
	for c := range o.free {
		if t.Classes&(1<<c) != 0 && good(c) && (best < 0 || finish(t, c, now) < finish(t, best, now)) {
			best = c
		}
	}
	return best
}

func (o *oracle) start(i, class int, now quantity.Instant) decided {
	t := o.queue[i]
	o.queue = slices.Delete(o.queue, i, i+1)
	o.free[class] -= t.Devices
	o.running[t.ID] = planned{t, class, finish(t, class, now)}
	return decided{t.ID, class}
}

// reserve is the head's class and time: the instants that count are the ends of what runs.
func (o *oracle) reserve(now quantity.Instant) (class int, at quantity.Instant) {
	head := o.queue[0]
	class = -1
	for c := range o.free {
		if head.Classes&(1<<c) == 0 {
			continue
		}
		first := quantity.Instant(-1)
		for _, r := range o.running {
			if e := max(r.end, now+1); o.freeAt(now, e, c) >= head.Devices && (first < 0 || e < first) {
				first = e
			}
		}
		if first < 0 {
			continue
		}
		if class < 0 || finish(head, c, first) < finish(head, class, at) || finish(head, c, first) == finish(head, class, at) && first < at {
			class, at = c, first
		}
	}
	return class, at
}

func (o *oracle) plan(now quantity.Instant) (out []decided) {
	for len(o.queue) > 0 {
		head := o.queue[0]
		class := o.fastest(head, now, func(c int) bool { return head.Devices <= o.free[c] })
		if class < 0 {
			break
		}
		out = append(out, o.start(0, class, now))
	}
	if len(o.queue) == 0 {
		return out
	}
	kept, at := o.reserve(now)
	for i := 1; i < len(o.queue); {
		t := o.queue[i]
		class := o.fastest(t, now, func(c int) bool {
			return t.Devices <= o.free[c] && (c != kept || finish(t, c, now) <= at || o.freeAt(now, at, c)-t.Devices >= o.queue[0].Devices)
		})
		if class < 0 {
			i++
			continue
		}
		out = append(out, o.start(i, class, now))
	}
	return out
}

// drawn is a random workload of tasks that are counted in devices, on a cluster of several classes.
type drawn struct {
	cluster planner.Cluster
	free    []int32
}

func draw(t *rapid.T) drawn {
	var d drawn
	for c := range rapid.IntRange(1, 3).Draw(t, "classes") {
		d.cluster.Classes = append(d.cluster.Classes, planner.Class{Name: string(rune('a' + c))})
		n := rapid.IntRange(1, 8).Draw(t, "devices")
		d.free = append(d.free, int32(n))
		d.cluster.Nodes = append(d.cluster.Nodes, planner.Node{Devices: slices.Repeat([]uint8{uint8(c)}, n)})
	}
	return d
}

func (d *drawn) task(t *rapid.T, id planner.ID) planner.Task {
	task := planner.Task{ID: id, Share: planner.Whole, Spread: true}
	for task.Classes == 0 {
		task.Classes = uint32(rapid.IntRange(1, 1<<len(d.free)-1).Draw(t, "classes"))
	}
	most := int32(1)
	for c, n := range d.free {
		if task.Classes&(1<<c) != 0 {
			most = max(most, n)
		}
	}
	task.Devices = rapid.Int32Range(1, most).Draw(t, "wants")
	if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
		task.Run = new([planner.MaxClasses]time.Duration)
		for c := range d.free {
			task.Run[c] = time.Duration(rapid.IntRange(0, 30).Draw(t, "run"))
		}
	}
	return task
}

// impossible classes are taken out of a task, as the planner does.
func (d *drawn) possible(task planner.Task) planner.Task {
	for c, n := range d.free {
		if task.Devices > n {
			task.Classes &^= 1 << c
		}
	}
	return task
}

// TestIndexedEqualsPlain drives the planner, its plain pass and the oracle through the same arrivals, ends and
// withdrawals, with several arrivals and ends between plans, and tasks that overrun.
func TestIndexedEqualsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		fast, err := newEasy(planner.Options{Cluster: d.cluster})
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := newEasy(planner.Options{Cluster: d.cluster})
		plain.plain = true
		o := &oracle{free: slices.Clone(d.free), running: map[planner.ID]planned{}}
		now, next := quantity.Instant(0), planner.ID(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2, 3:
				task := d.task(t, next)
				next++
				fast.Arrive(now, task)
				plain.Arrive(now, task)
				o.queue = append(o.queue, d.possible(task))
			case 4, 5:
				var ids []planner.ID
				for id := range o.running {
					ids = append(ids, id)
				}
				slices.Sort(ids)
				if len(ids) == 0 {
					continue
				}
				id := rapid.SampledFrom(ids).Draw(t, "ends")
				r := o.running[id]
				delete(o.running, id)
				o.free[r.class] += r.task.Devices
				fast.Leave(now, id)
				plain.Leave(now, id)
			case 6:
				if len(o.queue) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(o.queue)-1).Draw(t, "withdrawn")
				fast.Leave(now, o.queue[i].ID)
				plain.Leave(now, o.queue[i].ID)
				o.queue = slices.Delete(o.queue, i, i+1)
			default:
				now += quantity.Instant(rapid.IntRange(0, 12).Draw(t, "later"))
				compare(t, now, fast, plain, o)
			}
		}
	})
}

func compare(t *rapid.T, now quantity.Instant, fast, plain *easy, o *oracle) {
	var a, b planner.Out
	fast.Plan(now, &a)
	plain.Plan(now, &b)
	if !slices.Equal(a.Decisions, b.Decisions) || !slices.Equal(a.Devices, b.Devices) {
		t.Fatalf("at %d the index decides %+v %v, the plain pass %+v %v", now, a.Decisions, a.Devices, b.Decisions, b.Devices)
	}
	want := o.plan(now)
	var got []decided
	for _, d := range a.Decisions {
		got = append(got, decided{d.Task, int(d.Class)})
	}
	if !slices.Equal(got, want) {
		t.Fatalf("at %d the planner starts %+v, the definition %+v", now, got, want)
	}
	ra, rb := fast.Reservations(now, nil), plain.Reservations(now, nil)
	if !slices.Equal(ra, rb) {
		t.Fatalf("at %d the index reserves %+v, the plain pass %+v", now, ra, rb)
	}
	if len(o.queue) > 0 {
		if class, at := o.reserve(now); len(ra) != 1 || int(ra[0].Class) != class || ra[0].Start != at {
			t.Fatalf("at %d the planner reserves %+v, the definition class %d at %d", now, ra, class, at)
		}
	}
}
