package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
)

const minute = quantity.Instant(time.Minute)

const whole = `
scenario: tests/whole
doc: Everything that the language has.
cluster:
  nodes:
    - {name: a, count: 2, gpus: "sim:a100-40gb=1,layout=3g.20gb+2g.10gb+2x1g.5gb"}
    - {name: b, gpus: "sim:custom=2,mem=10Gi"}
  reservations:
    - {kind: serving, slices: "a-*/gpu0", start: 1h, for: 2h, every: 24h}
    - {kind: drain, at: 5m, start: 10m, for: 1m, slices: "b/gpu1", truncate: true}
queues:
  - {name: research, weight: 3, cap: 4, maxWindow: 15m}
mechanism: {use: [sja, easy], policy: fair, horizon: 30m, tauMin: 2m, theta: 2%, overheadMax: 5%, grace: 1s, continue: true}
workload:
  jobs:
    - at: 10s
      name: train
      queue: research
      steps: {total: 600, perStep: 1s, every: 60, restore: 20s, checkpoint: 15s}
      memory: {phases: [{upTo: 100, mean: 2Gi, sd: 100Mi}, {mean: 8Gi}]}
      speeds: {1g.5gb: 0.2}
      due: 2h
      true: {time: 12m, memory: 9Gi, saves: 120}
    - {at: 5s, name: block, rigid: {walltime: 5m, slices: 2}, memory: 4Gi, true: {time: 4m}}
    - {at: 0s, name: sweep, count: 3, every: 1m, items: {total: 100, perItem: 1s, parallelism: 4}, memory: {ensemble: {runs: [[1Gi], [1Gi], [3Gi], [3Gi], [2Gi], [2Gi]]}}, theta: 50%}
model:
  network: {delay: 1ms, jitter: 2ms, loss: 0.1%, duplication: 1%}
faults:
  - {at: 1h, kill: node, node: a-2, for: 5m}
  - {every: 6h, kill: daemon, for: 2s}
  - {at: 2h, cut: network, node: b, for: 30s}
  - {at: 0s, skew: 2s, drift: 0.01%, node: a-1}
window: {warmup: 5m, until: 6h, limit: 12h}
seeds: 1-3,7
expect:
  - utilization >= 80%
  - sja.waitMean < easy.waitMean
  - waitP95 <= 10m
  - finished == 5
  - train ends before 30m
  - block starts after sweep-1 ends
  - train pieces >= 2
  - block finishes
  - invariants hold
`

func TestParse(t *testing.T) {
	s, err := Parse("whole.yml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes) != 3 || s.Slices() != 10 || s.Nodes[1].ID != "a-2" || s.Nodes[1].Slices[3].ID[:4] != "a-2/" {
		t.Errorf("nodes %+v", s.Nodes)
	}
	if len(s.Reservations) != 9 || s.Reservations[8].Node != "b" || s.Reservations[8].At != 5*minute ||
		s.Reservations[8].End != 11*minute || !s.Reservations[8].Truncate {
		t.Errorf("reservations %+v", s.Reservations)
	}
	if s.Reservations[0].Kind != protocol.ForServing || s.Reservations[0].Every != 24*time.Hour {
		t.Errorf("serving hours %+v", s.Reservations[0])
	}
	var names []string
	for i := range s.Workload.Jobs {
		j := &s.Workload.Jobs[i]
		names = append(names, j.Name)
		if j.Job.Number != int64(i) {
			t.Errorf("job %s has number %d", j.Name, j.Job.Number)
		}
	}
	if got := strings.Join(names, " "); got != "sweep-1 block train sweep-2 sweep-3" {
		t.Errorf("order %s", got)
	}
	train, block, sweep := &s.Workload.Jobs[2], &s.Workload.Jobs[1], &s.Workload.Jobs[0]
	if train.Job.Kind != job.Steps || train.Job.Declared != 10*time.Minute || train.Job.Process.Saves != 120 ||
		train.Job.Work != 12*time.Minute || train.Job.Theta != 20_000 ||
		train.Job.Deadline != quantity.Instant(2*time.Hour+10*time.Second) || len(train.Job.Memory.Phases) != 1 ||
		train.Job.Memory.Phases[0].Mean != 9*GiB {
		t.Errorf("train %+v", train)
	}
	if block.Job.Kind != job.Rigid || block.Job.Declared != 5*time.Minute || block.Job.Work != 4*time.Minute || block.Job.Slices != 2 {
		t.Errorf("block %+v", block)
	}
	if p := sweep.Job.Memory.Phases; len(p) != 1 || p[0].Mean != 2*GiB || p[0].SD != 876706528 || sweep.Job.Theta != 500_000 {
		t.Errorf("sweep %+v", sweep)
	}
	if len(s.Faults) != 4 || s.Faults[0].Node != "a-2" || s.Faults[1].Every != 6*time.Hour || s.Faults[3].Drift != 100 {
		t.Errorf("faults %+v", s.Faults)
	}
	if s.Window != (Window{5 * minute, 360 * minute, 720 * minute}) || len(s.Seeds) != 4 || len(s.Expect) != 9 {
		t.Errorf("window %+v, seeds %v, %d expectations", s.Window, s.Seeds, len(s.Expect))
	}
}

