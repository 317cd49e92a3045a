package all_test

import (
	"testing"

	"sluice.dev/sluice/internal/lab/swarm/all"
	"sluice.dev/sluice/internal/lab/swarm/swarmtest"
)

func TestConformance(t *testing.T) {
	for _, k := range all.Kinds() {
		t.Run(k.Name, func(t *testing.T) { swarmtest.Run(t, k) })
	}
}
