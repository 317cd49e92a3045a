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
	// terms are of the valid variants, and bids these variants themselves, except their instants.
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

// book keeps quotes, and room for those that were. They are found through their jobs; what is asked for no longer gives way.
type book struct {
	quotes []*quote
	hand   int
	blanks []*quote
}

// looks is among how many quotes the one is chosen that gives way.
const looks = 8

// blank is a quote to be filled.
func (b *book) blank() *quote {
	n := len(b.blanks)
	if n == 0 {
		return &quote{}
	}
	q := b.blanks[n-1]
	b.blanks = b.blanks[:n-1]
	return q
}

// keep adds a quote, evicting one beyond most; false if all that it looks at were asked for in this clearing.
func (b *book) keep(q *quote, most int) bool {
	if len(b.quotes) >= most {
		var oldest *quote
		for range min(looks, len(b.quotes)) {
			b.hand = (b.hand + 1) % len(b.quotes)
			if old := b.quotes[b.hand]; oldest == nil || old.clearing < oldest.clearing {
				oldest = old
			}
		}
		if oldest == nil || oldest.clearing == q.clearing {
			return false
		}
		at := &recordOf(oldest.job).quotes
		for *at != oldest {
			at = &(*at).next
		}
		*at = oldest.next
		b.strike(oldest)
	}
	q.at = len(b.quotes)
	b.quotes = append(b.quotes, q)
	return true
}

// strike takes a quote out that its job has no more.
func (b *book) strike(q *quote) {
	last := b.quotes[len(b.quotes)-1]
	b.quotes[q.at], last.at = last, q.at
	b.quotes[len(b.quotes)-1] = nil
	b.quotes = b.quotes[:len(b.quotes)-1]
	b.release(q)
}

// forget strikes all quotes of a job: it may answer otherwise now.
func (b *book) forget(j *index.Job) {
	for q := recordOf(j).quotes; q != nil; q = recordOf(j).quotes {
		recordOf(j).quotes = q.next
		b.strike(q)
	}
}

// release takes back the room of a quote that is in use no longer.
func (b *book) release(q *quote) {
	q.job, q.next = nil, nil
	b.blanks = append(b.blanks, q)
}
