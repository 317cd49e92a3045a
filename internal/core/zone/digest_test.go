package zone

import (
	"testing"

	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestEveryDurableFieldMovesTheDigest: facts that lose one would fold to what looks like the same state. A spec has its own
// test, at the gate.
func TestEveryDurableFieldMovesTheDigest(t *testing.T) {
	r := &protocol.Record{}
	digesttest.EveryField(t, r, func() uint64 { return recordSum(r, sumsOf(r)) })
	q := &queue{}
	digesttest.EveryField(t, q, func() uint64 { return queueSum(q) },
		"zone", "attained", "held", "asking", "going", "kept", "pledged", "templates", "alive", "alike", "rosters")
	l := &template{}
	digesttest.EveryField(t, l, func() uint64 { return templateSum("q", l) }, "sum", "untold", "tables")
}
