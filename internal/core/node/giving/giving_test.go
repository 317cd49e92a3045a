package giving

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

const t0 = quantity.Instant(1_000_000 * time.Second)

func after(s int) quantity.Instant { return t0.Add(time.Duration(s) * time.Second) }

// TestATakenSliceCostsWhatIsDoneSinceItsLastGain: progress that is reported again is no gain, and what is worth nothing before its end
// loses all since its start.
func TestATakenSliceCostsWhatIsDoneSinceItsLastGain(t *testing.T) {
	var g Giver
	gains, whole, over := job.Token{Seq: 1}, job.Token{Seq: 2}, job.Token{Seq: 3}
	for _, token := range []job.Token{gains, whole, over} {
		g.Report(after(10), token, 5)
		g.Report(after(30), token, 5)
	}
	g.Over(over)
	for _, c := range []struct {
		name  string
		sold  []Sold
		want  reclaim.Cost
		known bool
	}{
		{"nothing", nil, reclaim.Cost{}, false},
		{"not started", []Sold{{Token: gains, End: after(100)}}, reclaim.Cost{Left: 60 * time.Second}, true},
		{"since its gain", []Sold{{Token: gains, Since: t0, End: after(100)}},
			reclaim.Cost{Lost: 30 * time.Second, Left: 60 * time.Second}, true},
		{"since its start, which is later", []Sold{{Token: gains, Since: after(20), End: after(100)}},
			reclaim.Cost{Lost: 20 * time.Second, Left: 60 * time.Second}, true},
		{"whole", []Sold{{Token: whole, Since: t0, End: after(100), Whole: true}},
			reclaim.Cost{Lost: 40 * time.Second, Left: 60 * time.Second}, true},
		{"of a token that was over", []Sold{{Token: over, Since: t0, End: after(100)}},
			reclaim.Cost{Lost: 40 * time.Second, Left: 60 * time.Second}, true},
		{"past its end", []Sold{{Token: gains, Since: t0, End: after(20)}}, reclaim.Cost{Lost: 30 * time.Second}, true},
		{"two, without an end", []Sold{{Token: gains, Since: t0, End: quantity.Never},
			{Token: whole, Since: t0, End: quantity.Never, Whole: true}},
			reclaim.Cost{Lost: 70 * time.Second, Left: mostLeft}, true},
	} {
		if got, known := g.loss(after(40), c.sold); got != c.want || known != c.known {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, known, c.want, c.known)
		}
	}
}

// TestADecisionWaitsForMoreAndUntilItIsKnownWhatRuns: what comes later does not put it off.
func TestADecisionWaitsForMoreAndUntilItIsKnownWhatRuns(t *testing.T) {
	var g Giver
	g.Hear(t0, &protocol.Wishes{Lost: []string{"m"}})
	g.Hear(t0.Add(Gathers/2), &protocol.Wishes{Lost: []string{"m"}})
	if g.Due() != t0.Add(Gathers) {
		t.Errorf("due at %v, want %v", g.Due(), t0.Add(Gathers))
	}
	asked := func(job.SliceID) []Sold { t.Error("it decides, and nobody knows what runs"); return nil }
	keep := func(job.SliceID, []protocol.Reservation) { t.Error("it keeps a slice that nobody wishes for") }
	if g.Decide(after(1), Node{Sold: asked, Keep: keep}); g.Due() != after(1).Add(blind) {
		t.Errorf("due at %v, want %v", g.Due(), after(1).Add(blind))
	}
	if g.Decide(after(2), Node{Confirmed: true, Sold: asked, Keep: keep}); g.Due() != 0 {
		t.Errorf("due at %v, and there are no wishes", g.Due())
	}
}
