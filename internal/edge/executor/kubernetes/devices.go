//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
)

// A claim's CEL sees a device's driver, attributes and capacities, but neither its name nor its pool. So a device is selected by
// everything its ResourceSlice says of it, which is unique on its machine as long as the driver publishes something unique for each device
// (ADR 0051). Slices are cached, so that a subjob costs no call for them.

// remembered is how long a machine's ResourceSlices are cached.
const remembered = time.Minute

// devices caches the ResourceSlices of machines. Invariant: what is there of a machine and driver is one list, read as a whole at known.at.
type devices struct {
	api *api

	mu  sync.Mutex
	all map[string]known // by driver and machine
}

// known are the cached devices of one machine and driver.
type known struct {
	at      time.Time
	devices []described
}

// described is a device with its pool.
type described struct {
	pool string
	resourcev1.Device
}

// selector is the CEL expression that selects a device. NotFound: no ResourceSlice has it.
func (s *devices) selector(ctx context.Context, d *cluster.Device) (string, error) {
	key := d.Driver + "/" + d.Node
	s.mu.Lock()
	k, ok := s.all[key]
	s.mu.Unlock()
	if text, found := k.selector(d); ok && found && s.api.o.Clock().Sub(k.at) < remembered {
		return text, nil
	}
	list, err := call(s.api, "list resourceslices", func() (*resourcev1.ResourceSliceList, error) {
		on := fields.SelectorFromSet(fields.Set{resourcev1.ResourceSliceSelectorNodeName: d.Node,
			resourcev1.ResourceSliceSelectorDriver: d.Driver})
		return s.api.o.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: on.String()})
	})
	if err != nil {
		return "", err
	}
	k = known{at: s.api.o.Clock()}
	for i := range list.Items {
		of := &list.Items[i].Spec
		for j := range of.Devices {
			if of.Driver == d.Driver {
				k.devices = append(k.devices, described{of.Pool.Name, of.Devices[j]})
			}
		}
	}
	s.mu.Lock()
	s.all[key] = k
	s.mu.Unlock()
	text, found := k.selector(d)
	if !found {
		return "", errkind.Errorf(errkind.NotFound, "no ResourceSlice of %s on %s has a device %s in pool %s", d.Driver, d.Node, d.Name,
			d.Pool)
	}
	return text, nil
}

// selector finds a device and describes it.
func (k *known) selector(d *cluster.Device) (string, bool) {
	i := slices.IndexFunc(k.devices, func(x described) bool { return x.pool == d.Pool && x.Name == d.Name })
	if i < 0 {
		return "", false
	}
	return describe(d.Driver, &k.devices[i].Device), true
}

// describe makes an expression that is true of a device and of no other that differs in an attribute or capacity.
func describe(driver string, d *resourcev1.Device) string {
	var parts []string
	// The test for the key comes first: on a device without it the comparison would be an error, and fail the Pod's scheduling.
	add := func(of, name, is string, args ...any) {
		domain, word, ok := strings.Cut(name, "/")
		if !ok { // a name without a domain is in the driver's
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
