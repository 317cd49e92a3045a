package all_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/lab/swarm/all"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
)

// TestConformance: every mechanism, and laminar with parts taken out: that costs places and messages, and breaks nothing.
func TestConformance(t *testing.T) {
	for _, k := range slices.Concat(all.Kinds(), laminar.Ablations()) {
		t.Run(k.Name, func(t *testing.T) { conforms(t, k) })
	}
}
