package history

import "testing"

// TestKinds: a profile of MIG says what part of a GPU a device is, and its memory; any other name is a whole one.
func TestKinds(t *testing.T) {
	for name, want := range map[string]Kind{
		"a100": {Weight: 1000}, "gpu": {Weight: 1000}, "7g": {Weight: 1000},
		"1g.10gb": {Weight: 142, Memory: kind("1g.10gb").Memory}, "a100_3g.20gb": {Weight: 428, Memory: kind("3g.20gb").Memory},
	} {
		want.Name = name
		if got := kind(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if small, large := kind("1g.10gb").Memory, kind("3g.20gb").Memory; small < 9<<30 || small > 10<<30 || large < 18<<30 || large > 20<<30 {
		t.Errorf("%d and %d bytes", small, large)
	}
}
