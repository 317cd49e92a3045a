package inventory

import (
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// Condition is why a slice is not sold although it is there: it is quarantined, or its GPU fails. Durable.
type Condition struct {
	Quarantined bool
	// Why it is, since when (0: an older version did not note it), and the subjob whose processes are the reason; zero: another reason.
	Why    string
	Since  quantity.Instant
	Holder job.Token
	// Fault of its GPU; nil: none.
	Fault *health.Fault
}

// Healthy says whether the slice may be sold.
func (c *Condition) Healthy() bool { return !c.Quarantined && c.Fault == nil }

// Explain is why nothing is sold on a quarantined slice, for people.
func (c *Condition) Explain() string {
	why := c.Why
	if c.Since != 0 {
		why += ", since " + timeline.Clock(c.Since)
	}
	if !c.Holder.Zero() {
		why += "; it is sold again once they are gone"
	}
	return why
}

// Hash is its part of the digest, 0 for a slice that is healthy.
func (c *Condition) Hash(id job.SliceID) (sum uint64) {
	if c.Quarantined {
		sum += c.Holder.Mix(record.Hash(record.TagQuarantine)).Text(string(id)).Text(c.Why).Int(int64(c.Since)).Sum()
	}
	if c.Fault != nil {
		sum += c.Fault.Mix(record.Hash(record.TagFault).Text(string(id))).Sum()
	}
	return sum
}
