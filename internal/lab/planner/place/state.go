// Package place is what the placement planners share: which devices of a cluster are free, which waiting tasks are alike,
// and a search for the best node that looks again only at nodes that changed. A kind adds how good a node is for a task
// (Scorer) and nothing else. It knows no time: these planners start whatever fits, now.
package place

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/lab/planner"
)

// State is what is free in a cluster.
type State struct {
	Nodes   []Node
	devices []device
}

// device is where a device lies and what is left of it, in thousandths.
type device struct {
	node, pool, index int32
	left              int32
}

// Node is one machine with what is left of it.
type Node struct {
	// Index of the node in its cluster.
	Index int32
	// Bounded says that CPU (thousandths of a core) and Memory (MiB) limit what may run; both are what is left.
	Bounded     bool
	CPU, Memory int64
	// Pools of its devices, one for each class: the smallest devices first (least memory, then least weight, then class).
	Pools []Pool
	// Tallies counts the tasks on the node by their size. Entries may be zero.
	Tallies []Tally
	// Version grows with every change.
	Version uint64
}

// Tally is how many tasks of one size hold devices of a node.
type Tally struct{ Size, Count int32 }

// Pool is the devices of one class on one node.
type Pool struct {
	Class  uint8
	Weight int64
	// Devices of the pool, the lowest number first.
	Devices []planner.Device
	// Left is the sum of their remainders, in thousandths of a device.
	Left int64
	// Levels merges devices of which equally much is left, the least first; devices with nothing left are in none.
	Levels []Level
}

// Level is devices of a pool with equal remainders.
type Level struct {
	// Left of each in thousandths, 1 to planner.Whole.
	Left int32
	// Count of such devices, at least 1.
	Count int32
	// First is the lowest of them, an index of Pool.Devices.
	First int32
}

// Size is the class of a task with devices in tallies: 0 for a share of one, else how many whole devices it takes.
func Size(t *planner.Task) int32 {
	if t.Share < planner.Whole {
		return 0
	}
	return t.Devices
}

// NewState is a cluster with nothing on it. The cluster must be valid (see Check).
func NewState(c planner.Cluster) *State {
	s := &State{Nodes: make([]Node, len(c.Nodes))}
	for i, from := range c.Nodes {
		n := &s.Nodes[i]
		*n = Node{Index: int32(i), Bounded: from.CPU != 0 || from.Memory != 0, CPU: from.CPU, Memory: from.Memory}
		for _, class := range from.Devices {
			if n.pool(class) == nil {
				n.Pools = append(n.Pools, Pool{Class: class, Weight: c.Classes[class].Weight})
			}
		}
		slices.SortFunc(n.Pools, func(a, b Pool) int { return compareClasses(c.Classes, a.Class, b.Class) })
		for _, class := range from.Devices {
			p := n.pool(class)
			p.Devices = append(p.Devices, planner.Device(len(s.devices)))
			at := slices.IndexFunc(n.Pools, func(p Pool) bool { return p.Class == class })
			s.devices = append(s.devices, device{int32(i), int32(at), int32(len(p.Devices) - 1), planner.Whole})
		}
		for j := range n.Pools {
			p := &n.Pools[j]
			p.Left = int64(len(p.Devices)) * planner.Whole
			p.Levels = append(make([]Level, 0, min(len(p.Devices), 16)), Level{planner.Whole, int32(len(p.Devices)), 0})
		}
	}
	return s
}

// compareClasses puts smaller devices first: less memory, then less weight, then the lower number.
func compareClasses(classes []planner.Class, a, b uint8) int {
	x, y := classes[a], classes[b]
	return cmp.Or(cmp.Compare(x.Memory, y.Memory), cmp.Compare(x.Weight, y.Weight), cmp.Compare(a, b))
}

func (n *Node) pool(class uint8) *Pool {
	for i := range n.Pools {
		if n.Pools[i].Class == class {
			return &n.Pools[i]
		}
	}
	return nil
}

// Host says whether the node's CPU and memory suffice for t.
func (n *Node) Host(t *planner.Task) bool {
	return !n.Bounded || n.CPU >= t.CPU && n.Memory >= t.Memory
}

