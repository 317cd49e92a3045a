package place

import (
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/lab/planner"
)

// nobody is no task.
const nobody planner.ID = -1

// shape is tasks that are alike to a placer: what is found for one is found for all.
type shape struct {
	key key
	// known: the key is in the table; a shape that is not serves again under another key.
	known bool
	// views of the nodes: one, or for a task that spreads one for each class of devices, for all its devices are of one.
	views []view
	// pieces that are placed one after the other: 1, or one for each device of a task that spreads.
	pieces int32
	// first and last of the waiting tasks, in the order they came.
	first, last planner.ID
	// queued: it is among those to try. blocked: a try failed, and nothing has left since.
	queued, blocked bool
}

// view is what every node is worth to one piece.
type view struct {
	piece  planner.Task
	column column
	// seen is the number of the last change of a node that the column knows.
	seen uint64
}

// key is what makes tasks alike.
type key struct {
	devices, share int32
	spread         bool
	classes        uint32
	cpu, memory    int64
}

func keyOf(t *planner.Task) key {
	k := key{devices: t.Devices, share: t.Share, spread: t.Spread, classes: t.Classes, cpu: t.CPU, memory: t.Memory}
	if t.Spread {
		k.cpu, k.memory = 0, 0
	}
	if t.Devices == 0 {
		k.share, k.spread, k.classes = planner.Whole, false, 0
	}
	return k
}

// cells bounds the scores that are kept, over all shapes, before unused shapes are forgotten.
const cells = 16 << 20

// table is the shapes of all tasks that were met, and what every node is worth to each. Invariant: a column is right for every node that
// has not changed since its view was last asked.
type table struct {
	rater
	// empty is the cluster with nothing on it.
	empty *State
	// rankOf is the reverse of order; bySize is the classes, the smallest devices first.
	rankOf []int32
	bySize []uint8

	byKey      map[key]int32
	shapes     []*shape
	freeShapes []int32
	shapeLimit int

	// changes counts the changes of nodes. log has the rank that the last ones were of, changed the last one of each rank.
	changes uint64
	log     []int32
	changed []uint64
}

// newTable knows no shape. The lowest rank is the first among equals; nil for the order of the nodes.
func newTable(c planner.Cluster, ranks []int32) table {
	n := len(c.Nodes)
	t := table{
		rater: rater{state: NewState(c), order: make([]int32, n)}, empty: NewState(c), rankOf: make([]int32, n),
		byKey: map[key]int32{}, shapeLimit: max(64, cells/n),
		log: make([]int32, 1<<bits.Len(uint(n))), changed: make([]uint64, n),
	}
	for node := range t.rankOf {
		t.rankOf[node] = int32(node)
		if ranks != nil {
			t.rankOf[node] = ranks[node]
		}
		t.order[t.rankOf[node]] = int32(node)
	}
	for class := range c.Classes {
		t.bySize = append(t.bySize, uint8(class))
	}
	slices.SortFunc(t.bySize, func(a, b uint8) int { return compareClasses(c.Classes, a, b) })
	return t
}

// shapeOf finds the shape of a task, or makes it.
func (x *table) shapeOf(t *planner.Task) *shape {
	k := keyOf(t)
	if at, ok := x.byKey[k]; ok {
		return x.shapes[at]
	}
	if len(x.byKey) >= x.shapeLimit {
		x.forget()
	}
	var at int32
	if n := len(x.freeShapes); n > 0 {
		at, x.freeShapes = x.freeShapes[n-1], x.freeShapes[:n-1]
	} else {
		at = int32(len(x.shapes))
		x.shapes = append(x.shapes, &shape{})
	}
	s := x.shapes[at]
	*s = shape{key: k, known: true, views: s.views[:0], pieces: 1, first: nobody, last: nobody}
	piece := planner.Task{Devices: k.devices, Share: k.share, Classes: k.classes, CPU: k.cpu, Memory: k.memory}
	if !k.spread {
		x.look(s, piece)
	} else {
		s.pieces, piece.Devices = k.devices, 1
		for _, class := range x.bySize {
			if piece.Classes = 1 << class; k.classes&piece.Classes != 0 {
				x.look(s, piece)
			}
		}
	}
	x.byKey[k] = at
	return s
}

// look adds a view for a piece, unless the empty cluster has no room for all pieces.
func (x *table) look(s *shape, piece planner.Task) {
	if !x.possible(&piece, s.pieces) {
		return
	}
	// The slice may hold a column from an earlier use of the shape: its memory serves again.
	if len(s.views) < cap(s.views) {
		s.views = s.views[:len(s.views)+1]
	} else {
		s.views = append(s.views, view{})
	}
	v := &s.views[len(s.views)-1]
	v.piece, v.seen = piece, x.changes
	v.column.reset(len(x.order))
	for rank := range x.order {
		v.column.set(rank, x.rate(&v.piece, rank).value)
	}
}

// forget drops the shapes that nothing waiting has. If that does not make room enough, the limit grows, so that the sweep
// stays rare.
func (x *table) forget() {
	for at, s := range x.shapes {
		if s.known && s.first == nobody && !s.queued && !s.blocked {
			s.known = false
			delete(x.byKey, s.key)
			x.freeShapes = append(x.freeShapes, int32(at))
		}
	}
	if len(x.byKey) > x.shapeLimit/2 {
		x.shapeLimit *= 2
	}
}

// possible reports whether the empty cluster has room for these pieces, each on any node.
func (x *table) possible(t *planner.Task, pieces int32) bool {
	room := int64(0)
	for i := range x.empty.Nodes {
		n := &x.empty.Nodes[i]
		if !n.Host(t) {
			continue
		}
		if t.Devices == 0 {
			return true
		}
		for j := range n.Pools {
			if q := &n.Pools[j]; t.Classes>>q.Class&1 != 0 && int32(len(q.Devices)) >= t.Devices {
				room += int64(len(q.Devices)) / int64(t.Devices)
			}
		}
	}
	return room >= int64(pieces)
}

// refresh brings a view up to date: only nodes that changed since it was last asked are rated again.
func (x *table) refresh(v *view) {
	if x.changes-v.seen >= uint64(len(x.log)) {
		for rank, at := range x.changed {
			if at > v.seen {
				v.column.set(rank, x.rate(&v.piece, rank).value)
			}
		}
	} else {
		for at := v.seen + 1; at <= x.changes; at++ {
			// A node that changed again later comes up again later.
			if rank := x.log[at&uint64(len(x.log)-1)]; x.changed[rank] == at {
				v.column.set(int(rank), x.rate(&v.piece, int(rank)).value)
			}
		}
	}
	v.seen = x.changes
}

// touch notes that a node changed.
func (x *table) touch(node int32) {
	rank := x.rankOf[node]
	x.changes++
	x.log[x.changes&uint64(len(x.log)-1)] = rank
	x.changed[rank] = x.changes
}

// tiers gives classes of equally small devices the same tier, and smaller ones a higher.
func (x *table) tiers(classes []planner.Class) {
	tier := int16(0)
	for i := len(x.bySize) - 1; i >= 0; i-- {
		if i < len(x.bySize)-1 {
			a, b := classes[x.bySize[i]], classes[x.bySize[i+1]]
			if a.Memory != b.Memory || a.Weight != b.Weight {
				tier += Best + 1
			}
		}
		x.tier[x.bySize[i]] = tier
	}
}
