package wire

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestEveryKindHasAName of its own, and nothing else has one.
func TestEveryKindHasAName(t *testing.T) {
	seen := map[string]bool{}
	for k := range 1 << 8 {
		k := protocol.Kind(k) //nolint:gosec // as many as a kind can have
		name := protocol.NameOf(k)
		if known := !strings.HasPrefix(name, "kind "); known != knownMessage(k) || seen[name] {
			t.Errorf("%d is called %s", k, name)
		}
		seen[name] = true
	}
}
