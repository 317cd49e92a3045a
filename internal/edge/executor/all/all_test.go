package all_test

import (
	"testing"

	"sluice.dev/sluice/internal/edge/executor/all"
	"sluice.dev/sluice/internal/edge/executor/process"
)

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range all.Kinds() {
		if k.Name == "" || k.About == "" || seen[k.Name] {
			t.Errorf("kind %+v: want a name of its own and a line about it", k)
		}
		seen[k.Name] = true
		if ex, err := k.New(process.Options{}); err == nil || ex != nil {
			t.Errorf("%s: got %v, %v for empty options, want an error and nothing else", k.Name, ex, err)
		}
	}
	if !seen["process"] {
		t.Error("no process kind")
	}
}
