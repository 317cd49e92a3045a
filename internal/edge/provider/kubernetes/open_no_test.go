//go:build !kubernetes

package kubernetes

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

// A build that can't says how to get one that can.
func TestOpen(t *testing.T) {
	_, err := Open(Options{Mark: "aaaa1111", Pool: "pool", Namespace: "n", Image: "i", SluiceImage: "s"})
	if errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), "TAGS=") {
		t.Errorf("%v, want one that says how", err)
	}
}
