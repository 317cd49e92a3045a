package auction

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/deadline"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// TestNoAgentSaysHowMuchItsDeadlinePresses: under the objective's weights a bid is worth the same whatever is declared with it.
func TestNoAgentSaysHowMuchItsDeadlinePresses(t *testing.T) {
	now := quantity.Instant(1e15)
	w := newWorld(deadline.Policy{}, Config{})
	w.offer("s", 10, 1000, protocol.Gap{Start: now, End: quantity.Never})
	s := markettest.Spec(t, 1)
	s.Deadline = now.Add(10 * time.Hour)
	w.submit(markettest.Job{Of: s, Came: now.Add(-time.Hour)})
	w.parts.Index.Refresh(now)
	win := window.Of(1, now, quantity.Never)
	total := func(declared int64) int64 {
		v := protocol.Variant{ID: 1, Window: 1, Range: job.Range{To: 1000}, Start: now, Run: 20 * time.Minute, Wall: 21 * time.Minute,
			Score: declared}
		var b bid
		b.Variant, b.Job, b.End, b.Speed = v, w.jobs[0], now.Add(v.Wall), 1000
		w.x.quoter.appraise(now, &b, w.slices[0], win, false)
		return b.total
	}
	if honest, liar := total(0), total(score.One); honest != liar || honest == 0 {
		t.Errorf("a bid is worth %d, and %d with the highest score declared", honest, liar)
	}
}
