package scenario_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// stormy plays airlock-storm under those that are named, airlock if none is, with some values replaced.
func stormy(t *testing.T, names []string, sets ...strict.Set) []outcome.Result {
	t.Helper()
	s, err := reader().Load("airlock-storm", sets...)
	if err != nil {
		t.Fatal(err)
	}
	if names == nil {
		names = s.Settings.Use
	}
	m, err := table().Find(s, names)
	if err != nil {
		t.Fatal(err)
	}
	results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for _, broken := range r.Broken {
			t.Errorf("%s: %s", r.Mechanism, broken)
		}
	}
	return results
}

// hours are enough of the storms for these tests.
var hours = strict.Set{Path: "window.until", Value: "2h"}

// TestWhatOthersLose: the same storms where the nodes do nothing, and others do. It is what the survival of work is held against.
func TestWhatOthersLose(t *testing.T) {
	results := stormy(t, []string{play.All}, hours)
	ours := results[0].Metrics
	for _, name := range []string{measure.Suspended, measure.Recovered, measure.Readdressed} {
		if ours.Get(name) == 0 {
			t.Errorf("nothing was %s: the scenario shows nothing", name)
		}
	}
	if a, b := ours.Get(measure.HighValueLost), ours.Get(measure.WrongOrderKills); a != 0 || b != 0 {
		t.Errorf("it loses %v of high value, and kills %v in the wrong order", a, b)
	}
	if len(results) != 6 || results[0].Mechanism != "airlock" || results[1].Mechanism != "kernel" {
		t.Fatalf("all are %d, the first two %s and %s", len(results), results[0].Mechanism, results[1].Mechanism)
	}
	for _, r := range results[1:] {
		if n := r.Metrics.Get(measure.Suspended) + r.Metrics.Get(measure.Reclaimed); n != 0 {
			t.Errorf("under %s %v were suspended or reclaimed by their node", r.Mechanism, n)
		}
		if r.Metrics.Get(measure.WorkLost) <= ours.Get(measure.WorkLost) {
			t.Errorf("%s loses %v s of work, and airlock %v", r.Mechanism, r.Metrics.Get(measure.WorkLost), ours.Get(measure.WorkLost))
		}
	}
	kernel := results[1].Metrics
	if kernel.Get(measure.HighValueLost) == 0 || kernel.Get(measure.WrongOrderKills) == 0 {
		t.Error("the kernel loses nothing of high value, or nothing in the wrong order: the storms are none")
	}
	for _, name := range []string{measure.WorkLost, measure.TimeOverLine} {
		if a, b := ours.Get(name), kernel.Get(name); a > b/3 {
			t.Errorf("%s is %v, and the kernel's %v: it is to be a third at most", name, a, b)
		}
	}
}

// TestNodesTellWhatTheyDid: what is counted by those who carried it out.
func TestNodesTellWhatTheyDid(t *testing.T) {
	for _, sets := range [][]strict.Set{{hours}, {hours, {Path: "memory.park", Value: "0Gi"}, {Path: "memory.hot", Value: "false"}}} {
		r := stormy(t, nil, sets...)[0]
		told, counted := map[string]int64{}, map[string]int64{}
		over := time.Duration(0)
		for _, s := range r.Strains {
			told[measure.Suspended] += s.Suspended
			told[measure.Recovered] += s.Recovered
			told[measure.Readdressed] += s.Readdressed
			told[measure.Reclaimed] += s.Reclaimed
			if over += s.OverLine; s.Standing != 0 || s.Decisions == 0 {
				t.Errorf("in the end %d are suspended, after %d decisions", s.Standing, s.Decisions)
			}
		}
		for name := range told {
			counted[name] = int64(r.Metrics.Get(name))
		}
		if !maps.Equal(told, counted) {
			t.Errorf("the nodes tell %v, and it was %v", told, counted)
		}
		// A word comes with every beat of a tenth of a second while memory is short.
		if was := r.Metrics.Get(measure.TimeOverLine); over.Seconds() < was-.5 || over.Seconds() > was+.5 {
			t.Errorf("the nodes tell of %v over the line, and it was %v s", over, was)
		}
	}
}

// TestStormsAreDrawn: with a spread each seed has storms of its own, and the same seed the same.
func TestStormsAreDrawn(t *testing.T) {
	short := []strict.Set{{Path: "memory.spread", Value: "3m"}, {Path: "window.until", Value: "1h"}}
	figures := func(r outcome.Result) [3]float64 {
		return [3]float64{r.Metrics.Get(measure.TimeOverLine), r.Metrics.Get(measure.Stalled), r.Metrics.Get(measure.CompletionMean)}
	}
	first := figures(stormy(t, nil, short...)[0])
	both := stormy(t, nil, append(short, strict.Set{Path: "seeds", Value: "1-2"})...)
	if len(both) != 2 || figures(both[0]) != first || figures(both[1]) == first {
		t.Errorf("two seeds have the same storms, or the first has others when it is played again: %v, then %v and %v", first,
			figures(both[0]), figures(both[1]))
	}
}

// TestAHostThatDiesInAStorm: what was suspended goes on when its node is back, nothing is lost, and nothing is committed twice.
func TestAHostThatDiesInAStorm(t *testing.T) {
	for _, keep := range []string{"true", "false"} {
		r := stormy(t, nil, strict.Set{Path: "faults", Value: "[{at: 20m40s, kill: node, node: n-1, for: 20s, keep: " + keep +
			"}, {at: 25m20s, kill: node, node: n-2, for: 45s, keep: " + keep +
			"}, {at: 31m, cut: network, node: n-1, for: 2m}, {at: 55m20s, kill: daemon, node: n-1, for: 10s}]"})[0]
		if n := r.Metrics.Get(measure.Unfinished); n != 0 {
			t.Errorf("%v jobs never ended", n)
		}
		if n := r.Metrics.Get(measure.Suspended); n == 0 {
			t.Error("nothing was suspended")
		}
	}
}

func TestProblemsOfMemory(t *testing.T) {
	const head = "scenario: x\ncluster: {nodes: [{name: n, gpus: \"sim:a100-40gb=1\"}]}\nworkload: {jobs: [{at: 0s, name: a, rigid: " +
		"{walltime: 5m}, memory: 4Gi}]}\nwindow: {until: 1h}\n"
	for text, want := range map[string]string{
		"memory: {park: 4Gi}": "memory: \"host\" is missing", "memory: {host: 4Gi, survival: luck}": "memory.survival",
		"memory: {host: 4Gi, excess: 0.7}": "memory.excess", "memory: {host: 4Gi, correlation: learned}": "give excess too",
		"memory: {host: 4Gi, excess: 0.01, correlation: luck}":                             "memory.correlation",
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
	if _, err = play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m}); err == nil ||
		!strings.Contains(err.Error(), "knows nothing of its hosts' memory") {
		t.Errorf("a planner plays it: %v", err)
	}
}
