// Package alarm is a heap of things to look at again, each at its instant. It must not know what they are.
package alarm

import (
	"iter"

	"sluice.dev/sluice/internal/core/quantity"
)

// Heap is a heap of alarms. Each thing has at most one alarm in it and keeps its place there in a slot of its own (0: none), so
// that moving or dropping an alarm costs O(log n). Among equal alarms it knows no order: who takes several out sorts them.
type Heap[T any] struct{ list []alarm[T] }

type alarm[T any] struct {
	at   quantity.Instant
	slot *int
	of   T
}

// Set moves the alarm of a thing to at; Never drops it.
func (a *Heap[T]) Set(slot *int, of T, at quantity.Instant) {
	switch i := *slot - 1; {
	case i < 0 && at == quantity.Never:
	case i < 0:
		a.list = append(a.list, alarm[T]{at, slot, of})
		*slot = len(a.list)
		a.up(*slot - 1)
	case a.list[i].at == at:
	case at == quantity.Never:
		a.drop(i)
	default:
		a.list[i].at = at
		a.up(i)
		a.down(*slot - 1)
	}
}

// Next is the earliest alarm, Never if there is none.
func (a *Heap[T]) Next() quantity.Instant {
	if len(a.list) == 0 {
		return quantity.Never
	}
	return a.list[0].at
}

// Len is how many alarms there are.
func (a *Heap[T]) Len() int { return len(a.list) }

// Due drops an alarm that is not later than now and returns what it was for.
func (a *Heap[T]) Due(now quantity.Instant) (of T, ok bool) {
	if len(a.list) == 0 || a.list[0].at > now {
		return of, false
	}
	of = a.list[0].of
	a.drop(0)
	return of, true
}

// Past drops the alarms that are not later than now, the earliest first, and yields what they were for: also of those set meanwhile.
func (a *Heap[T]) Past(now quantity.Instant) iter.Seq[T] {
	return func(yield func(T) bool) {
		for of, ok := a.Due(now); ok && yield(of); of, ok = a.Due(now) {
		}
	}
}

// All are the things that have an alarm, in no order.
func (a *Heap[T]) All() []T {
	out := make([]T, len(a.list))
	for i := range a.list {
		out[i] = a.list[i].of
	}
	return out
}

func (a *Heap[T]) drop(i int) {
	last := len(a.list) - 1
	*a.list[i].slot = 0
	moved := a.list[last]
	a.list[last] = alarm[T]{}
	a.list = a.list[:last]
	if i < last {
		a.put(i, moved)
		a.up(i)
		a.down(*moved.slot - 1)
	}
}

func (a *Heap[T]) put(i int, x alarm[T]) {
	a.list[i] = x
	*x.slot = i + 1
}

func (a *Heap[T]) up(i int) {
	x := a.list[i]
	for i > 0 && a.list[(i-1)/4].at > x.at {
		a.put(i, a.list[(i-1)/4])
		i = (i - 1) / 4
	}
	a.put(i, x)
}

func (a *Heap[T]) down(i int) {
	x := a.list[i]
	for {
		least := i
		at := x.at
		for c := 4*i + 1; c <= 4*i+4 && c < len(a.list); c++ {
			if a.list[c].at < at {
				least, at = c, a.list[c].at
			}
		}
		if least == i {
			break
		}
		a.put(i, a.list[least])
		i = least
	}
	a.put(i, x)
}
