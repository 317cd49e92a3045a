package conservative

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// life is a planner in a cluster of spread tasks, and what it promised to whom.
type life struct {
	p        planner.Planner
	free     []int32
	now      quantity.Instant
	tasks    map[planner.ID]planner.Task
	waiting  []planner.ID
	running  map[planner.ID]planner.Reservation
	promises map[planner.ID]planner.Reservation
	next     planner.ID
	// gangs: a task of a share keeps the plan by device.
	byDevice bool
}

func newLife(t *rapid.T, byDevice bool) *life {
	l := &life{tasks: map[planner.ID]planner.Task{}, running: map[planner.ID]planner.Reservation{},
		promises: map[planner.ID]planner.Reservation{}, byDevice: byDevice}
	var c planner.Cluster
	for i := range rapid.IntRange(1, 2).Draw(t, "classes") {
		n := rapid.IntRange(1, 6).Draw(t, "devices")
		c.Classes = append(c.Classes, planner.Class{Name: string(rune('a' + i))})
		c.Nodes = append(c.Nodes, planner.Node{Devices: slices.Repeat([]uint8{uint8(i)}, n)})
		l.free = append(l.free, int32(n))
	}
	var err error
	if l.p, err = newConservative(planner.Options{Cluster: c}); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *life) arrive(t *rapid.T) {
	task := planner.Task{ID: l.next, Share: planner.Whole, Spread: true,
		Classes: uint32(rapid.IntRange(1, 1<<len(l.free)-1).Draw(t, "classes"))}
	l.next++
	most := int32(0)
	for c, n := range l.free {
		if task.Classes&(1<<c) != 0 {
			most = max(most, n)
		}
	}
	task.Devices = rapid.Int32Range(1, most).Draw(t, "wants")
	if l.byDevice {
		task.Spread = false
		if task.Devices == 1 {
			task.Share = int32(rapid.IntRange(1, planner.Whole-1).Draw(t, "share"))
		}
	}
	for c, n := range l.free {
		if n < task.Devices {
			task.Classes &^= 1 << c
		}
	}
	task.Run = new([planner.MaxClasses]time.Duration)
	for c := range l.free {
		task.Run[c] = time.Duration(rapid.IntRange(1, 20).Draw(t, "run"))
	}
	l.tasks[task.ID] = task
	l.waiting = append(l.waiting, task.ID)
	l.p.Arrive(l.now, task)
}

// end lets what ends by its plan end, at the latest at its planned end: nobody runs past it.
func (l *life) end(t *rapid.T) {
	var ids []planner.ID
	for id := range l.running {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if l.running[id].End <= l.now || rapid.IntRange(0, 9).Draw(t, "early") == 0 {
			delete(l.running, id)
			l.p.Leave(l.now, id)
		}
	}
}

// advance goes on, but not past the next planned end.
func (l *life) advance(t *rapid.T) {
	next := l.now + quantity.Instant(rapid.IntRange(1, 12).Draw(t, "later"))
	for _, r := range l.running {
		next = min(next, r.End)
	}
	l.now = next
}

// plan plans and returns the starts.
func (l *life) plan(t *rapid.T) []planner.Decision {
	var out planner.Out
	l.p.Plan(l.now, &out)
	for _, d := range out.Decisions {
		if d.Verb != planner.Start {
			t.Fatalf("at %d it decides %+v", l.now, d)
		}
		l.running[d.Task] = planner.Reservation{Task: d.Task, Class: d.Class, Start: l.now, End: l.now.Add(l.tasks[d.Task].Run[d.Class])}
		l.waiting = slices.DeleteFunc(l.waiting, func(id planner.ID) bool { return id == d.Task })
	}
	return out.Decisions
}

// TestNobodyIsDelayed: while nobody runs past its plan, no task's planned end ever moves to a later one, whether it waits or
// starts; and everybody who waits has a reservation.
func TestNobodyIsDelayed(t *testing.T) {
	for _, byDevice := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			l := newLife(t, byDevice)
			for range rapid.IntRange(1, 40).Draw(t, "instants") {
				for range rapid.IntRange(0, 3).Draw(t, "arrivals") {
					l.arrive(t)
				}
				if len(l.waiting) > 0 && rapid.IntRange(0, 9).Draw(t, "withdraw") == 0 {
					id := rapid.SampledFrom(l.waiting).Draw(t, "who")
					l.waiting = slices.DeleteFunc(l.waiting, func(i planner.ID) bool { return i == id })
					l.p.Leave(l.now, id)
				}
				for _, d := range l.plan(t) {
					if was, known := l.promises[d.Task]; known && l.running[d.Task].End > was.End {
						t.Fatalf("at %d task %d starts and is planned to end at %d, and %d was promised", l.now, d.Task,
							l.running[d.Task].End, was.End)
					}
				}
				list := l.p.Reservations(l.now, nil)
				if len(list) != len(l.waiting) {
					t.Fatalf("%d wait and %d have a reservation", len(l.waiting), len(list))
				}
				for _, r := range list {
					if was, known := l.promises[r.Task]; known && r.End > was.End {
						t.Fatalf("at %d task %d is reserved %+v, and %+v was promised", l.now, r.Task, r, was)
					}
					l.promises[r.Task] = r
				}
				l.disjoint(t, list)
				l.advance(t)
				l.end(t)
			}
		})
	}
}

