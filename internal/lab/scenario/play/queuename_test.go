package play

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// TestQueuesOfTracesGetNames: whatever a trace calls a queue, it is a name, and no two queues become one.
func TestQueuesOfTracesGetNames(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []string{"ls", "BE", "a_b", "a-b", "a b", "ü", "-", "/", "vc/0", "vc 0", strings.Repeat("x", 90),
		strings.Repeat("x", 91)} {
		name := queueName(s)
		if !job.ValidName(name) {
			t.Errorf("%q becomes %q, which is no name", s, name)
		}
		if other, again := seen[name]; again {
			t.Errorf("%q and %q become %q", s, other, name)
		}
		seen[name] = s
	}
}
