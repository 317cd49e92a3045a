// Package capture lets an actor say its durable state as of one instant, a bounded piece at a time, while it goes on
// changing: copy before change. A part that is about to change, and whose turn has not come, gives its facts first; a part
// made later is not in it. So nothing is copied but what changes meanwhile, and no step is longer than before by more than
// the part that it touches (docs/adr/0025-snapshots-beside-the-loop.md). It must not know what the parts are.
package capture

import (
	"iter"
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
)

// Part is one piece of an actor's durable state, which embeds a Mark.
type Part interface {
	// AppendFacts appends facts that fold to this part and to nothing else, after the actor's small parts or without them,
	// before or after any other part. They share nothing with the part that is ever changed in place. Whose they are is set by
	// Take.
	AppendFacts(out []protocol.Fact) []protocol.Fact
	// Captured is its Mark.
	Captured() *Mark
}

// Mark is what a part knows of captures.
type Mark struct {
	index uint32 // its place in Parts
	taken uint32 // the last capture that has taken it, or that it was made in
}

// Captured implements Part for who embeds a Mark.
func (m *Mark) Captured() *Mark { return m }

// Source is an actor that can be captured.
type Source interface {
	// Capture begins a capture of the durable state as it is now. One that is running is given up.
	Capture() Run
}

// Run is a running capture. Its methods are called between the steps of its actor.
type Run interface {
	// Take appends the facts that Early counts, then those of the next n parts as far as they were not taken, and says whether
	// that was all; the first call has the small parts too. What one call gives folds by itself: an actor's digest is its digest
	// without facts plus what each call's facts add to that.
	Take(n int, out []protocol.Fact) (facts []protocol.Fact, done bool)
	// Early is how many facts are held of parts that changed before their turn.
	Early() int
	// Release gives the capture up.
	Release()
}

// Parts are all parts of one type in an actor's state, the small ones aside, and any capture that is running over them. The zero value has
// neither.
type Parts[P interface {
	Part
	comparable
}] struct {
	actor   protocol.Address
	list    []P    // in no order that means anything
	epoch   uint32 // how many captures have begun
	running bool
	// next is the first part whose turn has not come: those before it are marked. early are facts that are due before it.
	next  int
	early []protocol.Fact
}

// Add notes a part that is made now.
func (c *Parts[P]) Add(p P) {
	m := p.Captured()
	m.index, m.taken = uint32(len(c.list)), c.epoch
	c.list = append(c.list, p)
}

// Len is how many parts there are.
func (c *Parts[P]) Len() int { return len(c.list) }

// All yields the parts, in no order that means anything. None may be added or removed meanwhile.
func (c *Parts[P]) All() iter.Seq[P] { return slices.Values(c.list) }

// Change is called before a part changes.
func (c *Parts[P]) Change(p P) {
	if c.running {
		c.give(p)
	}
}

// Remove notes that a part is about to go.
func (c *Parts[P]) Remove(p P) {
	m := p.Captured()
	last := c.list[len(c.list)-1]
	invariant.Check(c.list[m.index] == p, "capture: a part is removed that was never added")
	if c.running {
		c.give(p)
		if int(m.index) < c.next {
			c.give(last) // it moves to where the capture has already passed
		}
	}
	c.list[m.index] = last
	last.Captured().index = m.index
	clear(c.list[len(c.list)-1:])
	c.list = c.list[:len(c.list)-1]
	c.next = min(c.next, len(c.list))
}

// give takes a part now, if it was not taken before.
func (c *Parts[P]) give(p P) {
	if m := p.Captured(); m.taken != c.epoch {
		m.taken = c.epoch
		c.early = p.AppendFacts(c.early)
	}
}

// Begin starts a capture of an actor's parts as they are now. small are the facts of everything that is no part.
func (c *Parts[P]) Begin(actor protocol.Address, small []protocol.Fact) Run {
	c.epoch++
	c.actor, c.running, c.next, c.early = actor, true, 0, small
	return c
}

// Take implements Run.
func (c *Parts[P]) Take(n int, out []protocol.Fact) ([]protocol.Fact, bool) {
	first := len(out)
	out = append(out, c.early...)
	clear(c.early)
	c.early = c.early[:0]
	for ; n > 0 && c.running && c.next < len(c.list); n-- {
		p := c.list[c.next]
		if m := p.Captured(); m.taken != c.epoch {
			m.taken = c.epoch
			out = p.AppendFacts(out)
		}
		c.next++
	}
	for i := first; i < len(out); i++ {
		out[i].Actor = c.actor
	}
	if c.next == len(c.list) {
		c.Release()
	}
	return out, !c.running
}

// Early implements Run.
func (c *Parts[P]) Early() int { return len(c.early) }

// Release implements Run.
func (c *Parts[P]) Release() { c.running, c.early = false, nil }

// All is a whole capture at once.
func All(s Source) []protocol.Fact {
	run := s.Capture()
	var out []protocol.Fact
	for done := false; !done; {
		out, done = run.Take(1<<10, out)
	}
	return out
}
