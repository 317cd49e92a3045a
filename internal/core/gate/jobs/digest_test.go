package jobs

import (
	"testing"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestEveryDurableFieldMovesTheDigest: facts that lose one would fold to what looks like the same state.
func TestEveryDurableFieldMovesTheDigest(t *testing.T) {
	e := &Job{}
	sum := func() uint64 {
		e.submittedSum = e.sumSubmitted(digest.Optional(digest.New(), e.spec).Sum())
		return e.hash()
	}
	digesttest.EveryField(t, e, sum, "index", "taken", "submittedSum", "sum", "pauseKnown", "telling", "sequel.expires", "sequel.leaving",
		"sequel.moving.record")
	q := &protocol.Queue{}
	digesttest.EveryField(t, q, func() uint64 { return q.Mix(digest.New()).Sum() })
	s := &job.Spec{}
	digesttest.EveryField(t, s, func() uint64 { return s.Mix(digest.New()).Sum() })
}
