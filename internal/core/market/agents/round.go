package agents

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Offer is a window that is offered, in a round. Of one that has been offered before (not Full), only jobs that changed since are asked.
type Offer struct {
	Slice *window.Slice
	ID    uint64
	Full  bool
}

// Find is the window that is offered as it is now; nil if it is gone or was cut.
func (o *Offer) Find() *window.Window { return o.Slice.Find(o.ID) }

// Round is announced to agents and waits for their answers. Invariant: waiting is how many of those asked are prompt and have not answered.
type Round struct {
	id      uint64
	offers  []Offer
	closes  quantity.Instant
	asked   []Callee
	waiting int
	// generation of the jobs when it was opened: those that came since were not asked.
	generation uint64
	// most variants of an answer are looked at for each window.
	most int
}

// ID of the round, Closes when it ends, answered or not, and Generation of the jobs when it was opened.
func (r *Round) ID() uint64 { return r.id }

// Closes is when it ends, answered or not.
func (r *Round) Closes() quantity.Instant { return r.closes }

// Generation is the generation of the jobs when the round was opened.
func (r *Round) Generation() uint64 { return r.generation }

// Offers are what it is about, Asked the jobs that were asked, by name.
func (r *Round) Offers() []Offer { return r.offers }

// Asked are those who were, by name.
func (r *Round) Asked() []Callee { return r.asked }

// Callee is an external job that was asked, with its answer.
type Callee struct {
	job      *index.Job
	session  uint64
	asked    quantity.Instant
	prompt   bool
	answered bool
	// said: its answer came in a message; otherwise it has gone.
	said bool
	// won: some of its answer is sold or planned.
	won      bool
	variants []protocol.Variant
	// notices are what became of its variants.
	notices []protocol.Notice
}

// Job that was asked, in which Session of its agent, and At when; Prompt says whether it is waited for.
func (c *Callee) Job() *index.Job { return c.job }

// Session is the one of its agent that was asked.
func (c *Callee) Session() uint64 { return c.session }

// At is when it was asked.
func (c *Callee) At() quantity.Instant { return c.asked }

// Prompt says whether it is waited for.
func (c *Callee) Prompt() bool { return c.prompt }

// Said says whether its agent has answered.
func (c *Callee) Said() bool { return c.said }

// Of are its variants for a window, once its round is over.
func (c *Callee) Of(window uint64) []protocol.Variant {
	from, _ := slices.BinarySearchFunc(c.variants, window, func(v protocol.Variant, id uint64) int { return cmp.Compare(v.Window, id) })
	to := from
	for to < len(c.variants) && c.variants[to].Window == window {
		to++
	}
	return c.variants[from:to]
}

// Note adds a notice about its variants, sent once its round is over.
func (c *Callee) Note(n protocol.Notice) { c.notices = append(c.notices, n) }

// Win notes that one of its variants is sold or planned.
func (c *Callee) Win() { c.won = true }

// Awaited returns a copy of the callee for which the round waits, however often its agent has failed to answer in time.
func (c Callee) Awaited() Callee {
	c.prompt = true
	return c
}

// AddOffer adds a window to what a round is about.
func (r *Round) AddOffer(o Offer) { r.offers = append(r.offers, o) }
