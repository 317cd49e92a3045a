package airlock

import (
	"sluice.dev/sluice/internal/core/quantity"
)

// rank makes a heap of the tasks that count: the lowest on top, or the highest. Victims are mostly few, so the rest is never put in order.
func (a *Airlock) rank(now quantity.Instant, s *Snapshot, highest bool, counts func(*Task) bool) {
	flip := uint64(0)
	if highest {
		flip = ^flip
	}
	a.heap, a.highest = a.heap[:0], highest
	for i := range s.Tasks {
		if t := &s.Tasks[i]; counts(t) {
			a.heap = append(a.heap, ranked{a.cfg.key(now, t) ^ flip, int32(i)})
		}
	}
	for i := len(a.heap)/2 - 1; i >= 0; i-- {
		a.sift(s, i)
	}
	a.all, a.next = a.heap, len(a.heap)
}

// lowest begins at the lowest of all that are not being ended. Several remedies are tried in one decision: they rank once, and what was
// popped is in order.
func (a *Airlock) lowest(now quantity.Instant, s *Snapshot) {
	if !a.ascending {
		a.rank(now, s, false, func(t *Task) bool { return t.State != Reclaiming })
		a.ascending = true
	}
	a.next = len(a.all)
}

// before reports whether x ranks before y.
func (a *Airlock) before(s *Snapshot, x, y *ranked) bool {
	if x.key != y.key {
		return x.key < y.key
	}
	return s.Tasks[x.task].Token.Compare(s.Tasks[y.task].Token) < 0 != a.highest
}

func (a *Airlock) sift(s *Snapshot, i int) {
	h := a.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && a.before(s, &h[child+1], &h[child]) {
			child++
		}
		if a.before(s, &h[i], &h[child]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// pop is the next task; false: there is none. Behind the heap lies what it has given, the first one last.
func (a *Airlock) pop(s *Snapshot) (int, bool) {
	if a.next == 0 {
		return 0, false
	}
	a.next--
	if last := len(a.heap) - 1; a.next == last {
		a.heap[0], a.heap[last] = a.heap[last], a.heap[0]
		a.heap = a.heap[:last]
		a.sift(s, 0)
	}
	return int(a.all[a.next].task), true
}

// Outranks says whether one task ranks above another: it is hit later.
func (c *Config) Outranks(now quantity.Instant, t, other *Task) bool {
	x, y := c.key(now, t), c.key(now, other)
	return x > y || x == y && t.Token.Compare(other.Token) > 0
}
