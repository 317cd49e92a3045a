package play

import (
	"math"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
)

// TestShares: jobs with agents of a smaller share are among those of a larger one, as many as it says; rigid jobs have none.
func TestShares(t *testing.T) {
	of := func(share int64, j workload.Job) string {
		o := offered{agents: []scenario.Agents{{Name: "a", Share: share}}, seed: 3}
		o.assign(&j)
		if j.External != (j.Group == "a") {
			t.Fatalf("%+v", j)
		}
		return j.Group
	}
	const n = 10_000
	few, many := 0, 0
	for i := range int64(n) {
		j := workload.Job{Number: i, Kind: job.Steps}
		small, large := of(200_000, j), of(500_000, j)
		if small == "a" {
			few++
		}
		if large == "a" {
			many++
		} else if small == "a" || small != scenario.Own {
			t.Fatalf("job %d has an agent of the smaller share %q, and none of the larger", i, small)
		}
	}
	if few < n/5-200 || few > n/5+200 || many < n/2-250 || many > n/2+250 {
		t.Errorf("%d and %d of %d, want a fifth and a half", few, many, n)
	}
	if g := of(scenario.AllShares, workload.Job{Kind: job.Rigid}); g != "" {
		t.Errorf("a rigid job is of group %q", g)
	}
	if g := of(0, workload.Job{Kind: job.Items, Group: "a"}); g != "a" {
		t.Errorf("a job that says who bids for it is of group %q", g)
	}
}

// runs plays small for a few hours under jasda, and gives its figures.
func runs(t *testing.T, sets ...strict.Set) measure.Metrics {
	t.Helper()
	s, err := scenario.Load("small", append([]strict.Set{{Path: "window", Value: "{warmup: 30m, until: 4h, limit: 7d}"}}, sets...)...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Table{Policies: policies.Policies(), Policy: policies.ByName}.Find(s, []string{JASDA})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Scenario: s, Mechanisms: m, Seeds: []uint64{1}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r[0].Broken) > 0 {
		t.Error(r[0].Broken)
	}
	return r[0].Metrics
}

// TestHonestAgentsDoTheSameWork: with all divisible jobs external and honest as much work is done as with none, and the
// negotiation that this takes is counted.
func TestHonestAgentsDoTheSameWork(t *testing.T) {
	inside := runs(t)
	outside := runs(t, strict.Set{Path: "workload.agents", Value: "[{strategy: honest, share: 100%, think: 5ms}]"})
	a, b := inside.Get(measure.UsefulWork), outside.Get(measure.UsefulWork)
	if math.Abs(a-b) > .03*a || outside.Get(measure.Unfinished) > 0 {
		t.Errorf("%v s of work inside, %v outside; unfinished %v", a, b, outside.Get(measure.Unfinished))
	}
	if n := inside.Get(measure.AgentMessagesPerAward); n != 0 || inside.Get(measure.Awards) == 0 {
		t.Errorf("without agents %v messages from and to them for each of %v awards", n, inside.Get(measure.Awards))
	}
	if n := outside.Get(measure.AgentMessagesPerAward); n < 2 || n > 60 || outside.Get(measure.MessagesPerAward) <= n {
		t.Errorf("with agents %v messages from and to them for each award, of %v", n, outside.Get(measure.MessagesPerAward))
	}
	if g := outside.Get(measure.InGroup(measure.Jobs, "honest")); !(g > 0) {
		t.Errorf("%v jobs have agents", g)
	}
}

// TestUnderEveryStrategy: whatever agents do, on a network that loses some, with a daemon that crashes now and then: nothing
// that must hold breaks, and rigid jobs are done.
func TestUnderEveryStrategy(t *testing.T) {
	for _, name := range []string{"inflate", "understate", "tiny-memory", "hoard", "snipe", "slow", "silent", "collude", "hostile"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := runs(t, strict.Set{Path: "window", Value: "{until: 40m, limit: 6h}"},
				strict.Set{Path: "model.network", Value: "{delay: 1ms, jitter: 1ms, loss: 0.1%}"},
				strict.Set{Path: "faults", Value: "[{every: 15m, kill: daemon, for: 2s}]"},
				strict.Set{Path: "workload.agents", Value: "[{strategy: honest, share: 50%}, {strategy: " + name + ", share: 40%}]"})
			if m.Get(measure.Awards) == 0 || m.Get(measure.Unfinished) > m.Get(measure.InGroup(measure.Jobs, name)) {
				t.Errorf("%v awards, %v jobs unfinished of which %v have such agents", m.Get(measure.Awards), m.Get(measure.Unfinished),
					m.Get(measure.InGroup(measure.Jobs, name)))
			}
		})
	}
}
