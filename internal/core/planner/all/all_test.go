package all_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/planner/all"
	"sluice.dev/sluice/internal/core/planner/plannertest"
)

func TestConformance(t *testing.T) {
	for _, k := range all.Kinds() {
		t.Run(k.Name, func(t *testing.T) { plannertest.Run(t, k) })
	}
}

func TestLiveRefusesBaselines(t *testing.T) {
	for _, k := range all.Kinds() {
		live, err := all.Live(k.Name)
		switch {
		case k.Live != nil && !k.Preempts:
			if err != nil || live.Name != k.Name {
				t.Errorf("%s serves live clusters, got %v", k.Name, err)
			}
		case errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), k.Name) || !strings.Contains(err.Error(), "choose one of fcfs"):
			t.Errorf("%s must be refused with its name and those there are, got %v", k.Name, err)
		case k.Preempts && !strings.Contains(err.Error(), "stops running work"):
			t.Errorf("%s must be refused because it preempts, got %v", k.Name, err)
		}
	}
	if _, err := all.Live("fifo"); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "fcfs, skip, easy") {
		t.Errorf("an unknown name must be answered with the known ones, got %v", err)
	}
}
