//go:build kubernetes

package kube

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/test/kube/plane"
)

// sliced publishes a part of a machine's pool, which announces so many parts, and takes it away with the test.
func sliced(t *testing.T, p *plane.Plane, machine, name string, announced int64, change func(*resourcev1.ResourceSliceSpec)) {
	t.Helper()
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: machine + "-" + name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: plane.Driver, NodeName: &machine, Pool: resourcev1.ResourcePool{Name: machine, Generation: 1,
			ResourceSliceCount: announced}}}
	change(&s.Spec)
	if _, err := p.Client().ResourceV1().ResourceSlices().Create(context.Background(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Client().ResourceV1().ResourceSlices().Delete(context.Background(), s.Name, metav1.DeleteOptions{})
	})
}

func cores(n string) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"cores": {Value: resource.MustParse(n)}}
}

// part is a device that takes so much of the counter, or of none.
func part(name, takes string) resourcev1.Device {
	kind := "mig"
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}}
	if takes != "" {
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu", Counters: cores(takes)}}
	}
	return d
}

// TestCountersAreAddedWithTheirFractions: of 1500m three devices of 500m can be had, and one of 1.
func TestCountersAreAddedWithTheirFractions(t *testing.T) {
	p := plane.Of(t)
	ns := p.Namespace(t)
	p.Classes(t)
	for machine, c := range map[string]struct {
		takes string
		want  int
	}{"halves": {"500m", 3}, "ones": {"1", 1}} {
		p.Machine(t, machine, nil)
		sliced(t, p, machine, "counters", 2, func(s *resourcev1.ResourceSliceSpec) {
			s.SharedCounters = []resourcev1.CounterSet{{Name: "gpu", Counters: cores("1500m")}}
		})
		sliced(t, p, machine, "devices", 2, func(s *resourcev1.ResourceSliceSpec) {
			for i := range c.want + 1 {
				s.Devices = append(s.Devices, part(fmt.Sprintf("part-%d", i), c.takes))
			}
		})
		for i := range c.want + 1 {
			name := fmt.Sprintf("%s-%d", machine, i)
			claim(t, p, ns, name, plane.MIGClass)
			create(t, p, ns, filler(name, with, pinned(machine)))
			if i < c.want {
				p.Pod(t, ns, name, "runs", plane.In(corev1.PodRunning))
				continue
			}
			p.Pod(t, ns, name, "is refused", refused)
		}
	}
}

// TestAPoolOfTooManySlicesGivesNothing, until what is too much is gone; neither does one with two devices of one name.
func TestAPoolOfTooManySlicesGivesNothing(t *testing.T) {
	p := plane.Of(t)
	ns := p.Namespace(t)
	p.Classes(t)
	devices := func(names ...string) func(*resourcev1.ResourceSliceSpec) {
		return func(s *resourcev1.ResourceSliceSpec) {
			for _, name := range names {
				s.Devices = append(s.Devices, part(name, ""))
			}
		}
	}
	p.Machine(t, "surplus", nil)
	sliced(t, p, "surplus", "one", 1, devices("a"))
	sliced(t, p, "surplus", "two", 1, devices("b"))
	p.Machine(t, "twins", nil)
	sliced(t, p, "twins", "one", 2, devices("a"))
	sliced(t, p, "twins", "two", 2, devices("a"))
	for _, machine := range []string{"surplus", "twins"} {
		claim(t, p, ns, machine, plane.MIGClass)
		create(t, p, ns, filler(machine, with, pinned(machine)))
		p.Pod(t, ns, machine, "is refused", refused)
	}
	if err := p.Client().ResourceV1().ResourceSlices().Delete(t.Context(), "surplus-two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	claim(t, p, ns, "after", plane.MIGClass) // of a Pod of its own: no event has the one that was refused looked at again
	create(t, p, ns, filler("after", with, pinned("surplus")))
	p.Pod(t, ns, "after", "runs", plane.In(corev1.PodRunning))
}