func TestSetReplaces(t *testing.T) {
	sets := []strict.Set{
		{Path: "mechanism.horizon", Value: "5m"}, {Path: "workload.jobs.1.rigid.walltime", Value: "7m"},
		{Path: "model.network", Value: "{delay: 3s}"}, {Path: "seeds", Value: "9"},
	}
	s, err := Parse("whole.yml", []byte(whole), sets...)
	if err != nil {
		t.Fatal(err)
	}
	if s.Settings.Horizon != 5*time.Minute || s.Workload.Jobs[1].Job.Declared != 7*time.Minute ||
		s.Model.Network != (Network{Delay: 3 * time.Second}) || s.Seeds[0] != 9 {
		t.Errorf("%+v", s)
	}
	s, err = Load("small", strict.Set{Path: "model.timeError.sigma", Value: "0.5"}, strict.Set{Path: "workload.synthetic.1.timeError",
		Value: "{bias: -0.5}"})
	if err != nil || s.Workload.Streams[0].Options.TimeError.Sigma != .5 || s.Workload.Streams[1].Options.TimeError.Bias != -.5 ||
		s.Workload.Streams[1].Options.TimeError.Sigma != 0 {
		t.Errorf("errors of declared times: %v, %+v", err, s.Workload.Streams)
	}
	for set, want := range map[strict.Set]string{
		{Path: "mechanism.horizn", Value: "5m"}:         `mechanism.horizn: unknown key; did you mean "horizon"?`,
		{Path: "mechanism.horizon", Value: "soon"}:      `mechanism.horizon: `,
		{Path: "workload.jobs.9.at", Value: "1s"}:       `"9" has no place there`,
		{Path: "scenario.name", Value: "x"}:             `"name" has no place there`,
		{Path: "seeds", Value: "{"}:                     `is not a YAML value`,
		{Path: "seeds", Value: "&a 1"}:                  `anchors`,
		{Path: "model.network.loss", Value: "200%"}:     `want a share from 0 to 0.9`,
		{Path: "mechanism.use", Value: "[sja, &x sja]"}: `anchors`,
	} {
		if _, err := Parse("whole.yml", []byte(whole), set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q, got %v", set, want, err)
		}
	}
}

