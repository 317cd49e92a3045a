//go:build kubernetes

package kubernetes

import (
	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/quantity"
)

// taint is one of NoSchedule or NoExecute.
type taint struct {
	key, value string
	effect     corev1.TaintEffect
}

// pooled names a driver's pool.
type pooled struct{ driver, pool string }

// device is a device as its driver publishes it.
type device struct {
	name, machine string
	// attributes and capacities by name, with a domain where the driver wrote one.
	attributes map[string]string
	capacities map[string]amount
	memory     quantity.Amount
	uses       []count
	// taints keep everybody from it.
	taints []health.State
	// several: it may be allocated to several claims at once, a part to each.
	several bool
}

// count is an amount of one counter of a set.
type count struct {
	set, counter string
	amount
}

// amount is n / 10^places, exactly: Kubernetes' quantities have fractions down to a billionth.
type amount struct {
	n      int64
	places int8
}

// place identifies a device.
type place struct {
	pooled
	device string
}

// attribute finds one by domain and name; attributes without a domain belong to the driver's.
func (d *device) attribute(domain, name, driver string) (string, bool) {
	v, there := d.attributes[domain+"/"+name]
	if !there && domain == driver {
		v, there = d.attributes[name]
	}
	return v, there
}

// capacity is like attribute.
func (d *device) capacity(domain, name, driver string) (amount, bool) {
	v, there := d.capacities[domain+"/"+name]
	if !there && domain == driver {
		v, there = d.capacities[name]
	}
	return v, there
}

// plain finds an attribute by its name alone, in the driver's domain first.
func (d *device) plain(name, driver string) string {
	if v, there := d.attribute(driver, name, driver); there {
		return v
	}
	least := ""
	for key := range d.attributes {
		if bare(key) == name && (least == "" || key < least) {
			least = key
		}
	}
	return d.attributes[least]
}
