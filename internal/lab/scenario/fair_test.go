package scenario_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// TestStoppingABlockIsPaidFor: where every job may be stopped, a rigid one pays what the scenario says for its checkpoint and
// its restore: 15 and 20 s of two slices.
func TestStoppingABlockIsPaidFor(t *testing.T) {
	r := playText(t, `
scenario: paid
cluster: {nodes: [{gpus: "sim:custom=2,mem=10Gi"}]}
mechanism: {preempt: all}
workload:
  jobs:
    - {at: 0s, name: wide, rigid: {walltime: 1h, slices: 2}, memory: 8Gi}
    - {at: 10s, name: short, rigid: {walltime: 2m}, memory: 8Gi}
`, nil, "migrate")[0]
	m := r.Metrics
	if m.Get(measure.Subjobs) != 1.5 || r.Finished != 2 {
		t.Fatalf("%v runs per job, %d finished: nothing was stopped", m.Get(measure.Subjobs), r.Finished)
	}
	useful := 2*3600 + 120.
	want := 2 * 35. / (useful + 2*35)
	if got := m.Get(measure.OverheadShare); got < want-1e-6 || got > want+1e-6 {
		t.Errorf("overhead %v, want %v", got, want)
	}
}

// TestPlannersRefuseWhatTheyDoNotKnow: limits of queues would bind sja alone.
func TestPlannersRefuseWhatTheyDoNotKnow(t *testing.T) {
	s, err := scenario.Parse("test.yml", []byte(`
scenario: capped
cluster: {nodes: [{gpus: "sim:custom=2,mem=10Gi"}]}
queues: [{name: free}, {name: q, cap: 1}]
workload:
  jobs: [{at: 0s, name: a, queue: q, rigid: {walltime: 10m}, memory: 4Gi}]
`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"sja", "easy"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m}); err == nil ||
		!strings.Contains(err.Error(), "mechanism easy: planners know no limits of queues, and queue q has some") {
		t.Errorf("got %v", err)
	}
}
