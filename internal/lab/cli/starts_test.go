package cli

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

// TestStartsAreCompared: what starts take beyond one in each gap is held against the same mechanism without programs that stay.
func TestStartsAreCompared(t *testing.T) {
	of := func(name string, values ...float64) outcome.Result {
		r := outcome.Result{Run: measure.Run{Mechanism: name}}
		for i, v := range values {
			r.Metrics.Set(measure.StartsTable()[i].Name, v)
		}
		return r
	}
	var out strings.Builder
	if err := started(&out, []outcome.Result{of("sja", 20, 30, 1200, 10, 600), of("sja:cold", 50, 0, 3000, 10, 2400),
		of("jasda", 9, 1, 540), of("checkpoint")}); err != nil {
		t.Fatal(err)
	}
	want := `
PROGRAMS  COLD-STARTS  RESIDENT  START-TIME  GAPS-USED  BEYOND-ONE  /COLD
sja       20           30        20m         10         10m         0.25
sja:cold  50           0         50m         10         40m         -
jasda     9            1         9m          -          -           -
`
	if out.String() != want {
		t.Errorf("got%s\nwant%s", out.String(), want)
	}
	out.Reset()
	if err := started(&out, []outcome.Result{of("easy")}); err != nil || out.String() != "" {
		t.Errorf("%v, %q", err, out.String())
	}
}

// TestMessages: the table adds up to the metric, and lean worlds have none.
func TestMessages(t *testing.T) {
	r := sluice(t, "sim", "run", "stories/backfill", "-m", "sja", "--messages")
	if r.code != 0 || !strings.Contains(r.out, "A SUBJOB") || !strings.Contains(r.out, "Redeem") {
		t.Errorf("%+v", r)
	}
	r = sluice(t, "sim", "run", "laminar-1k", "--messages")
	if r.code != command.ExitUsage || !strings.Contains(r.err, "messagesPerTask") {
		t.Errorf("%+v", r)
	}
}
