package cluster

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// state of a task.
type state uint8

const (
	absent state = iota
	waiting
	running
	leaving // told to checkpoint, and holding its devices until it returns
)

// task is what the actor knows about an id. Invariant: it is counted in exactly one of Counts.Waiting and Counts.Running
// unless absent, and only running and leaving ones hold devices.
type task struct {
	Task
	// since it waits or runs.
	since quantity.Instant
	// hash is its term of the digest.
	hash uint64
	// first of the chain of its devices, or -1; node it stands on.
	first, node int32
	class       uint8
	state       state
}

// term of the digest. A word costs one multiplication, for a step has no time for more.
func (k *task) term() uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := (uint64(k.ID)<<32 | uint64(k.class)<<8 | uint64(k.state)) * odd
	h = (h ^ h>>32 ^ uint64(k.since)) * odd
	h = (h ^ h>>29 ^ uint64(uint32(k.first))<<32 ^ uint64(uint32(k.Devices))) * odd
	return h ^ h>>32
}

// device is one device and what is free of it. A whole device has one holder, whose devices are chained by next.
type device struct {
	node, next int32
	free       int16
	class      uint8
}

// host is what is free of a node's processors and memory; none of it counts if unlimited.
type host struct {
	cpu, memory int64
	unlimited   bool
}

// none ends a chain of devices.
const none = -1

// ground is what tasks stand on. Invariant: what is free of a device or host is what is there less what the tasks take that hold it.
type ground struct {
	devices []device
	hosts   []host
}

func newGround(machines Machines) (g ground) {
	for i, n := range machines.Nodes {
		g.hosts = append(g.hosts, host{cpu: n.CPU, memory: n.Memory, unlimited: n.CPU == 0 && n.Memory == 0})
		for _, class := range n.Devices {
			g.devices = append(g.devices, device{node: int32(i), next: none, free: planner.Whole, class: class})
		}
	}
	return g
}

// hold puts a task on devices. Every promise of the planner is checked here: the class is one of the task's, the devices
// are as many as it wants, of that class, on one node unless it spreads, and have room; so does the node's host.
func (g *ground) hold(k *task, devices []Device) {
	if len(devices) != int(k.Devices) {
		invariant.Check(false, "cluster: task %d wants %d devices and is given %d", k.ID, k.Devices, len(devices))
	}
	if len(devices) > 0 && k.Classes&(1<<k.class) == 0 {
		invariant.Check(false, "cluster: task %d may not use devices of class %d", k.ID, k.class)
	}
	if k.node < 0 || int(k.node) >= len(g.hosts) {
		invariant.Check(false, "cluster: task %d is put on node %d and there is none", k.ID, k.node)
	}
	k.first = none
	for i := len(devices) - 1; i >= 0; i-- {
		at := devices[i]
		if at < 0 || int(at) >= len(g.devices) {
			invariant.Check(false, "cluster: task %d is put on device %d and there is none", k.ID, at)
		}
		d := &g.devices[at]
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
	if h := &g.hosts[k.node]; !h.unlimited && !k.Spread {
		h.cpu -= k.CPU
		h.memory -= k.Memory
		if h.cpu < 0 || h.memory < 0 {
			invariant.Check(false, "cluster: task %d overfills the host of node %d: %d thousandths of a core and %d MiB are missing", k.ID,
				k.node, max(0, -h.cpu), max(0, -h.memory))
		}
	}
}

// release gives back what a task holds.
func (g *ground) release(k *task) {
	for at, n := k.first, k.Devices; n > 0; n-- {
		d := &g.devices[at]
		d.free += int16(k.Share)
		at = d.next // of a share there is no other
	}
	k.first = none
	if h := &g.hosts[k.node]; !h.unlimited && !k.Spread {
		h.cpu += k.CPU
		h.memory += k.Memory
	}
}
