package all_test

import (
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

type state int

const (
	absent state = iota
	waiting
	running
	leaving
)

// entry is what the model knows of a task.
type entry struct {
	task    planner.Task
	state   state
	node    int32
	devices []planner.Device
}

// world is two planners of a kind that are told the same, and a model of the cluster.
type world struct {
	cluster planner.Cluster
	a, b    planner.Planner
	now     quantity.Instant
	unit    time.Duration // of run times: a planner may have a scale of its own
	tasks   []entry
	node    []int32 // of a device
	class   []uint8
	free    []int32
	cpu     []int64
	memory  []int64
}

// Cluster draws a small cluster: up to 3 classes and 4 nodes, with and without limits of their hosts.
func Cluster(t *rapid.T) planner.Cluster {
	var c planner.Cluster
	classes := rapid.IntRange(1, 3).Draw(t, "classes")
	for i := range classes {
		c.Classes = append(c.Classes, planner.Class{Name: string(rune('a' + i)), Weight: planner.Whole,
			Memory: quantity.Amount(10 * (i + 1))})
	}
	limited := rapid.Bool().Draw(t, "limited hosts")
	for range rapid.IntRange(1, 4).Draw(t, "nodes") {
		n := planner.Node{Name: "n"}
		for range rapid.IntRange(0, 4).Draw(t, "devices") {
			n.Devices = append(n.Devices, uint8(rapid.IntRange(0, classes-1).Draw(t, "class")))
		}
		if limited && rapid.Bool().Draw(t, "limit") {
			n.CPU, n.Memory = rapid.Int64Range(0, 8).Draw(t, "cpu"), rapid.Int64Range(1, 8).Draw(t, "memory")
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

// Task draws a task of any sort, with run times of whole units or none.
func Task(t *rapid.T, id planner.ID, unit time.Duration) planner.Task {
	task := planner.Task{ID: id, Devices: int32(rapid.IntRange(0, 4).Draw(t, "wants")), Share: planner.Whole,
		Classes: uint32(rapid.IntRange(1, 7).Draw(t, "classes"))}
	task.Spread = rapid.Bool().Draw(t, "spread")
	if task.Devices == 1 && rapid.Bool().Draw(t, "share") {
		task.Share = int32(rapid.IntRange(1, planner.Whole).Draw(t, "of it"))
	}
	if rapid.Bool().Draw(t, "host") {
		task.CPU, task.Memory = rapid.Int64Range(0, 4).Draw(t, "cores"), rapid.Int64Range(0, 4).Draw(t, "mib")
	}
	if rapid.IntRange(0, 4).Draw(t, "known") > 0 {
		task.Run = new([planner.MaxClasses]time.Duration)
		for c := range task.Run {
			task.Run[c] = time.Duration(rapid.IntRange(0, 20).Draw(t, "run")) * unit
			if c == 2 {
				break
			}
		}
	}
	return task
}

// typical is something for planners that look at what is yet to come.
func typical() []planner.Typical {
	return []planner.Typical{
		{Task: planner.Task{Devices: 1, Share: planner.Whole, Classes: 1}, Count: 2},
		{Task: planner.Task{Devices: 2, Share: planner.Whole, Classes: 3}, Count: 1},
	}
}

func newWorld(t *rapid.T, kind planner.Kind) *world {
	w := &world{cluster: Cluster(t), unit: rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "unit")}
	options := planner.Options{Cluster: w.cluster, Seed: rapid.Uint64().Draw(t, "seed"), Typical: typical(), Restore: 2 * time.Second,
		Checkpoint: time.Second}
	var err error
	if w.a, err = kind.New(options); err != nil {
		t.Fatal(err)
	}
	if w.b, err = kind.New(options); err != nil {
		t.Fatal(err)
	}
	for i, n := range w.cluster.Nodes {
		for _, class := range n.Devices {
			w.node, w.class, w.free = append(w.node, int32(i)), append(w.class, class), append(w.free, planner.Whole)
		}
		w.cpu, w.memory = append(w.cpu, n.CPU), append(w.memory, n.Memory)
	}
	return w
}

// in lists the tasks in some states.
func (w *world) in(states ...state) (ids []planner.ID) {
	for i := range w.tasks {
		if slices.Contains(states, w.tasks[i].state) {
			ids = append(ids, planner.ID(i))
		}
	}
	return ids
}

// arrive brings a task under the lowest free id.
func (w *world) arrive(t *rapid.T) {
	id := slices.IndexFunc(w.tasks, func(e entry) bool { return e.state == absent })
	if id < 0 {
		id = len(w.tasks)
		w.tasks = append(w.tasks, entry{})
	}
	task := Task(t, planner.ID(id), w.unit)
	w.tasks[id] = entry{task: task, state: waiting}
	w.a.Arrive(w.now, task)
	w.b.Arrive(w.now, task)
}

// end lets a task leave; one that was preempted comes again.
func (w *world) end(id planner.ID) {
	task, again := w.tasks[id].task, w.tasks[id].state == leaving
	w.forget(id)
	w.a.Leave(w.now, id)
	w.b.Leave(w.now, id)
	if again {
		w.tasks[id] = entry{task: task, state: waiting}
		w.a.Arrive(w.now, task)
		w.b.Arrive(w.now, task)
	}
}

// forget takes a task out of the model.
func (w *world) forget(id planner.ID) {
	e := &w.tasks[id]
	if e.state == running || e.state == leaving {
		w.hold(e, -1)
	}
	e.state = absent
}

// hold adds what a task holds, or takes it back.
func (w *world) hold(e *entry, sign int32) {
	for _, d := range e.devices {
		w.free[d] -= sign * e.task.Share
	}
	if w.limited(e) {
		w.cpu[e.node] -= int64(sign) * e.task.CPU
		w.memory[e.node] -= int64(sign) * e.task.Memory
	}
}

func (w *world) limited(e *entry) bool {
	n := w.cluster.Nodes[e.node]
	return !e.task.Spread && (n.CPU != 0 || n.Memory != 0)
}

// plan asks both planners, wants one answer, nothing more when they are asked again, and checks it against the model.
func (w *world) plan(t *rapid.T) {
	var a, b planner.Out
	w.a.Plan(w.now, &a)
	w.b.Plan(w.now, &b)
	if !slices.Equal(a.Decisions, b.Decisions) || !slices.Equal(a.Devices, b.Devices) {
		t.Fatalf("two planners that were told the same decide\n%+v and\n%+v", a, b)
	}
	var again planner.Out
	w.a.Plan(w.now, &again)
	w.b.Plan(w.now, &b)
	if len(again.Decisions) > 0 {
		t.Fatalf("asked again without news it says %+v", again)
	}
	for _, d := range a.Decisions {
		w.decide(t, d, a.Devices)
	}
	for _, id := range w.in(waiting) {
		if !w.possible(&w.tasks[id].task) {
			t.Fatalf("task %+v can never run and was not told so", w.tasks[id].task)
		}
	}
	w.reservations(t)
	if waker, ok := w.a.(planner.Waker); ok {
		if at := waker.Wake(w.now); at <= w.now {
			t.Fatalf("at %d it wants to be asked again at %d", w.now, at)
		}
	}
}

func (w *world) decide(t *rapid.T, d planner.Decision, devices []planner.Device) {
	if d.Task < 0 || int(d.Task) >= len(w.tasks) {
		t.Fatalf("a decision on task %d, which nobody knows", d.Task)
	}
	e := &w.tasks[d.Task]
	switch d.Verb {
	case planner.Never:
		if e.state != waiting || w.possible(&e.task) {
			t.Fatalf("task %+v (state %d) could run, and it is said that it never can", e.task, e.state)
		}
		e.state = absent
	case planner.Preempt:
		if e.state != running {
			t.Fatalf("task %d is preempted and does not run", d.Task)
		}
		e.state = leaving
	case planner.Start:
		w.start(t, e, d, devices[d.From:d.To])
	default:
		t.Fatalf("a decision that says %d", d.Verb)
	}
}

func (w *world) start(t *rapid.T, e *entry, d planner.Decision, devices []planner.Device) {
	if e.state != waiting {
		t.Fatalf("task %d starts and does not wait", d.Task)
	}
	e.state, e.node, e.devices = running, d.Node, slices.Clone(devices)
	if len(devices) != int(e.task.Devices) {
		t.Fatalf("task %+v starts on devices %v", e.task, devices)
	}
	if len(devices) > 0 && (e.task.Classes&(1<<d.Class) == 0 || w.node[devices[0]] != d.Node) {
		t.Fatalf("task %+v starts on class %d, node %d, devices %v", e.task, d.Class, d.Node, devices)
	}
	for _, dev := range devices {
		if w.class[dev] != d.Class || !e.task.Spread && w.node[dev] != d.Node {
			t.Fatalf("task %+v starts on class %d, node %d, and device %d is of class %d on node %d", e.task, d.Class, d.Node, dev,
				w.class[dev], w.node[dev])
		}
	}
	w.hold(e, 1)
	for _, dev := range devices {
		if w.free[dev] < 0 {
			t.Fatalf("device %d is oversold by task %+v", dev, e.task)
		}
	}
	if w.limited(e) && (w.cpu[d.Node] < 0 || w.memory[d.Node] < 0) {
		t.Fatalf("the host of node %d is oversold by task %+v", d.Node, e.task)
	}
}

// possible says by trying every node whether a task could run if nothing else did.
func (w *world) possible(task *planner.Task) bool {
	var total [planner.MaxClasses]int32
	for _, n := range w.cluster.Nodes {
		var here [planner.MaxClasses]int32
		for _, class := range n.Devices {
			here[class]++
			total[class]++
		}
		if !task.Spread && (n.CPU != 0 || n.Memory != 0) && (task.CPU > n.CPU || task.Memory > n.Memory) {
			continue
		}
		if task.Devices == 0 {
			return true
		}
		for class := range here {
			if task.Classes&(1<<class) != 0 && here[class] >= task.Devices {
				return true
			}
		}
	}
	for class := range total {
		if task.Spread && task.Devices > 0 && task.Classes&(1<<class) != 0 && total[class] >= task.Devices {
			return true
		}
	}
	return false
}

// reservations are for waiting tasks, each once, in the future, on a class they may use; and asking changes nothing.
func (w *world) reservations(t *rapid.T) {
	list := w.a.Reservations(w.now, nil)
	if again := w.a.Reservations(w.now, nil); !reflect.DeepEqual(list, again) {
		t.Fatalf("asked twice for its reservations it says %+v and %+v", list, again)
	}
	seen := map[planner.ID]bool{}
	for _, r := range list {
		e := &w.tasks[r.Task]
		if e.state != waiting || seen[r.Task] {
			t.Fatalf("%+v is for a task that does not wait, or twice", r)
		}
		seen[r.Task] = true
		if r.Start <= w.now || r.End < r.Start || e.task.Devices > 0 && e.task.Classes&(1<<r.Class) == 0 {
			t.Fatalf("%+v at %d for task %+v", r, w.now, e.task)
		}
	}
}
