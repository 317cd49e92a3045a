package zone

import (
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

// counts of why a job was not served, since the zone came up.
type counts struct {
	n    [reasons]int64
	last [reasons]quantity.Instant
	// need is what the last refusal of that kind would have needed.
	refusals [reasons]atomizer.Refusal
}

func (c *counts) add(r reason, now quantity.Instant) {
	c.n[r]++
	c.last[r] = now
}

// several adds n of a kind, the last of them at this instant.
func (c *counts) several(r reason, n int64, last quantity.Instant) {
	c.n[r] += n
	c.last[r] = max(c.last[r], last)
}

func (c *counts) refusal(f atomizer.Refusal, now quantity.Instant) {
	r := reasonOf[f.Why]
	c.add(r, now)
	c.refusals[r] = f
}

// reasonOf turns an atomizer's refusal into the reason it is counted under.
var reasonOf = [...]reason{
	atomizer.Interested: interested, atomizer.NoFreeWork: noFreeWork, atomizer.AtParallelism: atParallelism,
	atomizer.Unsafe: unsafe, atomizer.TooShort: tooShort, atomizer.NotForever: notForever, atomizer.Barred: barred,
}

// latest is the reason counted last; interested if none was.
func (c *counts) latest() reason {
	best := interested
	for r := held; r < reasons; r++ {
		if c.n[r] > 0 && c.last[r] >= c.last[best] {
			best = r
		}
	}
	return best
}
