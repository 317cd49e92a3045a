package provider

import (
	"strings"
	"testing"
)

func TestSoundPool(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "mig-1": true, "": false, "1a": false, "a-": false, "-a": false, "A": false,
		"a_b":                         false,
		strings.Repeat("a", MostPool): true, strings.Repeat("a", MostPool+1): false} {
		if SoundPool(name) != ok {
			t.Errorf("%q: %v", name, !ok)
		}
	}
}
