//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/health"
)

// sickness is what an evaluation says of the GPUs of slices.
func (x *stand) sickness() string {
	var lines []string
	for _, s := range x.slices {
		for _, a := range x.faults[s.ID] {
			lines = append(lines, fmt.Sprintf("%s %v: %s", s.ID, a.Cause, a.Text))
		}
	}
	return strings.Join(lines, "\n")
}

// TestADeviceThatIsTainted is not for sale, and what runs there ends if the taint evicts. Nobody holds it, and what it shares with others
// is theirs.
func TestADeviceThatIsTainted(t *testing.T) {
	for effect, want := range map[resourcev1.DeviceTaintEffect]string{
		resourcev1.DeviceTaintEffectNoSchedule: "w/gpu-0-mig-3g-0 closed: device taint sick=xid-79",
		resourcev1.DeviceTaintEffectNoExecute:  "w/gpu-0-mig-3g-0 evicted: device taint sick=xid-79",
		resourcev1.DeviceTaintEffectNone:       "",
		"OfTomorrow":                           "",
	} {
		parts := partitionable("w")
		parts[1].Spec.Devices[7].Taints = []resourcev1.DeviceTaint{{Key: "sick", Value: "xid-79", Effect: effect}}
		x := sceneOf([]Pool{migs("3g.40gb")}, node("w"), parts).evaluate(&stand{})
		if got := x.sickness(); got != want {
			t.Errorf("%s: it is\n%s\nwant\n%s", effect, got, want)
		}
		if got := x.told(); got != "w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3" {
			t.Errorf("%s: held are\n%s", effect, got)
		}
	}
}

// TestAMachineWhoseGPUsAreBroken by its conditions: all of its slices are closed, those of extended resources too.
func TestAMachineWhoseGPUsAreBroken(t *testing.T) {
	condition := func(name string, status corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(name), Status: status,
				Reason: "Xid79"})
		}
	}
	for _, c := range []struct {
		name   string
		status corev1.ConditionStatus
		bad    bool
	}{
		{"AcceleratedHardwareReady", corev1.ConditionFalse, true}, {"AcceleratedHardwareReady", corev1.ConditionTrue, false},
		{"AcceleratedHardwareReady", corev1.ConditionUnknown, false},
		{"XIDErrors", corev1.ConditionTrue, true}, {"XIDErrors", corev1.ConditionFalse, false}, {"GPUMissing", corev1.ConditionTrue, true},
		{"MemoryPressure", corev1.ConditionTrue, false},
	} {
		want := ""
		if c.bad {
			text := fmt.Sprintf("closed: node condition %s is %s (Xid79)", c.name, c.status)
			want = "w/gpu-0-mig-7g-0 " + text + "\nw/mig-1g.10gb.0 " + text
		}
		n := node("w", has("nvidia.com/mig-1g.10gb", 1), condition(c.name, c.status))
		if got := sceneOf([]Pool{migs("7g.80gb"), small()}, n, partitionable("w")).evaluate(&stand{}).sickness(); got != want {
			t.Errorf("%s %s: it is\n%s\nwant\n%s", c.name, c.status, got, want)
		}
	}
}

// TestDeviceTaintRules come and go while it watches, and are there at the start, in either version of the API.
func TestDeviceTaintRules(t *testing.T) {
	beta := func(name, device string) runtime.Object {
		r := &resourcev1beta2.DeviceTaintRule{ObjectMeta: meta("", name)}
		r.Spec.DeviceSelector = &resourcev1beta2.DeviceTaintSelector{Driver: ptr(driver), Pool: ptr("w"), Device: ptr(device)}
		r.Spec.Taint = resourcev1beta2.DeviceTaint{Key: "sick", Effect: resourcev1beta2.DeviceTaintEffectNoExecute}
		return r
	}
	alpha := func(name, device string) runtime.Object {
		r := &resourcev1alpha3.DeviceTaintRule{ObjectMeta: meta("", name)}
		r.Spec.DeviceSelector = &resourcev1alpha3.DeviceTaintSelector{Device: ptr(device)}
		r.Spec.Taint = resourcev1alpha3.DeviceTaint{Key: "sick", Effect: resourcev1alpha3.DeviceTaintEffectNoExecute}
		return r
	}
	for version, rule := range map[string]func(name, device string) runtime.Object{"v1beta2": beta, "v1alpha3": alpha} {
		parts := partitionable("w")
		nothing := &resourcev1beta2.DeviceTaintRule{ObjectMeta: meta("", "selects-nothing")}
		nothing.Spec.Taint = resourcev1beta2.DeviceTaint{Key: "all", Effect: resourcev1beta2.DeviceTaintEffectNoExecute}
		c := serve(node("w"), parts[0], parts[1], rule("first", "gpu-0-mig-3g-0"), nothing)
		c.Resources = append(c.Resources, &metav1.APIResourceList{GroupVersion: "resource.k8s.io/" + version,
			APIResources: []metav1.APIResource{{Name: "devicetaintrules"}}})
		o := options(c)
		o.Pools = []Pool{migs("3g.40gb")}
		f := follow(t, opened(t, o))
		sick := func(slices ...string) {
			t.Helper()
			f.comes(t, func() string {
				got, want := map[string]string{}, map[string]string{}
				for id, states := range f.sick {
					for _, s := range states {
						got[string(id)] += s.Cause.String() + " " + s.Text
					}
				}
				for i, id := range slices {
					want["w/"+id] = health.Evicted.String() + " device taint sick of DeviceTaintRule " + []string{"first", "second"}[i]
				}
				if fmt.Sprint(got) == fmt.Sprint(want) {
					return ""
				}
				return fmt.Sprintf("sick are %v, want %v", got, want)
			})
		}
		sick("gpu-0-mig-3g-0")
		second := rule("second", "gpu-0-mig-3g-3")
		switch second := second.(type) {
		case *resourcev1beta2.DeviceTaintRule:
			check[*resourcev1beta2.DeviceTaintRule](t)(c.ResourceV1beta2().DeviceTaintRules().Create(context.Background(), second,
				metav1.CreateOptions{}))
		case *resourcev1alpha3.DeviceTaintRule:
			check[*resourcev1alpha3.DeviceTaintRule](t)(c.ResourceV1alpha3().DeviceTaintRules().Create(context.Background(), second,
				metav1.CreateOptions{}))
		}
		sick("gpu-0-mig-3g-0", "gpu-0-mig-3g-3")
		remove := c.ResourceV1beta2().DeviceTaintRules().Delete
		if version == "v1alpha3" {
			remove = c.ResourceV1alpha3().DeviceTaintRules().Delete
		}
		for _, name := range []string{"second", "first"} {
			if err := remove(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if name == "second" {
				sick("gpu-0-mig-3g-0")
			}
		}
		sick()
	}
}
