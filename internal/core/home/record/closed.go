package record

import (
	"time"

	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/quantity"
)

// MostClosing bounds the unconfirmed verdicts of one interval of Config.Retry. After a restart all kept verdicts are sent again.
const MostClosing = 1024

// Closed are the jobs with a verdict on their way out: the gate is told of each until it confirms it, and then, where there is an archive,
// it leaves to it (docs/adr/0022-archive.md). Invariant: a job leaves only when the gate has its verdict and all of its output is in its
// place.
type Closed struct {
	saying  outbox.Box[*Job]
	leaving *filing.Tray[*Job] // nil: none leaves
	due     []*Job             // room
}

func newClosed(archive *filing.Config, retry time.Duration) Closed {
	c := Closed{saying: outbox.New[*Job](retry, MostClosing)}
	if archive != nil {
		c.leaving = filing.New[*Job](*archive, retry)
	}
	return c
}

// announce has the gate told of a job's verdict.
func (c *Closed) announce(j *Job) {
	e := j.makeEnd()
	e.closing = c.saying.Say(e.closing, j)
}

// withdraw takes a job out of those that are closed, and of those that leave.
func (c *Closed) withdraw(j *Job) {
	if e := j.end; e != nil {
		e.closing, e.leaving = c.saying.Confirm(e.closing), c.leaving.Drop(e.leaving)
	}
}

// Confirm notes that the gate has a job's verdict.
func (c *Closed) Confirm(j *Job) {
	e := j.makeEnd()
	e.acked, e.closing = true, c.saying.Confirm(e.closing)
	c.mayLeave(j)
}

// mayLeave lets a job leave in its time if nothing more is due for it.
func (c *Closed) mayLeave(j *Job) {
	published := len(j.Output().List()) == 0
	if e := j.end; e != nil && e.acked && e.Final() && published {
		e.leaving = c.leaving.Put(e.leaving, j, e.Ended())
	}
}

// Leaves says whether a job is on its way to the archive.
func (c *Closed) Leaves(j *Job) bool { return j.end != nil && j.end.leaving != nil }

// DueVerdicts are the jobs whose verdicts are to be sent now, by id.
func (c *Closed) DueVerdicts(now quantity.Instant) []*Job {
	c.due = c.due[:0]
	for j, ok := c.saying.Next(now); ok; j, ok = c.saying.Next(now) {
		c.due = append(c.due, j)
	}
	return ByName(c.due)
}

// DueFilings are the jobs that are filed now, by id.
func (c *Closed) DueFilings(now quantity.Instant) []*Job { return ByName(c.leaving.Due(now)) }

// Wake is when to ask again.
func (c *Closed) Wake() quantity.Instant { return min(c.saying.Wake(), c.leaving.Wake()) }
