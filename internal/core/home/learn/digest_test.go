package learn

import (
	"testing"

	"sluice.dev/sluice/internal/core/digest/digesttest"
)

// TestEveryDurableFieldOfATemplateMovesTheDigest: facts that lose one would fold to what looks like the same state. Of what runs teach
// there is a test in forecast.
func TestEveryDurableFieldOfATemplateMovesTheDigest(t *testing.T) {
	l := &Template[int]{}
	digesttest.EveryField(t, l, func() uint64 { return l.hash("q") }, "runs.List", "sum", "untold", "heard", "done", "tables")
}
