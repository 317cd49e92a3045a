//go:build !kubernetes

package kubernetes

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

// TestOpen: a build that can't says how to get one that can.
func TestOpen(t *testing.T) {
	if _, err := Open(t.Context(), Options{}); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "make build TAGS=") {
		t.Error(err)
	}
}
