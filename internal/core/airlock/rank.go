package airlock

import (
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/quantity"
)

// rank makes a heap of the tasks that count: the lowest on top, or the highest. Victims are mostly few, so the rest is never put in order.
func (a *Airlock) rank(now quantity.Instant, s *Snapshot, highest bool, counts func(*Task) bool) {
	flip := uint64(0)
	if highest != planted.In(planted.ReverseVictims) {
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
}

// before says whether x comes before y.
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

// pop is the next task; false: there is none.
func (a *Airlock) pop(s *Snapshot) (int, bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	top, last := a.heap[0], len(a.heap)-1
	a.heap[0], a.heap = a.heap[last], a.heap[:last]
	a.sift(s, 0)
	return int(top.task), true
}

// Outranks says whether one task ranks above another: it is hit later.
func (c *Config) Outranks(now quantity.Instant, t, other *Task) bool {
	x, y := c.key(now, t), c.key(now, other)
	return x > y || x == y && t.Token.Compare(other.Token) > 0
}
