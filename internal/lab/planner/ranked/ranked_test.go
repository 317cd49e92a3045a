package ranked_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/plannertest"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// aging is a rank that turns around as time goes by.
func aging(now quantity.Instant, e *book.Entry) int64 {
	return int64(e.Task.Devices)*7 - int64(now.Sub(e.Since))*int64(1+e.Task.ID%3)
}

// rules are one of each sort.
func rules() map[string]ranked.Rule {
	return map[string]ranked.Rule{
		"passes over":           {First: ranked.Shortest},
		"keeps":                 {First: ranked.Shortest, Keeps: true},
		"another order behind":  {First: ranked.Earliest, Behind: ranked.Shortest, Keeps: true},
		"ages":                  {First: aging, Ages: true},
		"ages and keeps":        {First: aging, Ages: true, Keeps: true},
		"many of the same rank": {First: func(_ quantity.Instant, e *book.Entry) int64 { return int64(e.Task.Devices) }, Keeps: true},
	}
}

func TestConformance(t *testing.T) {
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			plannertest.Run(t, ranked.Kind("x", "y", func(planner.Cluster) ranked.Rule { return rule }))
		})
	}
}

// definition is a ranked planner as it is defined, for tasks that are counted in devices alone: no index, and no memory
// between plans.
type definition struct {
	rule    ranked.Rule
	free    []int32
	queue   []book.Entry
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

// sort puts those who wait into the order of a rank.
func (d *definition) sort(now quantity.Instant, rank ranked.Rank) {
	slices.SortFunc(d.queue, func(a, b book.Entry) int {
		return cmp.Or(cmp.Compare(rank(now, &a), rank(now, &b)), cmp.Compare(a.Seq, b.Seq))
	})
}

// freeAt is how many devices of a class are free at an instant after now if nothing starts.
func (d *definition) freeAt(now, at quantity.Instant, class int) int32 {
	n := d.free[class]
	for _, r := range d.running {
		if r.class == class && max(r.end, now+1) <= at {
			n += r.devices
		}
	}
	return n
}

// fastest is the class where t ends first among those that are good, -1 if none is.
func (d *definition) fastest(t *planner.Task, now quantity.Instant, good func(class int) bool) int {
	best := -1
	for c := range d.free {
		if t.Classes&(1<<c) != 0 && t.Devices <= d.free[c] && good(c) && (best < 0 || finish(t, c, now) < finish(t, best, now)) {
			best = c
		}
	}
	return best
}

func (d *definition) start(i, class int, now quantity.Instant) decided {
	t := d.queue[i].Task
	d.queue = slices.Delete(d.queue, i, i+1)
	d.free[class] -= t.Devices
	d.running[t.ID] = planned{t.Devices, class, finish(&t, class, now)}
	return decided{t.ID, class}
}

// reserve is class and time of a task that fits nowhere: the instants that count are the ends of what runs.
func (d *definition) reserve(now quantity.Instant, t *planner.Task) (class int, at quantity.Instant) {
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
		if first >= 0 && (class < 0 || finish(t, c, first) < finish(t, class, at) || finish(t, c, first) == finish(t, class, at) && first < at) {
			class, at = c, first
		}
	}
	return class, at
}

func anywhere(int) bool { return true }

func (d *definition) plan(now quantity.Instant) (out []decided) {
	d.sort(now, d.rule.First)
	for i := 0; i < len(d.queue); {
		if class := d.fastest(&d.queue[i].Task, now, anywhere); class >= 0 {
			out = append(out, d.start(i, class, now))
			continue
		}
		if d.rule.Keeps {
			return d.behind(now, d.queue[i], out)
		}
		i++
	}
	return out
}

