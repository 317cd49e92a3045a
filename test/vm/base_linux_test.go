package vm

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
)

// TestGuestABaseThatIsNamedCountsMemory: a kind that is told where groups are made turns their controllers on there, as one does that
// looks for the place itself.
func TestGuestABaseThatIsNamedCountsMemory(t *testing.T) {
	guest(t)
	base, err := tree.MakeGroup(tree.GroupIn(service, "named"), tree.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := base.Remove(); err != nil {
			t.Error(err)
		}
	})
	k, err := cgroup.Open(string(base))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Close() }()
	if why := k.Capability().Why; strings.Contains(why, "counts no memory") {
		t.Errorf("in %s %v", base, k.Capability())
	}
}
