package outcome_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

// judged parses one expectation over a scenario of jobs a and b.
func judged(t *testing.T, line string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("judge.yml", []byte(`
scenario: judge
cluster: {nodes: [{gpus: "sim:custom=1,mem=1Gi"}]}
workload: {jobs: [{at: 0s, name: a, rigid: {walltime: 1m}, memory: 1Mi}, {at: 0s, name: b, rigid: {walltime: 1m}, memory: 1Mi}]}
expect: ["`+line+`"]
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func result(mechanism string, seed uint64, use, wait float64, fates map[string]outcome.Fate) outcome.Result {
	return outcome.Result{
		Run: measure.Run{Mechanism: mechanism, Seed: seed, Metrics: measure.Metrics{{Name: measure.Utilization, Value: use},
			{Name: measure.WaitMean, Value: wait}}},
		Finished: 2, Fates: fates,
	}
}

func TestJudge(t *testing.T) {
	at := func(m int) quantity.Instant { return quantity.Instant(m) * quantity.Instant(time.Minute) }
	fates := map[string]outcome.Fate{
		"a": {Began: 0, Ended: at(5), Pieces: 2, State: job.Finished},
		"b": {Began: at(5), Ended: quantity.Never, Pieces: 1, State: job.Running},
	}
	results := []outcome.Result{
		result("sja", 1, .8, 60, fates), result("sja", 2, .9, 120, fates), result("easy", 1, .5, 100, fates),
		result("easy", 2, .5, 101, fates),
	}
	partial := result("sja", 3, 0, 9999, nil)
	partial.Partial, partial.Broken = true, []string{"never looked at"}
	results = append(results, partial)
	for line, want := range map[string]string{
		"utilization >= 80%": "ok", "utilization > 0.8": "sja, seed 1: it is 0.8", "waitMean <= 2m": "ok", "waitMean < 1h30m": "ok",
		"sja.waitMean < easy.waitMean": "ok", "easy.utilization >= sja.utilization": "0.5 against 0.85", "fcfs.waitMean > 0": "open",
		"sja.waitMean < 90% of easy.waitMean": "ok", "sja.waitMean < 89% of easy.waitMean": "90 against 89.445",
		"finished >= 2 of finished": "2 against 4", "waitMean <= 1 of waitMean": "ok", "sja.waitMean <= 10 of fcfs.waitMean": "open",
		"waitMean < easy.waitMean": "ok", "finished == 2": "ok", "finished != 2": "it is 2",
		"a ends before 6m": "ok", "a ends before 5m": "a ends at 5m0s, against at 5m0s", "a ends at 5m": "ok",
		"b starts after a starts": "ok", "b starts at a ends": "ok",
		"b ends after 1m": "b ends never", "a pieces == 2": "ok", "a pieces > 2": "2 pieces", "a finishes": "ok",
		"a fails": "it is COMPLETED", "b finishes": "it is RUNNING",
		"invariants hold": "ok",
	} {
		f := outcome.Judge(judged(t, line).Expect, "sja", results)[0]
		got := "ok"
		switch {
		case f.Open:
			got = "open"
		case !f.OK:
			got = f.Seen
		}
		if got == "ok" != (want == "ok") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	results[1].Broken = []string{"two at once"}
	if f := outcome.Judge(judged(t, "invariants hold").Expect, "sja", results)[0]; f.OK || !strings.Contains(f.Seen, "two at once") {
		t.Errorf("%+v", f)
	}
	if f := outcome.Judge(judged(t, "invariants hold").Expect, "sja", nil)[0]; !f.Open {
		t.Errorf("nothing ran, and it is judged: %+v", f)
	}
}
