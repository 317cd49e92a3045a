package fgd

import (
	"slices"

	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// Fragments computes the fragmentation F of nodes. Everything is an integer: F is counted in thousandths of thousandths of
// a whole GPU (a device's share times its class's weight) times the tasks in the typical list.
type Fragments struct {
	// Total of the counts of the typical tasks.
	Total int64
	// groups by class of devices that they may use.
	groups [planner.MaxClasses][]group
	// after is scratch space: the levels of a pool after a placement.
	after []place.Level
}

// group is typical tasks that ask the same of devices, and differ in processors.
type group struct {
	share, devices int32
	// steps by processors asked, the least first; Count of each includes those before.
	steps []step
}

type step struct{ cpu, count int64 }

// NewFragments for typical tasks.
func NewFragments(typical []planner.Typical) *Fragments {
	f := &Fragments{}
	for _, kind := range typical {
		f.Total += kind.Count
		t := &kind.Task
		if t.Devices == 0 {
			continue
		}
		cpu, devices := t.CPU, t.Devices
		if t.Spread {
			cpu, devices = 0, 1
		}
		for class := range f.groups {
			if t.Classes>>class&1 != 0 {
				f.groups[class] = insert(f.groups[class], t.Share, devices, step{cpu, kind.Count})
			}
		}
	}
	for _, groups := range f.groups {
		for i := range groups {
			groups[i].accumulate()
		}
	}
	return f
}

func insert(groups []group, share, devices int32, s step) []group {
	i := slices.IndexFunc(groups, func(g group) bool { return g.share == share && g.devices == devices })
	if i < 0 {
		i = len(groups)
		groups = append(groups, group{share: share, devices: devices})
	}
	groups[i].steps = append(groups[i].steps, s)
	return groups
}

func (g *group) accumulate() {
	slices.SortFunc(g.steps, func(a, b step) int { return int(a.cpu - b.cpu) })
	for i := 1; i < len(g.steps); i++ {
		g.steps[i].count += g.steps[i-1].count
	}
}

// able is how many typical tasks of the group have their processors on the node.
func (g *group) able(n *place.Node, cpu int64) int64 {
	if !n.Bounded {
		return g.steps[len(g.steps)-1].count
	}
	count := int64(0)
	for i := range g.steps {
		if g.steps[i].cpu > cpu {
			break
		}
		count = g.steps[i].count
	}
	return count
}

// Of is the fragmentation of a node as it is: idle weight that a typical task can not use, summed over typical tasks. A task
// uses what is left of the devices that have room for its share, if there are as many as it asks and processors for it.
// Everything else is a fragment for it, and all is for a task without devices. Host memory does not count.
func (f *Fragments) Of(n *place.Node) int64 { return f.Total*n.Value() - f.usable(n) }

// usable is the weight that typical tasks can use on n as it is.
func (f *Fragments) usable(n *place.Node) int64 {
	sum := int64(0)
	for i := range n.Pools {
		sum += f.ofPool(n, n.CPU, &n.Pools[i], n.Pools[i].Levels)
	}
	return sum
}

// ofPool is what typical tasks can use of a pool with these levels, with so much left of the processors.
func (f *Fragments) ofPool(n *place.Node, cpu int64, p *place.Pool, levels []place.Level) int64 {
	sum := int64(0)
	groups := f.groups[p.Class]
	for i := range groups {
		g := &groups[i]
		count, left := int32(0), int64(0)
		for _, l := range levels {
			if l.Left >= g.share {
				count += l.Count
				left += int64(l.Left) * int64(l.Count)
			}
		}
		if count >= g.devices {
			sum += left * g.able(n, cpu)
		}
	}
	return sum * p.Weight
}