// Value is what is idle on the node's devices in thousandths of thousandths of a whole GPU: the sum of Left x Weight.
func (n *Node) Value() int64 {
	sum := int64(0)
	for i := range n.Pools {
		sum += n.Pools[i].Left * n.Pools[i].Weight
	}
	return sum
}

// Room says whether count devices have at least share left.
func (p *Pool) Room(share, count int32) bool {
	for i := len(p.Levels) - 1; i >= 0 && p.Levels[i].Left >= share; i-- {
		if count -= p.Levels[i].Count; count <= 0 {
			return true
		}
	}
	return count <= 0
}

// Least is the index of the level with the least left that share fits in; len(p.Levels) if there is none.
func (p *Pool) Least(share int32) int {
	i := 0
	for i < len(p.Levels) && p.Levels[i].Left < share {
		i++
	}
	return i
}

// Idle is how many devices are wholly idle.
func (p *Pool) Idle() int32 {
	if k := len(p.Levels); k > 0 && p.Levels[k-1].Left == planner.Whole {
		return p.Levels[k-1].Count
	}
	return 0
}

// Node of a device.
func (s *State) Node(d planner.Device) int32 { return s.devices[d].node }

// Left of a device in thousandths.
func (s *State) Left(d planner.Device) int32 { return s.devices[d].left }

// Take puts t on a node: its CPU and memory, and its share of each of the devices, which lie there.
func (s *State) Take(node int32, t *planner.Task, devices []planner.Device) {
	n := &s.Nodes[node]
	if !n.Host(t) {
		invariant.Check(false, "node %d has too little CPU or memory left for a task", node)
	}
	s.change(n, t, devices, -1)
}

// Give takes t away from a node: the reverse of Take.
func (s *State) Give(node int32, t *planner.Task, devices []planner.Device) {
	s.change(&s.Nodes[node], t, devices, 1)
}

func (s *State) change(n *Node, t *planner.Task, devices []planner.Device, sign int32) {
	n.Version++
	if n.Bounded {
		n.CPU += int64(sign) * t.CPU
		n.Memory += int64(sign) * t.Memory
	}
	for _, d := range devices {
		at := &s.devices[d]
		if at.node != n.Index {
			invariant.Check(false, "device %d is not on node %d", d, n.Index)
		}
		s.move(&n.Pools[at.pool], at, at.left+sign*t.Share)
	}
	if len(devices) > 0 {
		n.tally(Size(t), -sign)
	}
}

func (n *Node) tally(size, by int32) {
	for i := range n.Tallies {
		if n.Tallies[i].Size == size {
			n.Tallies[i].Count += by
			return
		}
	}
	n.Tallies = append(n.Tallies, Tally{size, by})
}

// move changes what is left of a device and keeps its pool's levels.
func (s *State) move(p *Pool, at *device, left int32) {
	if left < 0 || left > planner.Whole {
		invariant.Check(false, "a device would have %d thousandths left", left)
	}
	if i := p.Least(at.left); at.left > 0 {
		l := &p.Levels[i]
		if l.Count--; l.Count == 0 {
			p.Levels = slices.Delete(p.Levels, i, i+1)
		} else if l.First == at.index {
			next := at.index + 1
			for s.devices[p.Devices[next]].left != at.left {
				next++
			}
			l.First = next
		}
	}
	p.Left += int64(left - at.left)
	at.left = left
	if left == 0 {
		return
	}
	i := p.Least(left)
	if i == len(p.Levels) || p.Levels[i].Left != left {
		p.Levels = slices.Insert(p.Levels, i, Level{Left: left, First: at.index})
	}
	l := &p.Levels[i]
	l.Count++
	l.First = min(l.First, at.index)
}

// Pick appends devices of p for t, which has some and fits: one of level (a share), or the lowest idle ones.
func (s *State) Pick(p *Pool, t *planner.Task, level int, out []planner.Device) []planner.Device {
	if Size(t) == 0 {
		return append(out, p.Devices[p.Levels[level].First])
	}
	at := p.Levels[len(p.Levels)-1].First
	for left := t.Devices; left > 0; at++ {
		if s.Left(p.Devices[at]) == planner.Whole {
			out = append(out, p.Devices[at])
			left--
		}
	}
	return out
}
