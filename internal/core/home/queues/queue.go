// Package queues accounts for what queues hold, have had and pay with. It knows no jobs: its caller reports what they take and give back.
package queues

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Queue is one queue's settings and use. Invariant: what it holds, asks for, has pledged and is running is the sum over the claims and
// asks of its jobs, since each that begins to count is taken out again as it was put in.
type Queue struct {
	protocol.Queue
	// calibration is what the market has learned of the queue, with its credits. Durable, as the settings are.
	calibration protocol.Calibration
	// attained is the sum over its jobs, those included that the archive alone has, in MiB-milliseconds.
	attained int64
	// held is the number of slices its claims hold, asking that of its unanswered asks, pledged what these will take of its credits.
	held, asking int
	pledged      int64
	// going is what its running subjobs have had so far.
	going meter
	// alive is how many jobs without a final verdict it has.
	alive int
}

// New is a queue that nobody has set up: it has weight 1 and no caps.
func New(name string) Queue { return Queue{Queue: protocol.Queue{Name: name, Weight: 1}} }

// Hold counts n more slices of claims; fewer where n is below 0.
func (q *Queue) Hold(n int) { q.held += n }

// Ask counts n more slices that are asked for at a price.
func (q *Queue) Ask(n int, price int64) { q.asking, q.pledged = q.asking+n, q.pledged+price }

// Answered takes them out.
func (q *Queue) Answered(n int, price int64) { q.asking, q.pledged = q.asking-n, q.pledged-price }

// Begin counts a subjob with this much memory as running since then.
func (q *Queue) Begin(at quantity.Instant, memory int64) { q.going.add(at, memory) }

// Stop takes it out.
func (q *Queue) Stop(at quantity.Instant, memory int64) { q.going.remove(at, memory) }

// Attain adds to what ended subjobs have had.
func (q *Queue) Attain(more int64) { q.attained += more }

// Held is how many slices its claims hold.
func (q *Queue) Held() int { return q.held }

// Holding is the same with the slices of asks.
func (q *Queue) Holding() int { return q.held + q.asking }

// Pledged is what its asks will take of its credits.
func (q *Queue) Pledged() int64 { return q.pledged }

// Attained is what its jobs have had, those included that the archive alone has, in MiB-milliseconds.
func (q *Queue) Attained() int64 { return q.attained }

// Use is the same with what runs now.
func (q *Queue) Use(now quantity.Instant) int64 { return q.attained + q.going.at(now) }

// Calibration is what the market has learned of it, and its credits.
func (q *Queue) Calibration() protocol.Calibration { return q.calibration }

// Trust is what was observed of its declarations.
func (q *Queue) Trust() *protocol.Trust { return &q.calibration.Trust }

// Calibrate records a new calibration. What it has for archived jobs counts as attained.
func (q *Queue) Calibrate(s *protocol.Calibration) {
	q.attained += s.Archived - q.calibration.Archived
	q.calibration = *s
}

// Archive adds to what archived jobs of the queue have attained. Jobs that leave attain no less for their queue by it.
func (q *Queue) Archive(more int64) {
	was := q.calibration.Archived
	q.calibration.Queue, q.calibration.Archived = q.Name, max(0, was+more)
	if more < 0 {
		q.attained += q.calibration.Archived - was
	}
}

// Credit adds to what it has; what it pays is below 0.
func (q *Queue) Credit(more int64) { q.calibration.Credits += more }

// Sum hashes its durable state. It is 0 for a queue as good as unknown: reading one makes it.
func (q *Queue) Sum() uint64 {
	if q.Queue == (protocol.Queue{Name: q.Name, Weight: 1}) && q.calibration == (protocol.Calibration{}) {
		return 0
	}
	h := q.Mix(digest.New())
	if q.calibration != (protocol.Calibration{}) {
		h = q.calibration.Mix(h)
	}
	return h.Sum()
}
