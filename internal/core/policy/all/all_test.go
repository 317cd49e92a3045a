package all_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
)

func TestConformance(t *testing.T) {
	for _, p := range all.Policies() {
		t.Run(p.Name(), func(t *testing.T) { conforms(t, p) })
	}
}

func TestByName(t *testing.T) {
	for _, name := range all.Names() {
		if p, err := all.ByName(name); err != nil || p.Name() != name {
			t.Errorf("ByName(%q) = %v, %v", name, p, err)
		}
	}
	for alias, name := range map[string]string{"fairness": "fair", "sla": "deadline", "efficiency": "throughput"} {
		if p, err := all.ByName(alias); err != nil || p.Name() != name {
			t.Errorf("ByName(%q) = %v, %v; want %s", alias, p, err, name)
		}
	}
	if _, err := all.ByName("fairnes"); errkind.Of(err) != errkind.Invalid ||
		!strings.Contains(err.Error(), strings.Join(all.Names(), ", ")) {
		t.Errorf("an unknown name must be answered with the known ones, got %v", err)
	}
}

func TestWhoIsAskedFirst(t *testing.T) {
	old := policy.Candidate{Job: "old", Submitted: 1, Attained: 50, QueueAttained: 100, Weight: 1, Laxity: time.Hour, Used: 10}
	starved := policy.Candidate{Job: "starved", Submitted: 9, QueueAttained: 30, Attained: 30, Weight: 1, Laxity: time.Hour, Used: 20}
	heavy := policy.Candidate{Job: "heavy", Submitted: 5, QueueAttained: 60, Attained: 60, Weight: 4, Laxity: time.Hour, Used: 30}
	urgent := policy.Candidate{Job: "urgent", Submitted: 7, QueueAttained: 500, Attained: 500, Weight: 1, Laxity: time.Second, Used: 5}
	brief := policy.Candidate{Job: "brief", Submitted: 8, Attained: 400, QueueAttained: 400, Weight: 1, Laxity: time.Hour, Index: 7,
		Used: 5}
	want := map[string]*policy.Candidate{"fair": &heavy, "throughput": &brief, "deadline": &urgent, "fifo": &old, "shortest": &brief}
	for _, p := range all.Policies() {
		best := &old
		for _, c := range []*policy.Candidate{&starved, &heavy, &urgent, &brief} {
			if p.Compare(c, best) < 0 {
				best = c
			}
		}
		if best != want[p.Name()] {
			t.Errorf("%s asks %s first, want %s", p.Name(), best.Job, want[p.Name()].Job)
		}
	}
}
