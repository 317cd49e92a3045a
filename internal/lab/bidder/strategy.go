package bidder

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Turn is one answer before it is given: the honest one, for a strategy to change.
type Turn struct {
	Now  quantity.Instant
	Spec *job.Spec
	// Call that is answered, in Session.
	Call    *protocol.Call
	Session uint64
	// Answers are the messages to send, at first one with the honest variants; Think is how long that takes.
	Answers []protocol.Message
	Think   time.Duration
}

// each lets every variant be changed.
func (t *Turn) each(change func(*protocol.Variant)) {
	for i := range t.Answers {
		variants := t.Answers[i].Body.(*protocol.Proposal).Variants
		for j := range variants {
			change(&variants[j])
		}
	}
}

// Strategy changes what an honest agent would answer. One may be shared by the agents of one simulation, and by no others.
type Strategy interface{ Change(t *Turn) }