// disjoint adds up, at every instant at which something begins, what runs and what is reserved.
func (l *life) disjoint(t *rapid.T, list []planner.Reservation) {
	all := slices.Clone(list)
	for _, r := range l.running {
		all = append(all, r)
	}
	for _, at := range all {
		var used [planner.MaxClasses]int32
		for _, r := range all {
			if r.Start <= at.Start && at.Start < r.End {
				used[r.Class] += l.tasks[r.Task].Devices * l.tasks[r.Task].Share
			}
		}
		for c, n := range l.free {
			if used[c] > n*planner.Whole {
				t.Fatalf("at %d class %d is planned %d thousandths and has %d: %+v", at.Start, c, used[c], n*planner.Whole, all)
			}
		}
	}
}

// oracle is the definition by number of devices, over a list of reservations: every instant at which something ends is tried.
func oracle(free int32, kept []planner.Reservation, tasks map[planner.ID]planner.Task, task planner.Task, class int,
	now quantity.Instant) quantity.Instant {
	times := []quantity.Instant{now}
	for _, r := range kept {
		if int(r.Class) == class && r.End > now {
			times = append(times, r.End)
		}
	}
	slices.Sort(times)
	for _, start := range times {
		end := start.Add(task.Run[class])
		fits := true
		for _, at := range append([]quantity.Instant{start}, starts(kept)...) {
			used := int32(0)
			for _, r := range kept {
				if int(r.Class) == class && r.Start <= at && at < r.End {
					used += tasks[r.Task].Devices
				}
			}
			fits = fits && (at < start || at >= end || used+task.Devices <= free)
		}
		if fits {
			return start
		}
	}
	return quantity.Never
}

func starts(list []planner.Reservation) (out []quantity.Instant) {
	for _, r := range list {
		out = append(out, r.Start)
	}
	return out
}

// TestAgainstDefinition keeps a list of reservations next to the planner and goes through it as the package says.
func TestAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t, false)
		var kept []planner.Reservation // of those who wait, in order
		for range rapid.IntRange(1, 30).Draw(t, "instants") {
			before := len(l.running)
			l.end(t)
			freed := len(l.running) < before
			for range rapid.IntRange(0, 3).Draw(t, "arrivals") {
				l.arrive(t)
			}
			running := make([]planner.Reservation, 0, len(l.running))
			for _, r := range l.running {
				running = append(running, r)
			}
			var want []planner.ID
			var next []planner.Reservation
			for i, id := range l.waiting {
				others := slices.Concat(running, next)
				switch {
				case i < len(kept) && !freed:
					next = append(next, kept[i])
					continue
				case i < len(kept):
					others = append(others, kept[i+1:]...)
				}
				best := planner.Reservation{Task: id, End: quantity.Never, Start: quantity.Never}
				for c := range l.free {
					if l.tasks[id].Classes&(1<<c) == 0 {
						continue
					}
					at := oracle(l.free[c], others, l.tasks, l.tasks[id], c, l.now)
					if end := at.Add(l.tasks[id].Run[c]); end < best.End || end == best.End && at < best.Start {
						best = planner.Reservation{Task: id, Class: uint8(c), Start: at, End: end}
					}
				}
				next = append(next, best)
			}
			kept = kept[:0]
			for _, r := range next {
				if r.Start == l.now {
					want = append(want, r.Task)
				} else {
					kept = append(kept, r)
				}
			}
			var got []planner.ID
			for _, d := range l.plan(t) {
				got = append(got, d.Task)
			}
			if list := l.p.Reservations(l.now, nil); !slices.Equal(got, want) || !slices.Equal(list, kept) {
				t.Fatalf("at %d it starts %v and keeps %+v, the definition %v and %+v", l.now, got, list, want, kept)
			}
			l.advance(t)
		}
	})
}

// TestOverrun: who runs past its plan pushes reservations on, a nanosecond at a time, in order.
func TestOverrun(t *testing.T) {
	p, err := newConservative(planner.Options{Cluster: planner.Cluster{Classes: []planner.Class{{Name: "a"}},
		Nodes: []planner.Node{{Devices: []uint8{0}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var out planner.Out
	for id := range planner.ID(3) {
		p.Arrive(0, planner.Task{ID: id, Devices: 1, Share: planner.Whole, Classes: 1, Run: &[planner.MaxClasses]time.Duration{10}})
	}
	p.Plan(0, &out)
	p.Plan(15, &out)
	want := []planner.Reservation{{Task: 1, Start: 16, End: 26}, {Task: 2, Start: 26, End: 36}}
	if got := p.Reservations(15, nil); !slices.Equal(got, want) {
		t.Errorf("reserved %+v, want %+v", got, want)
	}
	p.Leave(20, 0)
	out.Reset()
	p.Plan(20, &out)
	if len(out.Decisions) != 1 || out.Decisions[0].Task != 1 {
		t.Errorf("decides %+v, want a start of task 1", out.Decisions)
	}
}
