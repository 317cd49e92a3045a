package scenario_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// zoned is a busy cluster of four nodes in which gate, zones and nodes lose and double what they say, and crash.
const zoned = `
scenario: zoned
cluster:
  zones: 3
  nodes:
    - {name: n, count: 4, gpus: "sim:a100-40gb=1,layout=3g.20gb+2g.10gb+2x1g.5gb"}
queues: [{name: capped, cap: 4}]
mechanism: {use: [sja, jasda, laminar], tauMin: 20s}
workload:
  jobs:
    - {at: 10s, name: a, count: 20, every: 40s, queue: capped, items: {total: 200, perItem: 3s, parallelism: 3}, memory: 3Gi}
    - {at: 20s, name: b, count: 20, every: 50s, steps: {total: 300, perStep: 2s, every: 20, restore: 3s, checkpoint: 2s}, memory: 4Gi}
    - {at: 30s, name: c, count: 10, every: 90s, rigid: {walltime: 8m}, memory: 8Gi, true: {time: 6m}}
  agents: [{strategy: honest, share: 40%, think: 5ms}]
model:
  network: {delay: 2ms, jitter: 5ms, loss: 2%, duplication: 2%}
faults:
  - {at: 10m, kill: zone, zone: zone-2, for: 20s}
  - {every: 20m, kill: zone, for: 5s}
  - {every: 30m, kill: daemon, for: 5s}
  - {every: 1h, kill: node, for: 30s, keep: true}
window: {until: 2h, limit: 2d}
seeds: 1-2
expect: [invariants hold, finished == 50]
`

// TestSeveralZonesDrain: whatever is lost, doubled or crashes, every job ends, under each mechanism.
func TestSeveralZonesDrain(t *testing.T) {
	s, err := scenario.Parse("zoned.yml", []byte(zoned))
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, s.Settings.Use)
	if err != nil {
		t.Fatal(err)
	}
	results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if r := &results[i]; r.Finished != 50 || r.Live != 0 || len(r.Broken) > 0 {
			t.Errorf("%s, seed %d: %d jobs finished, %d are left; broken: %v", r.Mechanism, r.Seed, r.Finished, r.Live, r.Broken)
		}
	}
}

// TestOneZoneIsWhatItWas: a scenario that asks for one gives the bytes of one that asks for none; two give others.
func TestOneZoneIsWhatItWas(t *testing.T) {
	run := func(sets ...strict.Set) string {
		s, err := scenario.Load("small", append(sets, strict.Set{Path: "window", Value: "{until: 2h, limit: 1d}"},
			strict.Set{Path: "seeds", Value: "1"})...)
		if err != nil {
			t.Fatal(err)
		}
		m, err := table().Find(s, []string{play.SJA, "jasda"})
		if err != nil {
			t.Fatal(err)
		}
		results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
		if err != nil {
			t.Fatal(err)
		}
		var runs []measure.Run
		for i := range results {
			runs = append(runs, results[i].Run)
		}
		var b strings.Builder
		if err := measure.WriteJSON(&b, runs); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	nodes := strict.Set{Path: "cluster.nodes.0.count", Value: "2"}
	plain := run(nodes)
	if run(nodes, strict.Set{Path: "cluster.zones", Value: "1"}) != plain {
		t.Error("with zones: 1 the bytes are others")
	}
	if run(nodes, strict.Set{Path: "cluster.zones", Value: "2"}) == plain {
		t.Error("with zones: 2 the bytes are the same: the key is not read")
	}
}

// TestWrongZones: what is wrong is said with its place.
func TestWrongZones(t *testing.T) {
	for _, c := range []struct{ path, value, want string }{
		{"cluster.zones", "9", "are more than the 4 nodes"},
		{"cluster.zones", "0", "want"},
		{"faults", "[{at: 1s, kill: zone, for: 1s}]", "does not say which zone"},
		{"faults", "[{every: 1h, kill: zone, zone: zone-1, for: 1s}]", "strike every zone"},
		{"faults", "[{at: 1s, kill: zone, zone: zone-9, for: 1s}]", `there is no zone "zone-9"`},
		{"faults", "[{at: 1s, kill: zone, zone: zone-1, node: n-1, for: 1s}]", "leave the node out"},
		{"faults", "[{at: 1s, kill: node, zone: zone-1, node: n-1, for: 1s}]", "only kill: zone strikes a zone"},
	} {
		if _, err := scenario.Parse("zoned.yml", []byte(zoned), strict.Set{Path: c.path, Value: c.value}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %q", c.path, c.value, err, c.want)
		}
	}
}
