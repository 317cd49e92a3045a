//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
)

// CEL of a claim sees a device's driver, attributes and capacities, and neither its name nor its pool. So a device is asked for by all that its ResourceSlice
// says of it, which tells it from the others of its machine, as long as the driver gives each something of its own (ADR 0051). What is read here is
// remembered for a while, so it costs no call for each subjob.

// remembered is how long what a machine's ResourceSlices say is good for.
const remembered = time.Minute

// known are the devices of one machine and driver.
type known struct {
	at      time.Time
	devices []described
}

// described is a device with the pool that it is in.
type described struct {
	pool string
	resourcev1.Device
}

// selector is the CEL expression by which a device is asked for. NotFound: no ResourceSlice has it.
func (e *Executor) selector(ctx context.Context, d *cluster.Device) (string, error) {
	key := d.Driver + "/" + d.Node
	e.mu.Lock()
	k, ok := e.devices[key]
	e.mu.Unlock()
	if text, found := k.selector(d); ok && found && e.o.Clock().Sub(k.at) < remembered {
		return text, nil
	}
	list, err := call(e, "list resourceslices", func() (*resourcev1.ResourceSliceList, error) {
		on := fields.SelectorFromSet(fields.Set{resourcev1.ResourceSliceSelectorNodeName: d.Node, resourcev1.ResourceSliceSelectorDriver: d.Driver})
		return e.o.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: on.String()})
	})
	if err != nil {
		return "", err
	}
	k = known{at: e.o.Clock()}
	for i := range list.Items {
		s := &list.Items[i].Spec
		for j := range s.Devices {
			if s.Driver == d.Driver {
				k.devices = append(k.devices, described{s.Pool.Name, s.Devices[j]})
			}
		}
	}
	e.mu.Lock()
	e.devices[key] = k
	e.mu.Unlock()
	text, found := k.selector(d)
	if !found {
		return "", errkind.Errorf(errkind.NotFound, "no ResourceSlice of %s on %s has a device %s in pool %s", d.Driver, d.Node, d.Name, d.Pool)
	}
	return text, nil
}

// selector describes one of the devices.
func (k *known) selector(d *cluster.Device) (string, bool) {
	i := slices.IndexFunc(k.devices, func(x described) bool { return x.pool == d.Pool && x.Name == d.Name })
	if i < 0 {
		return "", false
	}
	return describe(d.Driver, &k.devices[i].Device), true
}

// describe is an expression that is true of a device, and of no other that differs in an attribute or a capacity.
func describe(driver string, d *resourcev1.Device) string {
	var parts []string
	// A device that lacks it is another one: without the question the expression would fail there, and the Pod with it.
	add := func(of, name, is string, args ...any) {
		domain, word, ok := strings.Cut(name, "/")
		if !ok { // a name without a domain is of the driver's
			domain, word = driver, name
		}
		folder := fmt.Sprintf("device.%s[%q]", of, domain)
		parts = append(parts, fmt.Sprintf("%q in %s && %s[%q]", word, folder, folder, word)+fmt.Sprintf(is, args...))
	}
	for name, a := range d.Attributes {
		switch {
		case a.StringValue != nil:
			add("attributes", string(name), " == %q", *a.StringValue)
		case a.IntValue != nil:
			add("attributes", string(name), " == %d", *a.IntValue)
		case a.BoolValue != nil:
			add("attributes", string(name), " == %t", *a.BoolValue)
		case a.VersionValue != nil:
			add("attributes", string(name), ".compareTo(semver(%q)) == 0", *a.VersionValue)
		}
	}
	for name, c := range d.Capacity {
		add("capacity", string(name), ".compareTo(quantity(%q)) == 0", c.Value.String())
	}
	slices.Sort(parts)
	return strings.Join(append([]string{"device.driver == " + strconv.Quote(driver)}, parts...), " && ")
}
