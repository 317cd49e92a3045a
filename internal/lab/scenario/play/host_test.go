package play

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario"
)

// besideAHost is a small world with a host under a planner.
const besideAHost = `
scenario: test
cluster: {nodes: [{name: n, gpus: "sim:custom=3,mem=10Gi"}]}
host:
  synthetic: {load: 0.5, arrivals: {poisson: 4m}, durations: {lognormal: {median: 10m, sigma: 1}}, cap: 1h}
mechanism: {use: [sja, checkpoint], horizon: 30m, continue: true}
workload:
  jobs:
    - {at: 0s, name: train, count: 9, steps: {total: 2000, perStep: 10s, every: 1, restore: 5s, checkpoint: 3s}, startup: 1s, memory: 4Gi}
window: {until: 5h, limit: 7h}
`

// counted sums up what an observer of a run hears.
type counted struct {
	measure.Observers
	useful int64
}

func (c *counted) Ended(_ quantity.Instant, p *measure.Piece) { c.useful += int64(p.Useful) }

// TestAHostsLogIsPlayed: what a host did, given as a log, is played as if its planner had placed it; an observer of the caller's hears all
// of it and changes nothing; a log of another cluster is refused.
func TestAHostsLogIsPlayed(t *testing.T) {
	s, err := scenario.Parse("test", []byte(besideAHost))
	if err != nil {
		t.Fatal(err)
	}
	table := Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}
	m, err := table.Find(s, s.Settings.Use)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Run(t.Context(), Options{Scenario: s, Mechanisms: m})
	if err != nil {
		t.Fatal(err)
	}
	l := layOut(s)
	log, err := hostLog(t.Context(), s, &l, s.Seeds[0], &Traces{}, m[0].Host)
	if err != nil || len(log[0]) == 0 {
		t.Fatal(err, log)
	}
	logged := *s
	host := *s.Host
	host.Streams, host.Log = nil, log
	logged.Host = &host
	var mu sync.Mutex
	heard := map[string]*counted{}
	got, err := Run(t.Context(), Options{Scenario: &logged, Mechanisms: m, Observe: func(name string, _ uint64) measure.Observer {
		mu.Lock()
		defer mu.Unlock()
		heard[name] = &counted{}
		return heard[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if fmt.Sprint(got[i].Metrics) != fmt.Sprint(want[i].Metrics) {
			t.Errorf("%s: %+v\nwant %+v", m[i].Name, got[i].Metrics, want[i].Metrics)
		}
		if heard[m[i].Name].useful == 0 {
			t.Errorf("%s: the observer heard of nothing useful", m[i].Name)
		}
	}
	host.Log = make(hostwork.Log, 2)
	if _, err = Run(t.Context(), Options{Scenario: &logged, Mechanisms: m}); err == nil || !strings.Contains(err.Error(), "of 2 slices") {
		t.Error(err)
	}
}
