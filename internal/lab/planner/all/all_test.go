package all_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/all"
)

func TestConformance(t *testing.T) {
	for _, k := range all.Kinds() {
		t.Run(k.Name, func(t *testing.T) { Run(t, k) })
	}
}

// TestLiveNames: what serves live rigid work is named after the planner that does the same to a whole cluster, and never stops
// running work. gangs alone has none: a planner knows no windows that jobs of one slice could answer.
func TestLiveNames(t *testing.T) {
	for _, name := range backfill.Names() {
		if name == "gangs" {
			continue
		}
		i := slices.IndexFunc(all.Kinds(), func(k planner.Kind) bool { return k.Name == name })
		if i < 0 || all.Kinds()[i].Preempts {
			t.Errorf("%s: there is no such planner, or it preempts", name)
		}
	}
}
