package scenario_test

import (
	"testing"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/face/scenario"
)

func table() scenario.Table { return scenario.Table{Policies: policies.Policies()} }

// TestShippedScenariosAreAsExpected runs every scenario that needs no data, as its file says.
func TestShippedScenariosAreAsExpected(t *testing.T) {
	for _, name := range scenario.Shipped() {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("the file of %s calls itself %s", name, s.Name)
			}
			if s.Workload.NeedsData() {
				t.Skip("it is composed of published traces")
			}
			m, err := table().Find(s, s.Settings.Use)
			if err != nil {
				t.Fatal(err)
			}
			results, err := scenario.Run(t.Context(), scenario.Options{Scenario: s, Mechanisms: m})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Expect) == 0 {
				t.Error("it expects nothing")
			}
			for _, f := range s.Judge(m[0].Name, results) {
				if !f.OK || f.Open {
					t.Errorf("%s: %s", f.Text, f.Seen)
				}
			}
		})
	}
}
