package scenario_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// wide has a gang that needs more slices than a node has, and as many as there are.
const wide = `
scenario: wide
cluster: {nodes: [{name: n, count: 2, gpus: "sim:a100-40gb=1,layout=2x3g.20gb"}]}
mechanism: {use: [sja, jasda]}
workload:
  jobs:
    - {at: 10s, name: gang, rigid: {walltime: 1m, slices: 4}, memory: 1Gi}
    - {at: 10s, name: one, count: 3, every: 1m, rigid: {walltime: 2m}, memory: 1Gi}
`

// played are the results of a scenario under its mechanisms.
func played(t *testing.T, text string, mechanisms []string, sets ...strict.Set) []outcome.Result {
	t.Helper()
	s, err := scenario.Parse("wide.yml", []byte(text), sets...)
	if err != nil {
		t.Fatal(err)
	}
	if mechanisms == nil {
		mechanisms = s.Settings.Use
	}
	m, err := table().Find(s, mechanisms)
	if err != nil {
		t.Fatal(err)
	}
	results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestAGangThatNoNodeHoldsIsRejected by ours as by planners one that no class of slices holds, and counts in no mean.
func TestAGangThatNoNodeHoldsIsRejected(t *testing.T) {
	for _, c := range []struct {
		why        string
		mechanisms []string
		sets       []strict.Set
		rejected   float64
	}{
		{"wider than a node", nil, nil, 1},
		{"wider than the cluster", nil, []strict.Set{{Path: "workload.jobs.0.rigid.slices", Value: "5"}}, 1},
		{"wider than every class", []string{"easy"}, []strict.Set{{Path: "workload.jobs.0.rigid.slices", Value: "5"}}, 1},
		{"it may lie on two nodes", nil, []strict.Set{{Path: "workload.jobs.0.rigid.topology", Value: "zone"}}, 0},
	} {
		for _, r := range played(t, wide, c.mechanisms, c.sets...) {
			m := r.Run.Metrics
			rejected, unfinished, longest := m.Get(measure.Rejected), m.Get(measure.Unfinished), m.Get(measure.CompletionMax)
			if rejected != c.rejected || unfinished != 0 || longest > 10*time.Minute.Seconds() {
				t.Errorf("%s, %s: %v rejected, %v unfinished, the longest completion is %v s",
					c.why, r.Mechanism, rejected, unfinished, longest)
			}
		}
	}
}

// TestWhatWaitsForEverCountsUntilTheEnd: in a scenario without a limit, a job that can never run counts as waiting until the last event,
// and not until the end of time.
func TestWhatWaitsForEverCountsUntilTheEnd(t *testing.T) {
	text := `
scenario: shut
cluster:
  nodes: [{name: n, gpus: "sim:a100-40gb=1,layout=2x3g.20gb"}]
  reservations: [{kind: drain, slices: "*", at: 5m, start: 5m}]
mechanism: {use: [sja, jasda]}
workload: {jobs: [{at: 10s, name: one, count: 9, every: 1m, rigid: {walltime: 1m}, memory: 1Gi}]}
`
	for _, r := range played(t, text, nil) {
		m := r.Run.Metrics
		if m.Get(measure.Unfinished) < 1 {
			t.Fatalf("%s: all jobs are over, and the node is drained: the test shows nothing", r.Mechanism)
		}
		for _, name := range []string{measure.WaitMean, measure.CompletionMean, measure.CompletionMax, measure.Makespan} {
			if hour := time.Hour.Seconds(); m.Get(name) > 2*hour {
				t.Errorf("%s: %s is %v s, and nothing happens after some minutes", r.Mechanism, name, m.Get(name))
			}
		}
	}
}
