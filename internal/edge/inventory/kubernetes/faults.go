//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	alphainformers "k8s.io/client-go/informers/resource/v1alpha3"
	betainformers "k8s.io/client-go/informers/resource/v1beta2"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/inventory"
)

// What a cluster says of GPUs that fail: taints of devices, by their drivers (ResourceSlice) and by people and controllers
// (DeviceTaintRule), and conditions of machines. What follows is core/health's.

// taintOf is what a device's taint says of it; nil: nothing that matters to new work.
func taintOf(key, value, effect, source string) *health.State {
	text := "device taint " + key
	if value != "" {
		text += "=" + value
	}
	text += source
	switch resourcev1.DeviceTaintEffect(effect) {
	case resourcev1.DeviceTaintEffectNoSchedule:
		return &health.State{Cause: health.Closed, Text: text}
	case resourcev1.DeviceTaintEffectNoExecute:
		return &health.State{Cause: health.Evicted, Text: text}
	case resourcev1.DeviceTaintEffectNone:
	}
	return nil // it is only told, or not known
}

func (s *slimmer) rule(o metav1.Object, driver, pool, device *string, all bool, key, val, effect string) *rule {
	return &rule{ObjectMeta: named(o), driver: value(driver), pool: value(pool), device: value(device), all: all,
		state: taintOf(key, val, effect, " of DeviceTaintRule "+o.GetName())}
}

func (s *slimmer) betaRule(o *resourcev1beta2.DeviceTaintRule) *rule {
	at, t := value(o.Spec.DeviceSelector), &o.Spec.Taint
	return s.rule(o, at.Driver, at.Pool, at.Device, o.Spec.DeviceSelector != nil, t.Key, t.Value, string(t.Effect))
}

func (s *slimmer) alphaRule(o *resourcev1alpha3.DeviceTaintRule) *rule {
	at, t := value(o.Spec.DeviceSelector), &o.Spec.Taint
	return s.rule(o, at.Driver, at.Pool, at.Device, o.Spec.DeviceSelector != nil, t.Key, t.Value, string(t.Effect))
}

// listRules watches DeviceTaintRules in the newest version that the API server has; nil: it has none.
func (inv *Inventory) listRules() (cache.SharedIndexInformer, error) {
	for _, v := range []struct {
		version string
		make    func() cache.SharedIndexInformer
	}{
		{resourcev1beta2.SchemeGroupVersion.String(), func() cache.SharedIndexInformer {
			return betainformers.NewDeviceTaintRuleInformer(inv.opts.Client, 0, cache.Indexers{})
		}},
		{resourcev1alpha3.SchemeGroupVersion.String(), func() cache.SharedIndexInformer {
			return alphainformers.NewDeviceTaintRuleInformer(inv.opts.Client, 0, cache.Indexers{})
		}},
	} {
		has, err := inv.serves(v.version, "devicetaintrules")
		if err != nil {
			return nil, err
		}
		if has {
			return v.make(), nil
		}
	}
	return nil, nil
}

// tainted are ResourceSlices with the taints that rules add to their devices.
func (inv *Inventory) tainted(list []*resourceSlice) []*resourceSlice {
	if inv.rules == nil {
		return list
	}
	all := inv.rules.GetStore().List()
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(a.(*rule).Name, b.(*rule).Name) })
	for i, o := range list {
		var own *resourceSlice // a copy: what is kept is immutable
		for _, x := range all {
			r := x.(*rule)
			if !r.all || r.state == nil || r.driver != "" && r.driver != o.driver || r.pool != "" && r.pool != o.pool {
				continue
			}
			for k := range o.devices {
				if r.device != "" && r.device != o.devices[k].name {
					continue
				}
				if own == nil {
					c := *o
					c.devices = slices.Clone(o.devices)
					own = &c
				}
				own.devices[k].taints = append(slices.Clip(own.devices[k].taints), *r.state)
			}
		}
		if own != nil {
			list[i] = own
		}
	}
	return list
}

// broken are conditions of machines that say that their GPUs can't be used, with the status that says so. Each is of a machine as a whole.
//   - AcceleratedHardwareReady: Amazon's node monitoring agent (https://docs.aws.amazon.com/eks/latest/userguide/node-health.html)
//   - GPUMissing, XIDErrors: Azure's node problem detector (https://learn.microsoft.com/azure/aks/node-problem-detector)
var broken = map[corev1.NodeConditionType]corev1.ConditionStatus{ //nolint:gochecknoglobals // a table, written to by nobody
	"AcceleratedHardwareReady": corev1.ConditionFalse, "GPUMissing": corev1.ConditionTrue, "XIDErrors": corev1.ConditionTrue,
}

// conditions are what a machine's conditions say of its GPUs.
func conditions(o *corev1.Node) (list []health.State) {
	for _, c := range o.Status.Conditions {
		if bad, known := broken[c.Type]; known && c.Status == bad {
			text := fmt.Sprintf("node condition %s is %s", c.Type, c.Status)
			if c.Reason != "" {
				text += " (" + c.Reason + ")"
			}
			list = append(list, health.State{Cause: health.Closed, Text: text})
		}
	}
	return list
}

// vitals reports the faults of a slice's GPU; none: it is healthy.
func vitals(id job.SliceID, states []health.State) inventory.Sighting {
	return inventory.Sighting{Vitals: &protocol.Vitals{Slices: []job.SliceID{id}, Look: &health.Look{States: slices.Clone(states)}}}
}
