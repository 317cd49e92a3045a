package forecast

import (
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// TestABrokenPromiseIsSeen: in random orders the order statistic keeps theta, and a rule that says so without doing so is
// found out.
func TestABrokenPromiseIsSeen(t *testing.T) {
	rng := prng.New(9)
	var jobs []job
	for range 60 {
		jobs = append(jobs, job{"a", 1000 + int64(1000*rng.Exp()), trace.Unknown})
	}
	liar := rule{"half", 100_000, func([]job, job) (int64, bool) { return 1200, true }}
	lines := play("made up", jobs, []rule{learned(50_000), learned(100_000), liar, wholeCard()}, warm, false)
	for i, want := range []bool{true, true, false, true} {
		if lines[i].OK != want || lines[i].Predictions != orders*(60-warm) {
			t.Errorf("%+v", lines[i])
		}
	}
	if strict, loose := lines[0], lines[1]; strict.UnderRate() > loose.UnderRate() || strict.Held() < loose.Held() {
		t.Errorf("a smaller theta misses more: %+v, %+v", strict, loose)
	}
	report := Report{Jobs: lines}
	if report.OK() {
		t.Error("the report says that all is kept")
	}
}

func TestPublishedJobs(t *testing.T) {
	dir := filepath.Dir(tracetest.Data(t, "miso"))
	tracetest.Data(t, "carma")
	lines, err := Jobs(dir)
	if err != nil {
		t.Fatal(err)
	}
	jobs, held := map[string]int{}, map[string]float64{}
	for _, l := range lines {
		jobs[l.Data] = l.Jobs
		if !l.OK || l.Predictions == 0 {
			t.Errorf("%+v: %.2f%% missed", l, l.UnderRate())
		}
		if !l.Listed && (l.Theta == 0 || l.Theta == 5) {
			held[l.Data+l.Rule] = l.Held()
		}
	}
	if jobs["miso"] != 24 || jobs["carma"] != 41 || jobs["carma, with estimates"] != 34 {
		t.Errorf("jobs: %v", jobs)
	}
	if held["carmaorder statistic"] >= held["carmamost so far x 1.2"] || held["misoorder statistic"] >= held["misomost so far x 1.2"] {
		t.Errorf("held: %v", held)
	}
}
