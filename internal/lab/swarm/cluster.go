package swarm

import (
	"fmt"
	"math/bits"

	"sluice.dev/sluice/internal/core/errkind"
)

const (
	// MaxClasses is how many sizes of slices a cluster may have.
	MaxClasses = 8
	// MaxSlots is how many slices a node may have: they are the bits of a byte.
	MaxSlots = 8
)

// Cluster is what there is and never changes: every party knows it.
type Cluster struct {
	// Classes names the sizes of slices, the smallest first. A task that needs one fits on every larger one too.
	Classes []string
	// Layouts are the ways in which a node may be cut: the class of every slice, in ascending order.
	Layouts [][]uint8
	// Pattern is the layout of each node of a zone, repeated as often as it takes.
	Pattern []uint8
	// Zones, and nodes in each.
	Zones, PerZone int

	fits  [][MaxClasses]uint8 // by layout and class: slices that are large enough
	exact [][MaxClasses]uint8 // by layout and class: slices of just that class
}

// Mixed is the cluster of the shipped scenarios: nodes of four MIG slices in three layouts of an 80 GB board, 40 : 20 : 40.
func Mixed(zones int) Cluster {
	return Cluster{
		Classes: []string{"1g", "2g", "3g", "4g"},
		Layouts: [][]uint8{{0, 0, 1, 2}, {0, 0, 0, 3}, {0, 1, 1, 1}},
		Pattern: []uint8{0, 2, 0, 1, 2},
		Zones:   zones, PerZone: 100,
	}
}

// Uniform is a cluster of one class with slots slices on each node.
func Uniform(zones, perZone, slots int) Cluster {
	return Cluster{Classes: []string{"slice"}, Layouts: [][]uint8{make([]uint8, slots)}, Pattern: []uint8{0}, Zones: zones,
		PerZone: perZone}
}

// Prepare checks a cluster and makes its tables. An error is of kind Invalid.
func (c *Cluster) Prepare() error {
	if c.Zones < 1 || c.PerZone < 1 || len(c.Classes) < 1 || len(c.Classes) > MaxClasses || len(c.Pattern) == 0 {
		return errkind.Errorf(errkind.Invalid, "a cluster of %d zones of %d nodes with %d classes; want at least one of each, and at "+
			"most %d classes", c.Zones, c.PerZone, len(c.Classes), MaxClasses)
	}
	c.fits, c.exact = make([][MaxClasses]uint8, len(c.Layouts)), make([][MaxClasses]uint8, len(c.Layouts))
	for l, slots := range c.Layouts {
		if len(slots) < 1 || len(slots) > MaxSlots {
			return errkind.Errorf(errkind.Invalid, "layout %d has %d slices; want 1 to %d", l, len(slots), MaxSlots)
		}
		for i, class := range slots {
			if int(class) >= len(c.Classes) || i > 0 && class < slots[i-1] {
				return errkind.Errorf(errkind.Invalid, "layout %d: slice %d is of class %d; want classes below %d in ascending order", l, i,
					class, len(c.Classes))
			}
			c.exact[l][class] |= 1 << i
			for need := range class + 1 {
				c.fits[l][need] |= 1 << i
			}
		}
	}
	for i, l := range c.Pattern {
		if int(l) >= len(c.Layouts) {
			return errkind.Errorf(errkind.Invalid, "node %d of a zone has layout %d and there are %d", i, l, len(c.Layouts))
		}
	}
	return nil
}

// Nodes is how many there are. They are numbered through the zones in order.
func (c *Cluster) Nodes() int { return c.Zones * c.PerZone }

// Zone of a node.
func (c *Cluster) Zone(node int32) int32 { return node / int32(c.PerZone) }

// Layout of a node.
func (c *Cluster) Layout(node int32) uint8 {
	return c.Pattern[int(node)%c.PerZone%len(c.Pattern)]
}

// Slots is the classes of a node's slices.
func (c *Cluster) Slots(node int32) []uint8 { return c.Layouts[c.Layout(node)] }

// All is a node's slices as a set of bits.
func (c *Cluster) All(node int32) uint8 { return uint8(1<<len(c.Slots(node)) - 1) }

// Fits is which of a node's slices are large enough for a class, as a set of bits.
func (c *Cluster) Fits(node int32, class uint8) uint8 { return c.fits[c.Layout(node)][class] }

// Exact is which of a node's slices are of a class.
func (c *Cluster) Exact(node int32, class uint8) uint8 { return c.exact[c.Layout(node)][class] }

// Room is how many slices of a set of free ones are large enough for a class.
func (c *Cluster) Room(node int32, free, class uint8) int {
	return bits.OnesCount8(free & c.Fits(node, class))
}

// Best is the smallest slice of a set of free ones that is large enough, -1 if none is: classes ascend within a node.
func (c *Cluster) Best(node int32, free, class uint8) int8 {
	if free &= c.Fits(node, class); free != 0 {
		return int8(bits.TrailingZeros8(free))
	}
	return -1
}

// Capacity is how many slices of each class there are.
func (c *Cluster) Capacity() (of [MaxClasses]int64) {
	for n := range int32(c.PerZone) {
		for _, class := range c.Slots(n) {
			of[class] += int64(c.Zones)
		}
	}
	return of
}

// Place is an address: a node, a zone, a gate or the center.
type Place int32

// At is the place of a node.
func (c *Cluster) At(node int32) Place { return Place(node) }

// ZoneAt is the place of a zone's own party.
func (c *Cluster) ZoneAt(zone int32) Place { return Place(int32(c.Nodes()) + zone) }

// Center is the one place beside gates, zones and nodes.
func (c *Cluster) Center() Place { return Place(c.Nodes() + c.Zones) }

// GateAt is the place of a gate, where tasks arrive and who submitted them waits.
func (c *Cluster) GateAt(gate int32) Place { return c.Center() + 1 + Place(gate) }

// Role says what a place is.
type Role uint8

// The roles.
const (
	Node Role = iota
	Zone
	Center
	Gate
)

// Whose is the role of a place and its number among those of this role.
func (c *Cluster) Whose(p Place) (Role, int32) {
	switch nodes, zones := Place(c.Nodes()), Place(c.Zones); {
	case p < nodes:
		return Node, int32(p)
	case p < nodes+zones:
		return Zone, int32(p - nodes)
	case p == nodes+zones:
		return Center, 0
	default:
		return Gate, int32(p - nodes - zones - 1)
	}
}

// Name of a place, for people.
func (c *Cluster) Name(p Place) string {
	role, i := c.Whose(p)
	return fmt.Sprintf("%s %d", [...]string{"node", "zone", "center", "gate"}[role], i)
}
