package queue

import (
	"math"
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// Any is a limit that every waiting task keeps.
const Any = math.MaxInt64 - 1

// hole is the key of a place that nobody holds.
const hole = math.MaxInt64

// Index finds the first task that fits without looking at those that do not: waiting tasks are grouped by class and number of devices, and
// each group has a tournament tree over its places that finds the first whose run is short enough. A task is in a group of every class that
// it may use. A question costs a step per group that is small enough, and the logarithm of its length.
type Index struct {
	classes [planner.MaxClasses][]*group // by size
}

// Put adds a task to the groups of all its classes.
func (x *Index) Put(e *book.Entry) {
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		x.group(c, e.Task.Devices).put(Place{e.Task.ID, e.Seq}, e.Run(c))
	}
}

// Remove takes a task out of them.
func (x *Index) Remove(e *book.Entry) {
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		x.group(bits.TrailingZeros32(m), e.Task.Devices).remove(e.Seq)
	}
}

// First is the first task in the queue of at most free devices that may use a class and wants at most spare devices or
// runs for at most limit there; false if there is none.
func (x *Index) First(class int, free, spare int32, limit int64) (Place, bool) {
	best := Place{Seq: math.MaxInt64}
	for _, g := range x.classes[class] {
		if g.size > free {
			break
		}
		if g.live == 0 || g.places[g.head].Seq > best.Seq {
			continue
		}
		i := g.head
		if g.size > spare {
			if i = g.first(limit); i < 0 {
				continue
			}
		}
		if g.places[i].Seq < best.Seq {
			best = g.places[i]
		}
	}
	return best, best.Seq != math.MaxInt64
}

// group finds or makes the group of a size.
func (x *Index) group(class int, size int32) *group {
	gs := x.classes[class]
	i, found := slices.BinarySearchFunc(gs, size, func(g *group, size int32) int { return int(g.size - size) })
	if !found {
		g := &group{size: size}
		g.grow(16)
		x.classes[class] = slices.Insert(gs, i, g)
		return g
	}
	return gs[i]
}

// group is the waiting tasks of one size on one class, in order. Invariants: places are sorted by number; tree[len(places
// allotted)+i] is the run of place i or hole, every inner knot the lesser of its two; places[head] is held unless live is 0.
type group struct {
	size   int32
	places []Place // its capacity is the width of the tree
	head   int
	live   int
	tree   []int64
}

// grow widens the tree, to a power of two, and puts the present ones at its beginning.
func (g *group) grow(width int) {
	old, tree, keys := g.places, g.tree, len(g.tree)/2
	if width != cap(g.places) {
		g.places, g.tree = make([]Place, 0, width), make([]int64, 2*width)
	} else {
		g.places = g.places[:0]
	}
	for i := g.head; i < len(old); i++ { // never ahead of what it reads, where both are the same
		if key := tree[keys+i]; key != hole {
			g.tree[width+len(g.places)] = key
			g.places = append(g.places, old[i])
		}
	}
	g.head = 0
	for i := width + len(g.places); i < 2*width; i++ {
		g.tree[i] = hole
	}
	for i := width - 1; i > 0; i-- {
		g.tree[i] = min(g.tree[2*i], g.tree[2*i+1])
	}
}

func (g *group) put(p Place, key int64) {
	width := cap(g.places)
	if len(g.places) == width {
		if g.live > width/2 {
			width *= 2
		}
		g.grow(width)
	}
	i := width + len(g.places)
	g.places = append(g.places, p)
	g.live++
	for ; i > 0 && g.tree[i] > key; i /= 2 {
		g.tree[i] = key
	}
}

func (g *group) remove(seq int64) {
	width := cap(g.places)
	k := width + find(g.places, g.head, seq)
	g.tree[k] = hole
	g.live--
	for k /= 2; k > 0; k /= 2 {
		m := min(g.tree[2*k], g.tree[2*k+1])
		if g.tree[k] == m {
			break
		}
		g.tree[k] = m
	}
	if g.live == 0 {
		g.places, g.head = g.places[:0], 0
		return
	}
	for g.tree[width+g.head] == hole {
		g.head++
	}
}

// first is the first place whose run is at most limit, or -1.
func (g *group) first(limit int64) int {
	if g.tree[1] > limit {
		return -1
	}
	width, k := cap(g.places), 1
	for k < width {
		k *= 2
		if g.tree[k] > limit {
			k++
		}
	}
	return k - width
}
