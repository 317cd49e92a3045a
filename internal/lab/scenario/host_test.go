package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// hosted is a small world with a host whose ways differ.
const hosted = `
scenario: hosted
cluster:
  nodes: [{name: n, gpus: "sim:a100-80gb=4"}, {name: serve, gpus: "sim:a100-80gb=1"}]
  reservations: [{kind: serving, slices: serve, start: 1h, for: 1h, every: 2h}]
host:
  planner: %s
  notice: %s
  walltimes: %s
  synthetic: {load: 0.7, arrivals: {poisson: 2m}, durations: {lognormal: {median: 8m, sigma: 1}}, gpus: {1: 70, 2: 20, 4: 10}, multi: gang, timeError: {bias: 0.6, sigma: 0.4}}
mechanism: {horizon: 1h}
workload:
  synthetic: {jobs: 60, arrivals: {poisson: 1s}, durations: {lognormal: {median: 3h, sigma: 0.8}}}
window: {warmup: 10m, until: 12h, limit: 16h}
`

// TestAHostIsTheSameToAll: whatever the host's way, every mechanism has the same gaps, leaves them when the host comes, and has a
// backlog; and who keeps more than nothing does so within what there is.
func TestAHostIsTheSameToAll(t *testing.T) {
	for _, c := range [][3]string{{"easy", "30s", "declared"}, {"conservative", "2m", "declared"}, {"fcfs", "0s", "none"},
		{"skip", "20s", "none"}} {
		t.Run(strings.Join(c[:], " "), func(t *testing.T) {
			t.Parallel()
			s, err := scenario.Parse("hosted.yml", fmt.Appendf(nil, hosted, c[0], c[1], c[2]))
			if err != nil {
				t.Fatal(err)
			}
			m, err := table().Find(s, []string{"nothing", "all", "checkpoint:5m", "pilot:3m"})
			if err != nil {
				t.Fatal(err)
			}
			results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
			if err != nil {
				t.Fatal(err)
			}
			if len(results) != 12 {
				t.Errorf("%d mechanisms; want nothing, sja, jasda, seven more and two with intervals", len(results))
			}
			first, useful := results[0].Metrics, map[string]float64{}
			for _, r := range results {
				for _, same := range []string{measure.Gaps, measure.GapMean} {
					if r.Metrics.Get(same) != first.Get(same) {
						t.Errorf("%s: %s is %g, and %g of %s", r.Mechanism, same, r.Metrics.Get(same), first.Get(same),
							results[0].Mechanism)
					}
				}
				if n := r.Metrics.Get(measure.Gaps); n < 20 {
					t.Errorf("%g gaps are no test", n)
				}
				if d := r.Metrics.Get(measure.HostDelayMean); d > 1e-6 {
					t.Errorf("%s: the host waits for %g s", r.Mechanism, d)
				}
				// who keeps nothing may do the same work for ever
				if u := r.Metrics.Get(measure.LeftoverUseful); r.Mechanism == "nothing" && u != 0 || r.Mechanism != "nothing" &&
					(u < .05 && r.Mechanism != "requeue" && (c[1] != "0s" || r.Mechanism != "checkpoint") || u > 1.02) {
					t.Errorf("%s: %g of the leftover time is useful", r.Mechanism, u)
				}
				useful[r.Mechanism] = r.Metrics.Get(measure.LeftoverUseful)
				if len(r.Broken) > 0 || r.Metrics.Get(measure.BacklogDry) > 0 {
					t.Errorf("%s: broken %v, without a backlog for %g of the time", r.Mechanism, r.Broken,
						r.Metrics.Get(measure.BacklogDry))
				}
			}
			for _, ours := range []string{"sja", "jasda"} { // that the host has given a slice back is heard at once
				if useful[ours] < useful["checkpoint"]-.1 {
					t.Errorf("%s has %.3f of the leftover time useful, checkpoint %.3f", ours, useful[ours], useful["checkpoint"])
				}
			}
		})
	}
}

// TestAHostNeedsMoreThanAName: what a host can not be is said, with what to do.
func TestAHostNeedsMoreThanAName(t *testing.T) {
	good := fmt.Sprintf(hosted, "easy", "30s", "declared")
	for _, c := range []struct{ old, wrong, says string }{
		{"until: 12h, limit: 16h", "until: 12h", "needs a window with until and limit"},
		{"start: 1h, for: 1h", "at: 1h, start: 1h, for: 1h", "announce it earlier"},
		{"walltimes: declared", "walltimes: guessed", "guessed"},
	} {
		if _, err := scenario.Parse("bad.yml", []byte(strings.Replace(good, c.old, c.wrong, 1))); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", c.wrong, err, c.says)
		}
	}
	s, err := scenario.Parse("good.yml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"easy"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m}); err == nil ||
		!strings.Contains(err.Error(), "requeue") {
		t.Errorf("a planner of whole clusters: %v", err)
	}
	if s.Host.Planner = "migrate"; true {
		if _, err := table().Find(s, []string{"sja"}); err == nil || !strings.Contains(err.Error(), "migrate") {
			t.Errorf("a host that preempts its own: %v", err)
		}
	}
	small, err := scenario.Load("small")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table().Find(small, []string{"requeue"}); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("a filler without a host: %v", err)
	}
}
