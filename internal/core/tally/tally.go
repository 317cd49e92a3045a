// Package tally counts for many who rest how often something was long enough for them and how often it was too short. It must not
// know who they are, nor what had the lengths.
package tally

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Seen is how many rounds of a kind there were, and the latest of them.
type Seen struct {
	N int64
	// Round is the number of the latest one, as its caller counts them from 1, and At when that was; both 0 if there was none.
	Round uint64
	At    quantity.Instant
}

// Plus is two counts together, with the later of the latest rounds.
func (s Seen) Plus(o Seen) Seen {
	if s.Round < o.Round {
		s.Round, s.At = o.Round, o.At
	}
	s.N += o.N
	return s
}

// Since is what came after there were n of the kind.
func (s Seen) Since(n int64) Seen {
	if s.N == n {
		return Seen{}
	}
	s.N -= n
	return s
}

// Note counts one more, later than all before.
func (s *Seen) Note(round uint64, at quantity.Instant) { s.N, s.Round, s.At = s.N+1, round, at }

// Tally is the rounds so far, by what was needed in them: those with one need count together, and a round costs a look at every
// chunk of needs and into one of them, however many rest. The zero value has seen nothing. Not safe for concurrent use.
type Tally struct {
	chunks []*chunk
	// shared is by chunk what all of its needs have seen beside what each has noted itself.
	shared []shared
	of     map[time.Duration]*need
}

// chunk is some needs in order, and its place among the chunks.
type chunk struct {
	needs []*need
	at    int
}

type shared struct{ long, short Seen }

// need is one length that somebody needs.
type need struct {
	length      time.Duration
	chunk       *chunk
	long, short Seen
	users       int
}

// Entry is one that rests: its need, and what there was of each kind when it began to count. The zero value is of nobody.
type Entry struct {
	need        *need
	long, short int64
}

// chunkSize balances the look into a chunk with that at all of them.
const chunkSize = 128

// Note counts a round of a length.
func (t *Tally) Note(round uint64, length time.Duration, at quantity.Instant) {
	if len(t.chunks) == 0 {
		return
	}
	border := t.chunkOf(length)
	for i := range t.shared[:border] {
		t.shared[i].long.Note(round, at)
	}
	for i := border + 1; i < len(t.shared); i++ {
		t.shared[i].short.Note(round, at)
	}
	for _, n := range t.chunks[border].needs {
		if n.length <= length {
			n.long.Note(round, at)
		} else {
			n.short.Note(round, at)
		}
	}
}

// Enter begins to count for one with a need.
func (t *Tally) Enter(length time.Duration) Entry {
	n := t.of[length]
	if n == nil {
		n = t.add(length)
	}
	n.users++
	e := Entry{need: n}
	t.Begin(&e)
	return e
}

// Begin makes an entry count from now on.
func (t *Tally) Begin(e *Entry) {
	long, short := t.seen(e.need)
	e.long, e.short = long.N, short.N
}

// Count is what an entry has seen since it began: rounds that were long enough for it, and rounds that were too short.
func (t *Tally) Count(e *Entry) (long, short Seen) {
	long, short = t.seen(e.need)
	return long.Since(e.long), short.Since(e.short)
}

// Leave forgets an entry; one of nobody is forgotten already.
func (t *Tally) Leave(e *Entry) {
	n := e.need
	if n == nil {
		return
	}
	*e = Entry{}
	if n.users--; n.users > 0 {
		return
	}
	delete(t.of, n.length)
	c := n.chunk
	i, _ := slices.BinarySearchFunc(c.needs, n.length, byLength)
	c.needs = slices.Delete(c.needs, i, i+1)
	if len(c.needs) == 0 {
		t.chunks, t.shared = slices.Delete(t.chunks, c.at, c.at+1), slices.Delete(t.shared, c.at, c.at+1)
		t.number(c.at)
	}
}

// number gives the chunks from a place on their places.
func (t *Tally) number(from int) {
	for i := from; i < len(t.chunks); i++ {
		t.chunks[i].at = i
	}
}

// seen is what a need has seen since it was added.
func (t *Tally) seen(n *need) (long, short Seen) {
	s := &t.shared[n.chunk.at]
	return n.long.Plus(s.long), n.short.Plus(s.short)
}

// add makes a need. What its chunk has seen before is taken off again.
func (t *Tally) add(length time.Duration) *need {
	if t.of == nil {
		t.of = map[time.Duration]*need{}
	}
	if len(t.chunks) == 0 {
		t.chunks, t.shared = append(t.chunks, &chunk{}), append(t.shared, shared{})
	}
	at := t.chunkOf(length)
	if len(t.chunks[at].needs) == chunkSize {
		t.split(at)
		at = t.chunkOf(length)
	}
	c := t.chunks[at]
	n := &need{length: length, chunk: c, long: Seen{N: -t.shared[at].long.N}, short: Seen{N: -t.shared[at].short.N}}
	t.of[length] = n
	i, _ := slices.BinarySearchFunc(c.needs, length, byLength)
	c.needs = slices.Insert(c.needs, i, n)
	return n
}

// split makes two chunks of a full one.
func (t *Tally) split(at int) {
	c := t.chunks[at]
	for _, n := range c.needs {
		n.long, n.short = t.seen(n)
	}
	t.shared[at] = shared{}
	half := &chunk{needs: append(make([]*need, 0, chunkSize), c.needs[chunkSize/2:]...)}
	clear(c.needs[chunkSize/2:])
	c.needs = c.needs[:chunkSize/2]
	for _, n := range half.needs {
		n.chunk = half
	}
	t.chunks, t.shared = slices.Insert(t.chunks, at+1, half), slices.Insert(t.shared, at+1, shared{})
	t.number(at + 1)
}

// chunkOf is the last chunk that begins with a need of at most this length, the first if there is none.
func (t *Tally) chunkOf(length time.Duration) int {
	i, found := slices.BinarySearchFunc(t.chunks, length, func(c *chunk, length time.Duration) int {
		if len(c.needs) == 0 {
			return -1
		}
		return byLength(c.needs[0], length)
	})
	if found {
		return i
	}
	return max(0, i-1)
}

func byLength(n *need, length time.Duration) int { return cmp.Compare(n.length, length) }
