// Package queue holds waiting tasks: a Line in the order of their arrival to find the first, an Index to find the first that fits, and an
// Order by rank. All identify tasks by the number of their arrival, which only grows.
package queue

import "sluice.dev/sluice/internal/lab/planner"

// Place is a task in the queue.
type Place struct {
	ID  planner.ID
	Seq int64
}

// gone stands where a task has left the middle of the queue.
const gone = -1

// Line is a queue that can be left anywhere. The zero value is empty. Nothing allocates once it has grown.
type Line struct {
	places []Place // sorted by Seq
	head   int
	live   int
}

// Len is how many wait.
func (l *Line) Len() int { return l.live }

// Push puts a task at the end.
func (l *Line) Push(p Place) {
	if len(l.places) == cap(l.places) && l.live < len(l.places)/2 {
		l.compact()
	}
	l.places = append(l.places, p)
	l.live++
}

// First is the task that came first; there must be one.
func (l *Line) First() Place { return l.places[l.head] }

// Remove takes out the task of number seq, which must be there.
func (l *Line) Remove(seq int64) {
	l.places[find(l.places, l.head, seq)].ID = gone
	l.live--
	for l.head < len(l.places) && l.places[l.head].ID == gone {
		l.head++
	}
	if l.head == len(l.places) {
		l.places, l.head = l.places[:0], 0
	}
}

// compact closes the holes.
func (l *Line) compact() {
	kept := l.places[:0]
	for _, p := range l.places[l.head:] {
		if p.ID != gone {
			kept = append(kept, p)
		}
	}
	l.places, l.head = kept, 0
}

// From appends the waiting tasks whose number is above seq, in order.
func (l *Line) From(seq int64, out []Place) []Place {
	if l.live == 0 {
		return out
	}
	for _, p := range l.places[find(l.places, l.head, seq+1):] {
		if p.ID != gone {
			out = append(out, p)
		}
	}
	return out
}

// find is the first place of number seq or above, from lo on; most often that is the first or near the end.
func find(places []Place, lo int, seq int64) int {
	hi := len(places)
	if lo < hi && places[lo].Seq >= seq {
		return lo
	}
	for step := 1; hi-step > lo; step *= 2 {
		if places[hi-step].Seq < seq {
			lo = hi - step + 1
			break
		}
		hi -= step
	}
	for lo < hi {
		if mid := (lo + hi) / 2; places[mid].Seq < seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
