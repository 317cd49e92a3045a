//go:build kubernetes && machine

package machine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/test/kube/plane"
)

// devicePlugin builds tools/kube/plugin, a module of its own.
func devicePlugin(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../../tools/kube/plugin"
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestADevicePlugin: the resource is there by a plugin's registration with the kubelet, as with NVIDIA's, and what the plugin gives a
// container reaches the program. A plugin that is killed takes nothing from what runs; what starts meanwhile waits until it is back.
func TestADevicePlugin(t *testing.T) {
	const resource = "nvidia.com/mig-2g.20gb"
	d := newDesk(t)
	d.Device = cluster.Device{Node: d.m.Name, Resource: resource}
	program := devicePlugin(t)
	there := func(n int64) {
		t.Helper()
		plane.Eventually(t, fmt.Sprintf("%d devices", n), func() (bool, string) {
			node, err := d.Client.CoreV1().Nodes().Get(t.Context(), d.m.Name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			capacity := node.Status.Capacity[resource]
			return !capacity.IsZero() && node.Status.Allocatable.Name(resource, "").Value() == n,
				fmt.Sprint(node.Status.Capacity, node.Status.Allocatable)
		})
	}
	plugin := d.m.Run(t, "plugin", program, resource, "2")
	there(2)
	d.start(tok(1), nil, "env", "MADE_UP_DEVICES")
	if r := d.result(tok(1)); r.Outcome != job.Done {
		t.Fatalf("%+v", r)
	}
	d.settle(tok(1), job.Range{To: 10})
	if got := d.outputs(); !regexp.MustCompile(`^made-up-[01]\n$`).MatchString(got) {
		t.Errorf("its program was given %q", got)
	}

	d.start(tok(2), nil, "polite")
	d.reaches(tok(2), 5)
	plugin.End(0)
	there(0)
	d.start(tok(3), nil, "true")
	d.Until("the next one waits for a device", func() bool {
		p := d.Pod(tok(3))
		if p == nil {
			return false
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return true
			}
		}
		return false
	})
	d.m.Run(t, "plugin", program, resource, "2")
	there(2)
	if r := d.result(tok(3)); r.Outcome != job.Done {
		t.Errorf("%+v", r)
	}
	d.ex.Do(protocol.Message{Kind: protocol.Stop, Token: tok(2), Job: "train", Body: &protocol.Halt{Text: "enough"}}, journal.Position{})
	if r := d.result(tok(2)); r.Outcome != job.Yielded || r.Progress != 5 {
		t.Errorf("%+v, want it as if nothing had been", r)
	}
}
