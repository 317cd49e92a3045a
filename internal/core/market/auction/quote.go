package auction

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/quantity"
)

// record is what the mechanism keeps of a job.
type record struct {
	// invitation is the latest that it was asked by.
	invitation uint64
	// quotes that are kept of it, one for each class for whose windows it was asked lately.
	quotes *quote
}

// recordOf finds or makes the record of a job.
func recordOf(j *index.Job) *record {
	if x, ok := j.Record.(*record); ok {
		return x
	}
	x := &record{}
	j.Record = x
	return x
}

// quote is what a job answers to a window: its variants that stand, and of their worth all that does not depend on when the window
// is, nor on what the job and its queue have had. In windows of a class whose end is not known a job answers the same as long as it is not
// stale: such a quote is kept. Soft state.
type quote struct {
	known
	name  job.ID
	queue *account
	// next is another one of the job, for another class. at is its place in the book, clearing when it was asked for last.
	next     *quote
	at       int
	clearing uint64
	// until is the last instant at which its deadline does not press yet, and it may be used; Never without a deadline.
	until quantity.Instant
	// terms are of the variants that stand, and bids these variants themselves, but for their instants.
	terms []terms
	bids  []bid
	// variants there were, denied of them; refusal is why there was none.
	variants, denied int64
	refusal          atomizer.Refusal
	// recorded: the belief is by the job's own record; without one it is its queue's.
	recorded bool
}

// span is from when to when a variant of the quote would run in a window that begins now.
func (t *terms) span(now quantity.Instant) (start, end quantity.Instant) {
	if t.open {
		return now.Add(t.begins), quantity.Never
	}
	return now.Add(t.begins), now.Add(t.ends)
}

// bid is a variant of the quote in a window that begins now.
func (q *quote) bid(i int, now quantity.Instant, w *window.Window) bid {
	t := q.bids[i]
	t.Window = w.ID()
	t.Start, t.End = q.terms[i].span(now)
	return t
}

// account is what is read of a queue once while windows are cleared together, and nothing is sold yet.
type account struct {
	clearing, believed uint64
	// weight of the queue, and how full its purse is in parts per thousand.
	weight, fullness int64
	// belief in jobs without a record of their own, read in the clearing believed.
	belief trust.Belief
}
