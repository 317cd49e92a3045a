//go:build kubernetes

package operator

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
)

// TestMoreThanAPodCanStoreIsRefused when it is asked for, and not once it is done.
func TestMoreThanAPodCanStoreIsRefused(t *testing.T) {
	for limit, refused := range map[int64]bool{0: false, store.MaxLent: false, store.MaxLent + 1: true} {
		err := startable(&job.Spec{Launch: job.Launch{Image: "x", OutputLimit: limit}})
		if (errkind.Of(err) == errkind.Invalid) != refused || refused && !strings.Contains(err.Error(), "spec.limits.output") {
			t.Errorf("%d: %v", limit, err)
		}
	}
}
