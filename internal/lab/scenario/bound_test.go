package scenario_test

import (
	"fmt"
	"math"
	"testing"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// playText runs a scenario's text under some mechanisms.
func playText(t *testing.T, text string, seeds []uint64, mechanisms ...string) []outcome.Result {
	t.Helper()
	s, err := scenario.Parse("test.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, mechanisms)
	if err != nil {
		t.Fatal(err)
	}
	results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m, Seeds: seeds})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestTheBoundAllowsBlocksThatEndAfterTheWindow: they count with the part inside. Both slices are busy to the window's end,
// and nothing better can be done.
func TestTheBoundAllowsBlocksThatEndAfterTheWindow(t *testing.T) {
	for _, r := range playText(t, `
scenario: over
cluster: {nodes: [{gpus: "sim:custom=2,mem=10Gi"}]}
workload:
  jobs:
    - {at: 0s, name: long, count: 2, every: 1s, rigid: {walltime: 2h}, memory: 8Gi}
window: {until: 30m}
`, nil, "sja", "easy", "migrate") {
		if got, want := r.Metrics.Get(measure.UsefulWork), 3599.; math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v s of useful work, want %v", r.Mechanism, got, want)
		}
		if got := r.Metrics.Get(measure.BoundShare); math.Abs(got-1) > 1e-6 {
			t.Errorf("%s: %v of the bound, want all of it", r.Mechanism, got)
		}
	}
}

// TestNobodyPassesTheBound: whatever the work, no mechanism does more than what is possible, or ends jobs sooner, and what is busy is
// shared out.
func TestNobodyPassesTheBound(t *testing.T) {
	known, runs := 0, 0
	for i, stream := range []string{
		"{load: 0.8, jobs: 20, atomizable: 0%, arrivals: {poisson: 30s}, durations: {lognormal: {median: 10m, sigma: 1.5}}, cap: 4h}",
		"{load: 1.2, atomizable: 0%, arrivals: philly, durations: {uniform: [1m, 30m]}}",
		"{load: 0.9, atomizable: 50%, arrivals: {poisson: 2m}, durations: philly, cap: 4h, gpus: {1: 80, 2: 20}, multi: gang}",
		"{load: 1.1, atomizable: 100%, arrivals: {poisson: 2m}, durations: philly, cap: 4h, grain: 10s}",
	} {
		for _, gpus := range []string{"a100-40gb=2,layout=4g.20gb+3g.20gb", "a100-40gb=1,layout=4g.20gb+3g.20gb"} {
			for _, r := range playText(t, fmt.Sprintf(`
scenario: any
cluster: {nodes: [{gpus: "sim:%s"}]}
workload: {synthetic: [%s]}
window: {warmup: 30m, until: 3h, limit: 30d}
`, gpus, stream), []uint64{2, 4, 7}, play.All) {
				runs++
				if least := r.Metrics.Get(measure.CompletionOverBound); !math.IsNaN(least) {
					known++
					if least < 1-1e-6 {
						t.Errorf("stream %d on %s, %s, seed %d: the mean completion is %v of the least", i, gpus, r.Mechanism, r.Seed,
							least)
					}
				}
				bound, use := r.Metrics.Get(measure.BoundShare), r.Metrics.Get(measure.Utilization)
				if bound > 1+1e-6 || use > 1+1e-9 || r.Metrics.Get(measure.UsefulUtilization) > use+1e-9 {
					t.Errorf("stream %d on %s, %s, seed %d: %v of the bound, use %v, useful %v", i, gpus, r.Mechanism, r.Seed, bound, use,
						r.Metrics.Get(measure.UsefulUtilization))
				}
			}
		}
	}
	if known*2 < runs {
		t.Errorf("only %d of %d runs know how far they are from the least mean completion", known, runs)
	}
}
