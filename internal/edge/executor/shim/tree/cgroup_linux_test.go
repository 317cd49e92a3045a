package tree

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestProbesThatWereLeftAreSwept: whoever made them was killed meanwhile. Those that may be in use are not.
func TestProbesThatWereLeftAreSwept(t *testing.T) {
	base := t.TempDir()
	made := func(name string, age time.Duration, parts ...string) string {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Join(append([]string{dir}, parts...)...), 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for dir, stays := range map[string]bool{
		made("sluice-probe-1", time.Hour): false, made("sluice-probe-2", 0): true, made("sluice-probe-3", time.Hour, "used"): true,
		made("sluice-1-1", time.Hour): true,
	} {
		if _, err := MakeProbe(base, Bounds{}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, stays)
		}
	}
}

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
