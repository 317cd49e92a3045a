package queues

import (
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Purses shares out the credits that queues pay with for what their jobs win; docs/crash-table.md has their row. Invariant: weights is
// the sum over the queues that have jobs without a verdict, so the purses of these together hold what Refill gives for all slices.
//
// A credit is a millisecond of a slice at a score of 1. A queue holds its credits in its Calibration, and they are counted up when they are
// looked at. A fact says what it has when something is to be paid; the price itself is in the claim, so that no crash comes between what
// is sold and what is paid.
type Purses struct {
	refill  int64
	per     time.Duration
	slices  interface{ Slices() int }
	weights int64
}

// NewPurses shares out refill credits of each slice in such a time.
func NewPurses(refill int64, per time.Duration, slices interface{ Slices() int }) Purses {
	return Purses{refill: refill, per: per, slices: slices}
}

// Open counts more jobs of a queue without a final verdict; fewer where more is below 0.
func (p *Purses) Open(q *Queue, more int) {
	if q.alive > 0 {
		p.weights -= q.share()
	}
	q.alive += more
	if q.alive > 0 {
		p.weights += q.share()
	}
}

// Set gives a queue its settings.
func (p *Purses) Set(q *Queue, to protocol.Queue) {
	alive := q.alive
	p.Open(q, -alive)
	q.Queue = to
	p.Open(q, alive)
}

// share is what a queue counts for among those with jobs.
func (q *Queue) share() int64 { return max(1, q.Weight) }

// full is what a queue's purse holds, and is refilled by in p.per, as the cluster and the other queues now are.
func (p *Purses) full(q *Queue) int64 {
	return max(1, quantity.MulDiv(p.refill*int64(p.slices.Slices()), q.share(), max(q.share(), p.weights)))
}

// Refilled is a queue's standing with what time has brought it. A queue that never paid begins with a full purse.
func (p *Purses) Refilled(now quantity.Instant, q *Queue) protocol.Calibration {
	s, full := q.calibration, p.full(q)
	s.Queue = q.Name
	if s.Refilled == 0 {
		s.Credits, s.Refilled = s.Credits+full, now
		return s
	}
	passed := min(now.Sub(s.Refilled), p.per)
	if more := quantity.MulDiv(full, int64(passed), int64(p.per)); more > 0 {
		s.Credits, s.Refilled = max(s.Credits, min(full, s.Credits+more)), now
	}
	return s
}

// Left is what a queue can still pay: what it has, less what it has offered in asks that are not answered yet; and what it holds when
// it is full.
func (p *Purses) Left(now quantity.Instant, q *Queue) (has, full int64) {
	return max(0, p.Refilled(now, q).Credits-q.pledged), p.full(q)
}
