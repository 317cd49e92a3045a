package scenario

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	formats "sluice.dev/sluice/internal/lab/trace/all"
)

// TestDocumentationIsRead: every example of the documentation is a scenario, and every key that is read is described there.
func TestDocumentationIsRead(t *testing.T) {
	text, err := os.ReadFile("../../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 2 {
		t.Errorf("%d examples; want two", len(examples))
	}
	for i, e := range examples {
		if _, err := (Reader{formats.Formats()}).Parse(fmt.Sprintf("example-%d.yml", i+1), []byte(e[1])); err != nil {
			t.Error(err)
		}
	}
	for _, key := range slices.Concat(streamKeys(true), streamKeys(false), arrivalKeys(),
		strings.Fields("memory park pace survival order storms shape size swarm gates digest decision width tasks load long longMean "+
			"patience longPatience batch stragglers slow scenario doc market agents agent strategy by share think name nodes rack block "+
			"reservations slices at start for every truncate queues use policy rigid preempt horizon minWindow memoryRisk minRuntime "+
			"overheadMax grace continue restore checkpoint name count due true kill cut skew keep drift node zones zone delay jitter "+
			"loss duplication warmup until limit seeds expect host planner notice walltimes timeMin pools "+
			"atMost lengths idle step start gaps ahead blind pass grace refuse silent from to stays startup resident template")) {
		if !regexp.MustCompile(`\b` + key + `\b`).Match(text) {
			t.Errorf("key %s is not described", key)
		}
	}
}
