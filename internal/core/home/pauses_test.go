package home

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestPausesGrowAndBeginAnew: with every refusal in a row of what was asked for after the one before was known, up to a bound that
// is lower where nodes said nothing; and what is long ago counts no more.
func TestPausesGrowAndBeginAnew(t *testing.T) {
	for text, most := range map[string]time.Duration{"no room": mostPause, Silent: mostSilence} {
		z := newDesk(Config{})
		now := quantity.Instant(time.Hour)
		var out protocol.Out
		z.Step(now, protocol.Message{Kind: protocol.Adopt, Job: "a", Epoch: 1, Body: &protocol.Adoption{At: now, Spec: &job.Spec{
			Name: "a", Queue: "default", Kind: job.Items, Total: 10, Grid: 1, Parallelism: 1, PerUnit: time.Second, MaxFailures: 3, Deadline: quantity.Never,
			Safe: trp.Table{Bounds: []int64{10}, Least: [][]quantity.Amount{{1 << 20}}},
		}}}, &out)
		j := z.jobs["a"]
		b := &j.troubled().backoff
		for i := range 10 {
			asked := z.NewAsk()
			z.BackOff(now, j, nil, asked, text)
			z.BackOff(now, j, nil, asked, text) // one that was asked for beside it
			if b.refusals != i+1 {
				t.Fatalf("%s: %d refusals in a row are counted after %d", text, b.refusals, i+1)
			}
			if want := min(most, time.Second<<i); b.refusals >= refusedOften && b.until.Sub(now) != want {
				t.Errorf("%s: after %d refusals it pauses for %v, want %v", text, i+1, b.until.Sub(now), want)
			}
			now = max(now, b.until).Add(time.Second)
		}
		now = now.Add(2*mostPause + 1)
		if z.BackOff(now, j, nil, z.NewAsk(), text); b.refusals != 1 {
			t.Errorf("%s: %d refusals in a row, the one before was long ago", text, b.refusals)
		}
	}
}

// TestTroublesCountInARow: those of subjobs that were started side by side are one, and a subjob that meets none ends the row.
func TestTroublesCountInARow(t *testing.T) {
	z := newDesk(Config{})
	j, now := &Job{}, quantity.Instant(time.Hour)
	trouble := &job.Result{Outcome: job.NodeFailed, Detail: "no space left"}
	for i := range 10 {
		z.ail(now, j, trouble)
		z.ail(now, j, trouble)
		if want := min(mostPause, z.cfg.Backoff<<i); j.met().ailed.times != i+1 || j.met().ailed.until.Sub(now) != want {
			t.Fatalf("after %d troubles in a row: %+v, want a pause of %v", i+1, j.met().ailed, want)
		}
		now = j.met().ailed.until
	}
	z.ail(now, j, &job.Result{Outcome: job.ExitFailed})
	if z.ail(now, j, trouble); j.met().ailed.times != 1 {
		t.Errorf("after a subjob that met none: %+v", j.met().ailed)
	}
}