// TestEveryProblem: a wrong file is refused whole, and each problem has its line, its column and what would be right.
func TestEveryProblem(t *testing.T) {
	const bad = `scenario: Tests
cluster:
  nodes:
    - {name: a, gpus: "sim:a100-41gb"}
    - {name: b, gpus: "sim:custom,mem=1Gi"}
    - {name: b, gpus: "sim:custom,mem=1Gi"}
  reservations:
    - {kind: serving, slices: "c/*", for: 2h, every: 1h}
    - {at: 2h, start: 1h}
mechanism: {horizon: 1m, minWindow: 2m, polici: fifo}
workload:
  jobs:
    - {name: x, rigid: {}, memory: 1Gi}
    - {at: 0s, name: y, rigid: {}, memory: 1Gi}
    - {at: 0s, name: z, rigid: {walltime: 1m, onOverrun: extend}, memory: 1Gi}
    - {at: 0s, name: w, rigid: {walltime: 1m}, memory: 1Gi}
    - {at: 0s, name: w, rigid: {walltime: 1m}, memory: 1Gi}
    - {at: 0s, name: v, rigid: {walltime: 1m}, memory: 1Gi, true: {memory: {envelope: [{amount: 1Gi}]}}}
    - {at: 0s, name: u, rigid: {walltime: 1m}, queue: nobody, memory: 1Gi}
    - {at: 0s, name: s, steps: {total: 600, perStep: 1s, every: 60}, memory: 1Gi, true: {saves: 90}}
    - {at: 0s, name: r, rigid: {walltime: 1m}, memory: 1Gi, true: {saves: 90}}
    - {at: 0s, name: q, steps: {perStep: 1s, every: 60}, memory: 1Gi}
queues: [{name: somebody}]
faults:
  - {kill: node}
  - {at: 1h, node: b}
  - {at: 1h, kill: nodes, node: bb}
  - {every: 1h, kill: node, node: b}
  - {at: 1h, cut: network}
  - {at: 1h, kill: daemon, drift: 1%}
window: {warmup: 1h, until: 30m, limit: 10m}
seeds: 9-1
expect:
  - utilisation >= 0.8
  - w begins
  - w starts near 5m
  - ww ends before 5m
  - 5 < waitMean
  - w pieces == few
  - waitMean <= soonish
  - w ends before 5m y ends now
  - nothing.waits
`
	_, err := Parse("bad.yml", []byte(bad))
	var problems *strict.Problems
	if errkind.Of(err) != errkind.Invalid || !errors.As(err, &problems) {
		t.Fatalf("got %v", err)
	}
	got := err.Error()
	for _, want := range []string{
		`bad.yml:1:11: scenario: is "Tests"; want words of a-z`,
		`bad.yml:4:23: cluster.nodes[0].gpus: simulated slices:`,
		`bad.yml:6:7: cluster.nodes[2]: there is a node b already`,
		`bad.yml:8:54: cluster.reservations[0].every: repeats a reservation before it is over`,
		`bad.yml:8:31: cluster.reservations[0].slices: no slice matches "c/*"; the first is called b/gpu0`,
		`bad.yml:9:23: cluster.reservations[1].start: lies before 2h0m0s`,
		`bad.yml:10:37: mechanism.minWindow: is longer than the horizon`,
		`mechanism.polici: unknown key; did you mean "policy"?`,
		`workload.jobs[0]: "at" is missing; write for example at: 0s`,
		`workload.jobs[1]: a rigid job without a walltime needs its true time`,
		`workload.jobs[2].rigid: a simulated rigid job ends at its walltime`,
		`workload.jobs[4]: there is a job w already`,
		`workload.jobs[5].true.memory: the truth is a size such as 12Gi`,
		`workload.jobs[7].true.saves: is after how many steps a checkpoint is left; want a multiple of every (60)`,
		`workload.jobs[8].true.saves: is after`,
		`workload.jobs[9].steps: "total" is missing`,
		`workload.jobs[6].queue: there is no queue "nobody"; want one of default, somebody`,
		`faults[0]: does not say when`,
		`faults[1]: does not say what happens`,
		`faults[3].node: random faults strike every node`,
		`faults[4]: does not say which node`,
		`faults[2].kill: is "nodes"; did you mean "node"?`,
		`faults[2].node: there is no node "bb"`,
		`faults[5].drift: only a clock drifts`,
		`window.until: is 30m0s, within the warm-up of 1h0m0s`,
		`window.limit: is 10m0s, before jobs stop arriving`,
		`seeds: "9-1" is no seed or range of seeds`,
		`"utilisation" is no metric; did you mean "utilization"?`,
		`job w: want w starts|ends before|after|at MOMENT`,
		`"near" is no relation; want before, after or at`,
		`"ww" is no job`,
		`"5 < waitMean" begins with a number`,
		`"few" is no number of pieces`,
		`"soonish" is no metric`,
		`"nothing.waits" is no expectation`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not said: %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestSeeds(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "1-20": 20, "1,3,9": 3, "3,1-3": 3, "0-9999": 10_000} {
		if got, err := Seeds(text); err != nil || len(got) != want {
			t.Errorf("Seeds(%q) = %d seeds, %v; want %d", text, len(got), err, want)
		}
	}
	for _, text := range []string{"", "x", "3-1", "1-", "-1", "0-10000", "0-9999,5", "1-18446744073709551615"} {
		if got, err := Seeds(text); err == nil {
			t.Errorf("Seeds(%q) = %v", text, got)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, id string
		want        bool
	}{
		{"*", "a/gpu0/1g.5gb@2", true}, {"a", "a/gpu0/1g.5gb@2", true}, {"a/gpu0", "a/gpu0/1g.5gb@2", true},
		{"a/gpu1", "a/gpu0/1g.5gb@2", false},
		{"a-*/gpu0/1g*", "a-1/gpu0/1g.5gb@2", true}, {"a-*/gpu0/1g*", "a-1/gpu0/2g.10gb@0", false}, {"[", "a/gpu0", false},
		{"a/gpu0/x", "a/gpu0", false},
	} {
		if got := matches(c.pattern, c.id); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.id, got)
		}
	}
}

// FuzzParse: whatever is read is refused with an error of the right kind, or is a scenario whose jobs are in order and
// whose reservations are of its slices.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	for _, name := range Shipped() {
		text, _, err := Open(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz.yml", data)
		if err != nil {
			if errkind.Of(err) != errkind.Invalid {
				t.Fatalf("kind %v: %v", errkind.Of(err), err)
			}
			return
		}
		for i := range s.Workload.Jobs {
			j := &s.Workload.Jobs[i]
			if j.Job.Number != int64(i) || i > 0 && j.Job.Submit < s.Workload.Jobs[i-1].Job.Submit || j.Job.Work <= 0 ||
				len(j.Job.Memory.Phases) == 0 {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
		for _, r := range s.Reservations {
			if r.Slice == "" || r.End <= r.Start || r.Start < r.At {
				t.Fatalf("reservation %+v", r)
			}
		}
		if len(s.Nodes) == 0 && s.Pools == nil && s.Swarm == nil || len(s.Seeds) == 0 || len(s.Settings.Use) == 0 {
			t.Fatalf("a scenario without nodes, seeds or mechanisms: %+v", s)
		}
	})
}
