package protocol

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

func TestOneGateHasNoName(t *testing.T) {
	for _, g := range []Gates{nil, {""}} {
		if a := g.Of("j"); a != (Address{Role: Gate}) || g.First() != a || len(g.All()) != 1 || g.All()[0] != a {
			t.Errorf("%v: job j is at %v, all are %v", g, a, g.All())
		}
	}
}

// TestJobsAreSpreadOverGates: each by its name alone, and about alike.
func TestJobsAreSpreadOverGates(t *testing.T) {
	g, same, jobs := Gates{"a", "b", "c"}, Gates{"a", "b", "c"}, map[Address]int{}
	for i := range 3000 {
		name := job.ID(fmt.Sprint("j", i))
		if jobs[g.Of(name)]++; g.Of(name) != same.Of(name) {
			t.Fatalf("%s is at two gates", name)
		}
	}
	if len(jobs) != 3 {
		t.Fatalf("jobs are at %v", jobs)
	}
	for at, n := range jobs {
		if n < 850 || n > 1150 {
			t.Errorf("%d of 3000 jobs are at %v", n, at)
		}
	}
	if all := g.All(); len(all) != 3 || all[0] != g.First() || g.First().ID != "a" {
		t.Errorf("all are %v", all)
	}
}
