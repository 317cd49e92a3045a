package record

import (
	"testing"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestEveryDurableFieldMovesTheDigest: facts that lose one would fold to what looks like the same state. A spec has its own
// test, at the gate.
func TestEveryDurableFieldMovesTheDigest(t *testing.T) {
	of := func(r *protocol.Record) *Job {
		j := alone(r)
		j.specSum = digest.Optional(digest.New(), r.Spec).Sum()
		return j
	}
	r := &protocol.Record{Generation: 1}
	digesttest.EveryField(t, r, func() uint64 { return of(r).hash() })
}
