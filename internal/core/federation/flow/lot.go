package flow

import (
	"cmp"

	"sluice.dev/sluice/internal/core/quantity"
)

// Lot is where a home parks tickets whose search found no place, by class, until there is room. The ticket of the highest priority, then
// the oldest, is woken first; ties are broken by id. Not safe for concurrent use.
type Lot struct {
	heaps [MaxClasses][]parked
	// at is the place of each ticket in the heap of its class, from 0.
	at map[TicketID]place
}

type place struct {
	class Class
	index int
}

// parked is a ticket's key in the order of waking.
type parked struct {
	born     quantity.Instant
	id       TicketID
	priority int16
}

func (p *parked) compare(q *parked) int {
	return cmp.Or(cmp.Compare(q.priority, p.priority), cmp.Compare(p.born, q.born), cmp.Compare(p.id, q.id))
}

// NewLot is empty.
func NewLot() *Lot { return &Lot{at: map[TicketID]place{}} }

// Len is how many are parked.
func (l *Lot) Len() int { return len(l.at) }

// Waiting is how many of a class are parked.
func (l *Lot) Waiting(c Class) int { return len(l.heaps[c]) }

// Add parks a ticket. One that is parked stays where it is.
func (l *Lot) Add(t *Ticket) {
	if _, there := l.at[t.ID]; there {
		return
	}
	l.heaps[t.Class] = append(l.heaps[t.Class], parked{t.Born, t.ID, t.Priority})
	i := len(l.heaps[t.Class]) - 1
	l.at[t.ID] = place{t.Class, i}
	l.up(t.Class, i)
}

// Remove takes out a ticket that is not to be woken any more; false if it is not parked.
func (l *Lot) Remove(id TicketID) bool {
	p, there := l.at[id]
	if there {
		l.drop(p.class, p.index)
	}
	return there
}

// Wake removes the tickets that are to search again, at most budget of each class (Splitter.Rises), and appends them to out, the largest
// class first. A fragment serves its class and all smaller ones, so what larger classes take of a budget is not left for smaller ones.
func (l *Lot) Wake(budget [MaxClasses]int, out []TicketID) []TicketID {
	woken := 0
	for c := MaxClasses - 1; c >= 0; c-- {
		for n := budget[c] - woken; n > 0 && len(l.heaps[c]) > 0; n-- {
			out = append(out, l.heaps[c][0].id)
			l.drop(Class(c), 0)
			woken++
		}
	}
	return out
}

func (l *Lot) drop(c Class, i int) {
	h := l.heaps[c]
	delete(l.at, h[i].id)
	last := len(h) - 1
	if i != last {
		h[i] = h[last]
		l.at[h[i].id] = place{c, i}
	}
	l.heaps[c] = h[:last]
	if i != last {
		l.up(c, i)
		l.down(c, i)
	}
}

func (l *Lot) up(c Class, i int) {
	for h := l.heaps[c]; i > 0; {
		above := (i - 1) / 2
		if h[above].compare(&h[i]) < 0 {
			return
		}
		l.swap(c, i, above)
		i = above
	}
}

func (l *Lot) down(c Class, i int) {
	for h := l.heaps[c]; ; {
		first := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(h); below++ {
			if h[below].compare(&h[first]) < 0 {
				first = below
			}
		}
		if first == i {
			return
		}
		l.swap(c, i, first)
		i = first
	}
}

func (l *Lot) swap(c Class, i, k int) {
	h := l.heaps[c]
	h[i], h[k] = h[k], h[i]
	l.at[h[i].id], l.at[h[k].id] = place{c, i}, place{c, k}
}