// behind starts those behind a task that does not fit.
func (d *definition) behind(now quantity.Instant, blocked book.Entry, out []decided) []decided {
	if d.rule.Behind != nil {
		d.sort(now, d.rule.Behind)
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

// TestAgainstDefinition drives planners and definitions through the same arrivals, ends and withdrawals, with several of them
// between plans, and tasks that overrun.
func TestAgainstDefinition(t *testing.T) {
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { against(t, rule) }) })
	}
}

func against(t *rapid.T, rule ranked.Rule) {
	d := &definition{rule: rule, running: map[planner.ID]planned{}}
	var c planner.Cluster
	for i := range rapid.IntRange(1, 3).Draw(t, "classes") {
		n := rapid.IntRange(1, 8).Draw(t, "devices")
		c.Classes = append(c.Classes, planner.Class{Name: string(rune('a' + i))})
		c.Nodes = append(c.Nodes, planner.Node{Devices: slices.Repeat([]uint8{uint8(i)}, n)})
		d.free = append(d.free, int32(n))
	}
	p, err := ranked.New(planner.Options{Cluster: c}, rule)
	if err != nil {
		t.Fatal(err)
	}
	now, next := quantity.Instant(0), planner.ID(0)
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0, 1, 2, 3:
			task := draw(t, next, d.free, c)
			p.Arrive(now, task)
			next++
			e := book.Entry{Task: task, Seq: int64(next), Since: now}
			for c, n := range c.Nodes { // as the planner does
				if int(task.Devices) > len(n.Devices) {
					e.Task.Classes &^= 1 << c
				}
			}
			d.queue = append(d.queue, e)
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
			d.free[d.running[id].class] += d.running[id].devices
			delete(d.running, id)
			p.Leave(now, id)
		case 6:
			if len(d.queue) > 0 {
				i := rapid.IntRange(0, len(d.queue)-1).Draw(t, "withdrawn")
				p.Leave(now, d.queue[i].Task.ID)
				d.queue = slices.Delete(d.queue, i, i+1)
			}
		default:
			now += quantity.Instant(rapid.IntRange(1, 12).Draw(t, "later"))
			var out planner.Out
			p.Plan(now, &out)
			var got []decided
			for _, x := range out.Decisions {
				got = append(got, decided{x.Task, int(x.Class)})
			}
			if want := d.plan(now); !slices.Equal(got, want) {
				t.Fatalf("at %d the planner starts %+v, the definition %+v", now, got, want)
			}
			d.reserved(t, now, p)
		}
	}
}

// reserved: a rule that keeps has one reservation while somebody waits, and the others none.
func (d *definition) reserved(t *rapid.T, now quantity.Instant, p *ranked.Planner) {
	got := p.Reservations(now, nil)
	if !d.rule.Keeps || len(d.queue) == 0 {
		if len(got) > 0 {
			t.Fatalf("at %d the planner reserves %+v", now, got)
		}
		return
	}
	d.sort(now, d.rule.First)
	if class, at := d.reserve(now, &d.queue[0].Task); len(got) != 1 || int(got[0].Class) != class || got[0].Start != at || got[0].Task != d.queue[0].Task.ID {
		t.Fatalf("at %d the planner reserves %+v, the definition task %d, class %d at %d", now, got, d.queue[0].Task.ID, class, at)
	}
}

// draw is a task that some class could run.
func draw(t *rapid.T, id planner.ID, free []int32, c planner.Cluster) planner.Task {
	task := planner.Task{ID: id, Share: planner.Whole, Spread: true}
	task.Classes = uint32(rapid.IntRange(1, 1<<len(free)-1).Draw(t, "classes"))
	most := 1
	for i, n := range c.Nodes {
		if task.Classes&(1<<i) != 0 {
			most = max(most, len(n.Devices))
		}
	}
	task.Devices = int32(rapid.IntRange(1, most).Draw(t, "wants"))
	if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
		task.Run = new([planner.MaxClasses]time.Duration)
		for i := range free {
			task.Run[i] = time.Duration(rapid.IntRange(0, 30).Draw(t, "run"))
		}
	}
	return task
}
