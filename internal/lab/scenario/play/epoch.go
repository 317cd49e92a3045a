package play

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// epoch is when a scenario's time begins for the actors, to whom an instant of 0 is one that was not given. Everything
// else counts from 0. The cluster is there, and knows its queues, a second earlier.
const epoch = 1000 * time.Second

// later gives the jobs of a source as the actors see them.
type later struct{ of workload.Source }

// Next implements workload.Source.
func (l later) Next(j *workload.Job) (bool, error) {
	more, err := l.of.Next(j)
	j.Submit = j.Submit.Add(epoch)
	if j.Deadline != 0 {
		j.Deadline = j.Deadline.Add(epoch)
	}
	return more, err
}

// earlier passes events on in the scenario's own time, less the epoch. It is a pointer, so an event allocates nothing.
type earlier struct {
	to    measure.Observer
	job   workload.Job
	piece measure.Piece
}

// Arrived implements measure.Observer.
func (e *earlier) Arrived(at quantity.Instant, s measure.Slot, j *workload.Job) {
	e.job = *j
	e.job.Submit = j.Submit.Add(-epoch)
	if j.Deadline != 0 {
		e.job.Deadline = j.Deadline.Add(-epoch)
	}
	e.to.Arrived(at.Add(-epoch), s, &e.job)
}

// Began implements measure.Observer.
func (e *earlier) Began(at quantity.Instant, s measure.Slot, class uint8, n int32) {
	e.to.Began(at.Add(-epoch), s, class, n)
}

// Ended implements measure.Observer.
func (e *earlier) Ended(at quantity.Instant, p *measure.Piece) {
	e.piece = *p
	e.piece.Start, e.piece.End = p.Start.Add(-epoch), p.End.Add(-epoch)
	e.to.Ended(at.Add(-epoch), &e.piece)
}

// Done implements measure.Observer.
func (e *earlier) Done(at quantity.Instant, s measure.Slot, state job.State) {
	e.to.Done(at.Add(-epoch), s, state)
}

// Sent implements measure.Observer.
func (e *earlier) Sent(n int) { e.to.Sent(n) }
