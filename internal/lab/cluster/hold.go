package cluster

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// hold puts a task on devices. Every promise of the planner is checked here: the class is one of the task's, the devices
// are as many as it wants, of that class, on one node unless it spreads, and have room; so does the node's host.
func (c *Cluster) hold(now quantity.Instant, k *task, devices []Device) {
	if len(devices) != int(k.Devices) {
		invariant.Check(false, "cluster: task %d wants %d devices and is given %d", k.ID, k.Devices, len(devices))
	}
	if len(devices) > 0 && k.Classes&(1<<k.class) == 0 {
		invariant.Check(false, "cluster: task %d may not use devices of class %d", k.ID, k.class)
	}
	if k.node < 0 || int(k.node) >= len(c.hosts) {
		invariant.Check(false, "cluster: task %d is put on node %d and there is none", k.ID, k.node)
	}
	k.first = none
	for i := len(devices) - 1; i >= 0; i-- {
		at := devices[i]
		if at < 0 || int(at) >= len(c.devices) {
			invariant.Check(false, "cluster: task %d is put on device %d and there is none", k.ID, at)
		}
		d := &c.devices[at]
		switch {
		case d.class != k.class:
			invariant.Check(false, "cluster: task %d is put on device %d, which is of class %d and not %d", k.ID, at, d.class, k.class)
		case d.node != k.node && (!k.Spread || i == 0):
			invariant.Check(false, "cluster: task %d is put on node %d and on device %d of node %d", k.ID, k.node, at, d.node)
		case int32(d.free) < k.Share:
			invariant.Check(false, "cluster: task %d is put on device %d, where %d thousandths are free and it wants %d", k.ID, at, d.free,
				k.Share)
		}
		d.free -= int16(k.Share)
		if k.Share == planner.Whole {
			d.next = k.first
		}
		k.first = int32(at)
	}
	if h := &c.hosts[k.node]; !h.unlimited && !k.Spread {
		h.cpu -= k.CPU
		h.memory -= k.Memory
		if h.cpu < 0 || h.memory < 0 {
			invariant.Check(false, "cluster: task %d overfills the host of node %d: %d thousandths of a core and %d MiB are missing", k.ID,
				k.node, max(0, -h.cpu), max(0, -h.memory))
		}
	}
	c.use(now, k, 1)
}

// release gives back what a task holds.
func (c *Cluster) release(now quantity.Instant, k *task) {
	for at, n := k.first, k.Devices; n > 0; n-- {
		d := &c.devices[at]
		d.free += int16(k.Share)
		at = d.next // of a share there is no other
	}
	k.first = none
	if h := &c.hosts[k.node]; !h.unlimited && !k.Spread {
		h.cpu += k.CPU
		h.memory += k.Memory
	}
	c.use(now, k, -1)
}
