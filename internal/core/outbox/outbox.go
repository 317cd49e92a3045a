// Package outbox sends what an actor must repeat until it is confirmed: now, and then again at intervals that double up to a bound, with a
// bounded number at a time. It must not know what is sent, or to whom.
package outbox

import (
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/quantity"
)

// Doublings of the interval at which something is repeated: the longest is 64 times the first.
const Doublings = 6

// mostSpent bounds the items that are kept for reuse.
const mostSpent = 256

// Box holds what is not confirmed. Soft: a restarted actor fills it again from its durable state.
//
// A message that is not confirmed within the first interval counts as lost, and makes room: a silent receiver delays others by that at
// most. So a box sends at most Most messages in an interval, and as many more as were confirmed in it.
type Box[T any] struct {
	retry time.Duration
	most  int
	due   alarm.Heap[*Item[T]]
	// spent items were confirmed, and nobody knows them any more.
	spent []*Item[T]
	// now is the latest instant at which the box was asked; began when the present interval began, said is the number of messages sent in
	// it and not confirmed.
	now, began quantity.Instant
	said       int
}

// Item is one thing to say; nil where there is none.
type Item[T any] struct {
	of    T
	slot  int
	said  quantity.Instant
	tries int
}

// New makes an empty box. Both must be above 0.
func New[T any](retry time.Duration, most int) Box[T] { return Box[T]{retry: retry, most: most} }

// Say sends something as soon as there is room, as if it had not been sent before. It may be an item of this box, or nil.
func (b *Box[T]) Say(it *Item[T], of T) *Item[T] {
	if it == nil {
		it = b.item()
		it.of = of
	}
	it.tries = 0
	b.due.Set(&it.slot, it, b.now)
	return it
}

// item is room for one.
func (b *Box[T]) item() *Item[T] {
	last := len(b.spent) - 1
	if last < 0 {
		return &Item[T]{}
	}
	it := b.spent[last]
	b.spent[last], b.spent = nil, b.spent[:last]
	return it
}

// Confirm removes an item that need not be sent any more. It returns nil, for the item's variable: the item is reused.
func (b *Box[T]) Confirm(it *Item[T]) *Item[T] {
	if it == nil {
		return nil
	}
	if it.tries > 0 && it.said >= b.began && b.said > 0 {
		b.said--
	}
	b.due.Set(&it.slot, it, quantity.Never)
	*it = Item[T]{}
	if len(b.spent) < mostSpent {
		b.spent = append(b.spent, it)
	}
	return nil
}

// Next is something to send now, if anything is due and there is room for it. Items due at one instant come in no order.
func (b *Box[T]) Next(now quantity.Instant) (of T, ok bool) {
	b.now = now
	if b.said == 0 || b.began.Add(b.retry) <= now {
		b.began, b.said = now, 0
	}
	if b.said >= b.most {
		return of, false
	}
	it, ok := b.due.Due(now)
	if !ok {
		return of, false
	}
	it.tries++
	it.said = now
	b.said++
	b.due.Set(&it.slot, it, now.Add(b.retry<<min(it.tries-1, Doublings)))
	return it.of, true
}

// Take appends all that is to be sent now, in no order.
func (b *Box[T]) Take(now quantity.Instant, all []T) []T {
	for {
		one, ok := b.Next(now)
		if !ok {
			return all
		}
		all = append(all, one)
	}
}

// Wake is when to ask for Next again, Never if nothing is left to say.
func (b *Box[T]) Wake() quantity.Instant {
	next := b.due.Next()
	if next <= b.now && b.said >= b.most {
		return b.began.Add(b.retry)
	}
	return next
}

// Len is how much is not confirmed.
func (b *Box[T]) Len() int { return b.due.Len() }

// All is what is not confirmed, in no order.
func (b *Box[T]) All() []T {
	out := make([]T, 0, b.due.Len())
	for _, it := range b.due.All() {
		out = append(out, it.of)
	}
	return out
}
