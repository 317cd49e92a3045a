// Package ends keeps running tasks by their planned end, so that the time at which enough devices are free is found by
// looking at the next few and not by sorting all: chunks of at most 64 tasks with the sum of their devices.
package ends

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// width of a chunk: two cache lines of a binary search, and a short move on insertion.
const width = 64

// Task is a running task: its planned end and how many devices are free after it.
type Task struct {
	End     quantity.Instant
	ID      planner.ID
	Devices int32
}

func (a Task) before(b Task) bool { return a.End < b.End || a.End == b.End && a.ID < b.ID }

type chunk struct {
	n, sum int32
	tasks  [width]Task
}

// List is tasks by end, then id. The zero value is empty. Nothing allocates once it has grown.
type List struct {
	chunks []*chunk // none is empty
	firsts []Task   // the first task of each
	spare  []*chunk
}

// find is the index of the chunk that t belongs into.
func (l *List) find(t Task) int {
	lo, hi := 0, len(l.firsts)
	for lo < hi {
		if mid := (lo + hi) / 2; t.before(l.firsts[mid]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return max(lo-1, 0)
}

// position is the index of the first task of c that is not before t.
func (c *chunk) position(t Task) int32 {
	lo, hi := int32(0), c.n
	for lo < hi {
		if mid := (lo + hi) / 2; c.tasks[mid].before(t) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Add puts t in.
func (l *List) Add(t Task) {
	if len(l.chunks) == 0 {
		l.insert(0, l.fresh())
	}
	i := l.find(t)
	c := l.chunks[i]
	if c.n == width {
		// Half of it goes to a new chunk behind it.
		d := l.fresh()
		d.n = int32(copy(d.tasks[:], c.tasks[width/2:]))
		c.n = width / 2
		for k := range d.n {
			d.sum += d.tasks[k].Devices
		}
		c.sum -= d.sum
		l.insert(i+1, d)
		if !t.before(d.tasks[0]) {
			i, c = i+1, d
		}
	}
	at := c.position(t)
	copy(c.tasks[at+1:c.n+1], c.tasks[at:c.n])
	c.tasks[at] = t
	c.n++
	c.sum += t.Devices
	l.firsts[i] = c.tasks[0]
}

// Remove takes t out; it must be there.
func (l *List) Remove(t Task) {
	if len(l.chunks) == 0 {
		invariant.Check(false, "ends: task %d is to be taken out of an empty list", t.ID)
	}
	i := l.find(t)
	c := l.chunks[i]
	at := c.position(t)
	if at == c.n || c.tasks[at] != t {
		invariant.Check(false, "ends: task %d with planned end %d is not there", t.ID, t.End)
	}
	copy(c.tasks[at:c.n-1], c.tasks[at+1:c.n])
	c.n--
	c.sum -= t.Devices
	if c.n == 0 {
		l.spare = append(l.spare, c)
		l.chunks, l.firsts = slices.Delete(l.chunks, i, i+1), slices.Delete(l.firsts, i, i+1)
		return
	}
	l.firsts[i] = c.tasks[0]
	if i+1 < len(l.chunks) && c.n+l.chunks[i+1].n <= width/2 {
		l.merge(i)
	}
}

// merge puts the chunk behind i into it, so that a list that shrank is short again.
func (l *List) merge(i int) {
	c, d := l.chunks[i], l.chunks[i+1]
	copy(c.tasks[c.n:], d.tasks[:d.n])
	c.n, c.sum = c.n+d.n, c.sum+d.sum
	l.spare = append(l.spare, d)
	l.chunks, l.firsts = slices.Delete(l.chunks, i+1, i+2), slices.Delete(l.firsts, i+1, i+2)
}

func (l *List) fresh() *chunk {
	if n := len(l.spare); n > 0 {
		c := l.spare[n-1]
		l.spare = l.spare[:n-1]
		c.n, c.sum = 0, 0
		return c
	}
	return &chunk{}
}

func (l *List) insert(i int, c *chunk) {
	l.chunks, l.firsts = slices.Insert(l.chunks, i, c), slices.Insert(l.firsts, i, c.tasks[0])
}

// First is the task that is planned to end first; false if nothing runs.
func (l *List) First() (Task, bool) {
	if len(l.chunks) == 0 {
		return Task{}, false
	}
	return l.firsts[0], true
}

// Append appends all tasks in order.
func (l *List) Append(out []Task) []Task {
	for _, c := range l.chunks {
		out = append(out, c.tasks[:c.n]...)
	}
	return out
}

// Shadow is the earliest instant after now at which want devices are free, if free are free now and tasks end as planned,
// those past their plan in the next nanosecond; and how many are free then, with all that end at that instant. It is
// quantity.Never if that takes tasks with no planned end.
func (l *List) Shadow(now quantity.Instant, free, want int32) (at quantity.Instant, then int32) {
	i := 0
	for ; i < len(l.chunks) && free+l.chunks[i].sum < want; i++ {
		free += l.chunks[i].sum
	}
	at = quantity.Never
	for ; i < len(l.chunks); i++ {
		c := l.chunks[i]
		for k := range c.n {
			t := &c.tasks[k]
			end := max(t.End, now+1)
			if free >= want && end > at {
				return at, free
			}
			free += t.Devices
			at = end
		}
	}
	return at, free
}
