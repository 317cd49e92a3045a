package inventory

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Stay is a program that stays on a slice after a subjob and waits for the next (ADR 0082). Soft: no boot finds one.
type Stay struct {
	protocol.Resident
	// Token of the subjob that it stayed after, which names it, and the job that this was of.
	Token job.Token
	Job   job.ID
	// Waits is since when it does.
	Waits quantity.Instant
	// Leaving is why it is to end; empty: it waits.
	Leaving string
}

// ProgramGone is why what was cut to go on in a program is not sold, or does not begin, for people.
const ProgramGone = "the program that it was to go on in is gone"
