package queues

import (
	"testing"

	"sluice.dev/sluice/internal/core/digest/digesttest"
)

// TestEveryDurableFieldMovesTheDigest: facts that lose one would fold to what looks like the same state.
func TestEveryDurableFieldMovesTheDigest(t *testing.T) {
	q := &Queue{}
	digesttest.EveryField(t, q, q.Sum, "attained", "held", "asking", "going", "pledged", "alive")
}
