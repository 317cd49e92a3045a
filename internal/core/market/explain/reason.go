package explain

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/quantity"
)

// Reason is one cause of not getting a window; Eligible is none. A job that lost a thousand rounds gets counts, not a log.
type Reason uint8

// The causes.
const (
	Eligible Reason = iota
	// Paused by its owner, Resting after a failure, Ending.
	Paused
	Resting
	Ending
	// QueueCap: its queue holds as many slices as it may.
	QueueCap
	// LostToPolicy: others came first, or bid more.
	LostToPolicy
	// What an atomizer refuses for (atomizer.Why).
	NoFreeWork
	AtParallelism
	Unsafe
	TooShort
	NotForever
	Barred
	// Reserved: a better place than any window is kept for it. InLine: it is served in the order of rigid jobs alone.
	Reserved
	InLine
	// Unattended: it has no agent. Unanswered: its agent did not answer in time. Denied: its bid broke a rule.
	Unattended
	Unanswered
	Denied
	// TurnedDown: a node refused what it had won.
	TurnedDown
	// Declined: it was first in order for a window and cut no piece that fits. Aside: it rests because of that, and is in no order
	// meanwhile.
	Declined
	Aside
)

// Counts are why a job was not served, since the floor came up. Invariant: one entry for each reason that there was, in the order of the
// reasons. Most jobs that wait have one or two.
type Counts struct{ list []Cause }

// Cause is one reason: how often it decided, the last time, and what the last refusal of that kind would have needed.
type Cause struct {
	Reason  Reason
	N       int64
	Last    quantity.Instant
	Refusal atomizer.Refusal
}

// of finds or makes the entry of a reason.
func (c *Counts) of(r Reason) *Cause {
	i := 0
	for i < len(c.list) && c.list[i].Reason < r {
		i++
	}
	if i == len(c.list) || c.list[i].Reason != r {
		c.list = slices.Insert(c.list, i, Cause{Reason: r})
	}
	return &c.list[i]
}

// Add counts a reason once more.
func (c *Counts) Add(r Reason, now quantity.Instant) {
	e := c.of(r)
	e.N++
	e.Last = now
}

// Several adds n of a kind, the last of them at this instant, to the entry of the reason.
func (c *Counts) Several(r Reason, n int64, last quantity.Instant) *Cause {
	e := c.of(r)
	e.N += n
	e.Last = max(e.Last, last)
	return e
}

// Refuse counts what an atomizer refused.
func (c *Counts) Refuse(why atomizer.Refusal, now quantity.Instant) {
	r := reasonOf[why.Why]
	c.Add(r, now)
	c.of(r).Refusal = why
}

// SeveralRefusals adds n refusals of one kind, the last of them at this instant.
func (c *Counts) SeveralRefusals(why atomizer.Refusal, n int64, last quantity.Instant) {
	c.Several(reasonOf[why.Why], n, last).Refusal = why
}

// reasonOf turns an atomizer's refusal into the reason it is counted under.
var reasonOf = [...]Reason{
	atomizer.Interested: Eligible, atomizer.NoFreeWork: NoFreeWork, atomizer.AtParallelism: AtParallelism,
	atomizer.Unsafe: Unsafe, atomizer.TooShort: TooShort, atomizer.NotForever: NotForever, atomizer.Barred: Barred,
}

// ReasonOf is what an atomizer's refusal is counted as.
func ReasonOf(why atomizer.Why) Reason { return reasonOf[why] }

// Latest is the reason counted last, of several at one instant the last in their order; Eligible if none was.
func (c *Counts) Latest() (best Cause) {
	for i := range c.list {
		if e := &c.list[i]; e.Last >= best.Last {
			best = *e
		}
	}
	return best
}

// All are the entries, in the order of the reasons. They are only read.
func (c *Counts) All() []Cause { return c.list }

// Clone is a copy that counts on by itself.
func (c *Counts) Clone() Counts { return Counts{slices.Clone(c.list)} }

// Clear forgets what was counted: another life of the job begins.
func (c *Counts) Clear() { c.list = nil }
