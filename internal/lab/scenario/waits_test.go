package scenario_test

import (
	"testing"

	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// TestAJobStartsWhenItWasToldTo: over the jobs of the scenarios that are drawn and of those that are written out, under both
// mechanisms, 75 to 85% of the jobs that were told to wait begin in the range that they were told. With -v it prints each.
func TestAJobStartsWhenItWasToldTo(t *testing.T) {
	for _, mechanism := range []string{play.SJA, play.JASDA} {
		var told, sooner, later int64
		for _, name := range scenario.Shipped() {
			s, err := reader().Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if s.Workload.NeedsData() || s.Host != nil || s.Pools != nil || s.Swarm != nil { // who fills gaps waits for a host
				continue
			}
			s.Seeds = s.Seeds[:1]
			m, err := table().Find(s, []string{mechanism})
			if err != nil {
				t.Fatal(err)
			}
			results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m, Data: &play.Traces{}})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				told, sooner, later = told+r.Told, sooner+r.Sooner, later+r.Later
				if r.Told > 0 {
					t.Logf("%-20s %-6s %5d waits, %2d%% in their range, %2d%% sooner, %2d%% later", name, mechanism, r.Told,
						100*(r.Told-r.Sooner-r.Later)/r.Told, 100*r.Sooner/r.Told, 100*r.Later/r.Told)
				}
			}
		}
		share := 1 - float64(sooner+later)/float64(told)
		t.Logf("%s: of %d waits %.1f%% in their range", mechanism, told, 100*share)
		if told < 1000 || share < .75 || share > .85 {
			t.Errorf("%s: of %d waits %.1f%% were in the range of 80%%", mechanism, told, 100*share)
		}
	}
}
