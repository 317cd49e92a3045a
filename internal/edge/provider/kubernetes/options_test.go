package kubernetes

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// All that is wrong is said at once.
func TestOptions(t *testing.T) {
	_, err := Open(Options{Mark: "A", Pool: "P", Namespace: "a/b", Image: "a b", Resources: map[string]string{"cpu": "lots", "a b": "1"},
		PriorityClass: "X", NodeSelector: map[string]string{"a b": "c"}, Tolerates: []string{"a b"}, Grace: time.Second, User: -1,
		GPUs: "-x", Kubeconfig: "config", Timeout: -1})
	for _, part := range []string{"mark", "name", "namespace", "image", "sluiceImage", "cpu", "a b", "priorityClass", "nodeSelector",
		"tolerates", "grace", "user", "gpus", "kubeconfig", "timeout"} {
		if err == nil || errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: nothing of %s", err, part)
		}
	}
}
