package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/quantity"
)

// reason is one cause of not getting a window. A job that lost a thousand rounds gets counts, not a log.
type reason uint8

const (
	interested reason = iota
	held
	resting
	ending
	queueCap
	lostToPolicy
	noFreeWork
	atParallelism
	unsafe
	tooShort
	notForever
	barred
	planned
	inLine
	unattended
	unanswered
	denied
	turnedDown
	reasons
)

// counts of why a job was not served, since the zone came up: one entry for each reason that there was, in their order.
// Most jobs that wait have one or two.
type counts struct{ list []cause }

// cause is one reason: how often it decided, the last time, and what the last refusal of that kind would have needed.
type cause struct {
	reason  reason
	n       int64
	last    quantity.Instant
	refusal atomizer.Refusal
}

// of finds or makes the entry of a reason.
func (c *counts) of(r reason) *cause {
	i := 0
	for i < len(c.list) && c.list[i].reason < r {
		i++
	}
	if i == len(c.list) || c.list[i].reason != r {
		c.list = slices.Insert(c.list, i, cause{reason: r})
	}
	return &c.list[i]
}

func (c *counts) add(r reason, now quantity.Instant) {
	e := c.of(r)
	e.n++
	e.last = now
}

// several adds n of a kind, the last of them at this instant.
func (c *counts) several(r reason, n int64, last quantity.Instant) *cause {
	e := c.of(r)
	e.n += n
	e.last = max(e.last, last)
	return e
}

func (c *counts) refusal(f atomizer.Refusal, now quantity.Instant) {
	r := reasonOf[f.Why]
	c.add(r, now)
	c.of(r).refusal = f
}

// reasonOf turns an atomizer's refusal into the reason it is counted under.
var reasonOf = [...]reason{
	atomizer.Interested: interested, atomizer.NoFreeWork: noFreeWork, atomizer.AtParallelism: atParallelism,
	atomizer.Unsafe: unsafe, atomizer.TooShort: tooShort, atomizer.NotForever: notForever, atomizer.Barred: barred,
}

// latest is the reason counted last, of several at one instant the last in their order; interested if none was.
func (c *counts) latest() (best cause) {
	for i := range c.list {
		if e := &c.list[i]; e.last >= best.last {
			best = *e
		}
	}
	return best
}
