package tree

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"
)

// Waits measures how long a tree could not go on for want of a processor: since others had them, or since a control group had used up its
// time on them. It counts by intervals, so it must be asked often; what a look costs grows with the tree only where there is no control
// group.
//
// Where the tree has a group of its own the kernel says for how long some of it, and all of it, waited (cpu.pressure); processes that
// come and go count. Elsewhere each task says how long it waited in a queue (schedstat), and those that lived between two looks alone are
// missed.
//
// A tree that has more to do than the machine has processors waits for itself: what it used of them, on all of them, counts as time in
// which it went on.
type Waits struct {
	// Group of the tree alone; empty if it has none.
	Group Group

	total  time.Duration
	at     time.Time
	group  groupUse
	tasks  map[Process]taskUse
	byTask bool
}

// mostTasks are looked at one by one, so that a look takes some ten milliseconds at most.
const mostTasks = 1000

// groupUse is what a group has waited and used since it was made.
type groupUse struct{ some, full, used time.Duration }

// taskUse is what a task has used and waited since it was born.
type taskUse struct{ used, waited time.Duration }

// Total is how long it has waited up to the last look.
func (w *Waits) Total() time.Duration { return w.total }

// Skip begins anew: what was up to now does not count.
func (w *Waits) Skip(now time.Time, members []Member) {
	w.Look(now.Add(-time.Nanosecond), now, members)
	w.total = 0
}

// Look records what was since the last look, or, at the first, since the tree began.
func (w *Waits) Look(began, now time.Time, members []Member) {
	if w.at.IsZero() {
		w.at = began
	}
	span := now.Sub(w.at)
	if span <= 0 {
		return
	}
	w.at = now
	if use, ok := w.Group.use(); ok && !w.byTask {
		d := groupUse{use.some - w.group.some, use.full - w.group.full, use.used - w.group.used}
		w.group = use
		// Of several tasks each waits a part of the time in which some do, and as good as all of that in which all do.
		w.add(span, (d.some+d.full)/2, d.used)
		return
	}
	w.byTask = true
	var d taskUse
	seen := make(map[Process]taskUse, len(w.tasks))
	for _, m := range members {
		if len(seen) >= mostTasks {
			break
		}
		for _, t := range tasksOf(m) {
			use, ok := readTask(m.PID, t)
			if !ok {
				continue
			}
			key := Process{t, m.Started}
			before := w.tasks[key]
			d.used += max(0, use.used-before.used)
			d.waited += max(0, use.waited-before.waited)
			seen[key] = use
		}
	}
	w.tasks = seen
	if d.waited > 0 { // tasks that wait beside each other lose one time
		w.add(span, min(d.waited, share(span, d.waited, d.used+d.waited)), d.used)
	}
}

// add counts of an interval what it waited, and no more than what is left of it beside what the tree used on all processors.
func (w *Waits) add(span, waited, used time.Duration) {
	went := used / time.Duration(runtime.NumCPU())
	w.total += max(0, min(waited, span, span-went))
}

// share is part of span in the ratio of a to all.
func share(span, a, all time.Duration) time.Duration {
	return time.Duration(float64(span) * float64(a) / float64(all))
}

// use is what a group has waited and used; false where the kernel does not say both.
func (g Group) use() (u groupUse, ok bool) {
	if g == "" {
		return u, false
	}
	pressure, err := os.ReadFile(g.file("cpu.pressure"))
	if err != nil {
		return u, false
	}
	stat, err := os.ReadFile(g.file("cpu.stat"))
	if err != nil {
		return u, false
	}
	if u.some, u.full, ok = parsePressure(pressure); !ok {
		return u, false
	}
	u.used = time.Duration(min(counter(stat, "usage_usec"), mostMicroseconds)) * time.Microsecond
	return u, true
}

// mostMicroseconds are what a time can hold.
const mostMicroseconds = uint64(1<<63-1) / 1000

// parsePressure reads for how long some tasks waited, and for how long all did. A kernel before 5.13 does not report the second: then it is
// not counted.
func parsePressure(data []byte) (some, full time.Duration, ok bool) {
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) < 2 {
			continue
		}
		text, found := bytes.CutPrefix(f[len(f)-1], []byte("total="))
		n, err := strconv.ParseUint(string(text), 10, 64)
		if !found || err != nil || n > mostMicroseconds {
			continue
		}
		switch string(f[0]) {
		case "some":
			some, ok = time.Duration(n)*time.Microsecond, true
		case "full":
			full = time.Duration(n) * time.Microsecond
		}
	}
	return some, min(full, some), ok
}

// tasksOf are the threads of a process.
func tasksOf(m Member) []int {
	if m.Threads <= 1 {
		return []int{m.PID}
	}
	d, err := os.Open("/proc/" + strconv.Itoa(m.PID) + "/task")
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	all := make([]int, 0, len(names))
	for _, n := range names {
		if id, err := strconv.Atoi(n); err == nil {
			all = append(all, id)
		}
	}
	return all
}

// readTask is what a task has used and waited; false if it is gone, or the kernel does not say.
func readTask(pid, task int) (taskUse, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(task) + "/schedstat")
	if err != nil {
		return taskUse{}, false
	}
	return parseTask(data)
}

// parseTask reads a schedstat: nanoseconds on a processor, nanoseconds in a queue for one, and how often.
func parseTask(data []byte) (u taskUse, ok bool) {
	f := bytes.Fields(data)
	if len(f) < 2 {
		return u, false
	}
	used, err1 := strconv.ParseInt(string(f[0]), 10, 64)
	waited, err2 := strconv.ParseInt(string(f[1]), 10, 64)
	if err1 != nil || err2 != nil || used < 0 || waited < 0 {
		return u, false
	}
	return taskUse{time.Duration(used), time.Duration(waited)}, true
}
