package scenario_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
)

// stormy plays airlock-storm under sja, with some values replaced.
func stormy(t *testing.T, sets ...config.Set) scenario.Result {
	t.Helper()
	s, err := reader().Load("airlock-storm", sets...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"sja"})
	if err != nil {
		t.Fatal(err)
	}
	results, err := scenario.Run(t.Context(), scenario.Options{Scenario: s, Mechanisms: m})
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range results[0].Broken {
		t.Error(broken)
	}
	return results[0]
}

// TestWhatTheKernelLoses: the same storms where nobody does anything but the kernel. It is what the survival of work is held against.
func TestWhatTheKernelLoses(t *testing.T) {
	ours, kernel := stormy(t), stormy(t, config.Set{Path: "memory.survival", Value: "kernel"})
	for _, name := range []string{measure.Suspended, measure.Recovered, measure.Readdressed, measure.Reclaimed} {
		if n := kernel.Metrics.Get(name); n != 0 {
			t.Errorf("the kernel has %s %v times", name, n)
		}
		if n := ours.Metrics.Get(name); n == 0 && name != measure.Reclaimed {
			t.Errorf("nothing was %s: the scenario shows nothing", name)
		}
	}
	if kernel.Metrics.Get(measure.HighValueLost) == 0 || kernel.Metrics.Get(measure.WrongOrderKills) == 0 {
		t.Errorf("the kernel loses %v of high value and kills %v in the wrong order: the storms are none",
			kernel.Metrics.Get(measure.HighValueLost), kernel.Metrics.Get(measure.WrongOrderKills))
	}
	for _, name := range []string{measure.WorkLost, measure.TimeOverLine} {
		if a, b := ours.Metrics.Get(name), kernel.Metrics.Get(name); a > b/3 {
			t.Errorf("%s is %v, and the kernel's %v: it is to be a third at most", name, a, b)
		}
	}
}

// TestAHostThatDiesInAStorm: what stood still goes on when its node is back, nothing is lost, and nothing is committed twice.
func TestAHostThatDiesInAStorm(t *testing.T) {
	for _, keep := range []string{"true", "false"} {
		r := stormy(t, config.Set{Path: "faults", Value: "[{at: 20m40s, kill: node, node: n-1, for: 20s, keep: " + keep + "}, {at: 25m20s, kill: node, node: n-2, for: 45s, keep: " + keep +
			"}, {at: 31m, cut: network, node: n-1, for: 2m}, {at: 55m20s, kill: daemon, node: n-1, for: 10s}]"})
		if n := r.Metrics.Get(measure.Unfinished); n != 0 {
			t.Errorf("%v jobs never ended", n)
		}
		if n := r.Metrics.Get(measure.Suspended); n == 0 {
			t.Error("nothing stood still")
		}
	}
}

func TestProblemsOfMemory(t *testing.T) {
	const head = "scenario: x\ncluster: {nodes: [{name: n, gpus: \"sim:a100-40gb=1\"}]}\nworkload: {jobs: [{at: 0s, name: a, rigid: {walltime: 5m}, memory: 4Gi}]}\nwindow: {until: 1h}\n"
	for text, want := range map[string]string{
		"memory: {park: 4Gi}": "memory: \"host\" is missing", "memory: {host: 4Gi, survival: luck}": "memory.survival",
		"memory: {host: 4Gi, storms: [{at: 1m, shape: rain, size: 1Gi}]}":                  "memory.storms[0].shape",
		"memory: {host: 4Gi, storms: [{at: 1m, shape: leak, size: 1Gi, node: m}]}":         "there is no node \"m\"",
		"memory: {host: 4Gi, storms: [{at: 1m, every: 1s, shape: leak, size: 1Gi, x: 1}]}": "memory.storms[0].x",
	} {
		_, err := reader().Parse("x.yml", []byte(head+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
	s, err := reader().Parse("x.yml", []byte(head+"memory: {host: 4Gi}"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"easy"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = scenario.Run(t.Context(), scenario.Options{Scenario: s, Mechanisms: m}); err == nil || !strings.Contains(err.Error(), "knows nothing of its hosts' memory") {
		t.Errorf("a planner plays it: %v", err)
	}
}
