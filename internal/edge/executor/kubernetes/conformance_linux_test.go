//go:build kubernetes

package kubernetes_test

import (
	"testing"

	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
)

func TestMain(m *testing.M) { podtest.Main(m) }

func TestCrowds(t *testing.T) {
	t.Parallel()
	executortest.Crowds(t, func(t *testing.T) executortest.Harness {
		return podtest.NewWorld(t, podtest.NewAPI(t), "main", "default", nil).Harness()
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	executortest.Run(t, false, func(t *testing.T) executortest.Harness {
		return podtest.NewWorld(t, podtest.NewAPI(t), "main", "default", nil).Harness()
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	executortest.Hostile(t, func(t *testing.T) executortest.Harness {
		return podtest.NewWorld(t, podtest.NewAPI(t), "main", "default", nil).Harness()
	})
}
