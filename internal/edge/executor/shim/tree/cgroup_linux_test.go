package tree

import (
	"os"
	"path/filepath"
	"testing"
)

// TestProbesDoNotMeet: daemons of several pid namespaces, with the same number each, look at once what can be done in one base.
func TestProbesDoNotMeet(t *testing.T) {
	base := t.TempDir()
	probe := func() Group {
		t.Helper()
		g, err := MakeProbe(base, Bounds{Memory: 1, Processes: 1})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	one, other := probe(), probe()
	if one == other {
		t.Fatalf("both have %s", one)
	}
	if err := one.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(other)); err != nil {
		t.Errorf("with one the other is gone: %v", err)
	}
	if _, err := MakeProbe(filepath.Join(base, "nowhere"), Bounds{}); err == nil {
		t.Error("a probe was made in a folder that is not there")
	}
}
