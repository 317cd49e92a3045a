package backfill

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
	"sluice.dev/sluice/internal/core/trp"
)

func bySize(a, b opening) int {
	return cmp.Or(cmp.Compare(a.largest, b.largest), cmp.Compare(a.node.at, b.node.at), cmp.Compare(a.start, b.start))
}

func byStart(a, b opening) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.largest, b.largest), cmp.Compare(a.node.at, b.node.at))
}

// smallest and soonest rank them so. Nodes may get other numbers, which leave their order: those are in no key.
//
//nolint:gochecknoglobals // read-only by use; Go has no constant structs
var (
	smallest = ranking.Order[opening]{Compare: bySize, Key: func(o opening) ranking.Key { return ranking.Key{int64(o.largest)} }}
	soonest  = ranking.Order[opening]{Compare: byStart,
		Key: func(o opening) ranking.Key { return ranking.Key{int64(o.start), int64(o.largest)} }}
)

// kind is the kind of an opening: a number of slices of one node, of these classes.
type kind struct {
	// at is its index among the kinds.
	at, width int
	classes   bitset.Set
	// begunOpenings had begun by advancedTo; they are ranked by size, each with its negative end as what it needs. futureOpenings are the
	// others, ranked by start, with their negative lengths.
	advancedTo                    quantity.Instant
	begunOpenings, futureOpenings ranking.List[opening]
}

// openings indexes nodes by how soon a job could be placed there, so that a search visits few of them. It is derived from the survey on
// demand, for the kinds of jobs that were asked for.
type openings struct {
	kinds []*kind
	// single are the kinds of one slice by its class, nil where nobody has asked; gangs those of several.
	single, gangs []*kind
	// stale are the nodes whose openings must be recomputed.
	stale dirty.Set[*node]
	// Scratch buffers, reused to keep a pass free of allocation. Meaningless between calls.
	ways  []way
	gaps  []sized
	ends  []quantity.Instant
	sizes []quantity.Amount
	fresh []opening
}

// mostUnlisted bounds the nodes that each search must find anew, unless more than that change in one plan.
const mostUnlisted = 8

// mostGangs bounds the kinds of several slices: each costs something whenever a node's time changes. Beyond the bound a search looks at all
// nodes.
const mostGangs = 64

// sized is a gap of a slice of this class and size.
type sized struct {
	protocol.Gap
	class int
	size  quantity.Amount
}

// way is one of the ways in which a job could be placed: in openings of this kind, at this speed.
type way struct {
	kind  *kind
	speed int64
}

// invalidate notes that a node's free time has changed.
func (x *openings) invalidate(n *node) {
	if len(x.kinds) > 0 {
		x.stale.Add(&n.openingsStale, n)
	}
}

// refreshOverflow recomputes the openings of nodes that changed a while ago. A node mostly changes several times in a row, so the latest
// few are left to the next search; without a bound that search would pay for all of them.
func (x *openings) refreshOverflow() {
	for range min(2, x.stale.Len()-mostUnlisted) {
		x.stale.Oldest(x.refresh)
	}
}

// refresh recomputes a node's openings.
func (x *openings) refresh(n *node) {
	x.findGaps(n)
	for _, k := range x.kinds {
		x.list(k, n)
	}
}

// findGaps lists the gaps of a node's slices by start.
func (x *openings) findGaps(n *node) {
	x.gaps = x.gaps[:0]
	for _, s := range n.slices {
		if c := s.surveyedClass; c != nil {
			for _, g := range s.surveyed {
				x.gaps = append(x.gaps, sized{g, c.At(), c.Capacity[trp.Memory]})
			}
		}
	}
	slices.SortFunc(x.gaps, func(a, b sized) int { return cmp.Compare(a.Start, b.Start) })
}

// list enters a node's openings of a kind, in place of those that it had.
func (x *openings) list(k *kind, n *node) {
	for len(n.openings) <= k.at {
		n.openings = append(n.openings, nil)
	}
	x.find(k, n)
	if old := n.openings[k.at]; !slices.Equal(old, x.fresh) {
		for _, o := range old {
			k.remove(o)
		}
		for _, o := range x.fresh {
			k.insert(o)
		}
		n.openings[k.at] = append(old[:0], x.fresh...)
	}
}

// find finds a node's openings of a kind. From the start of each gap, width slices are free until the width-th latest end of the gaps so
// far: an opening, unless the one before has the same end and size.
func (x *openings) find(k *kind, n *node) {
	x.fresh, x.ends, x.sizes = x.fresh[:0], x.ends[:0], x.sizes[:0]
	for i := range x.gaps {
		g := &x.gaps[i]
		if !k.classes.Has(g.class) {
			continue
		}
		x.ends = keepFirst(x.ends, k.width, g.End, func(a, b quantity.Instant) int { return cmp.Compare(b, a) })
		x.sizes = keepFirst(x.sizes, k.width, g.size, cmp.Compare)
		if len(x.ends) < k.width || x.ends[k.width-1] <= g.Start {
			continue
		}
		o := opening{n, g.Start, x.ends[k.width-1], x.sizes[k.width-1]}
		switch last := len(x.fresh) - 1; {
		case last >= 0 && x.fresh[last].end == o.end && x.fresh[last].largest == o.largest: // neither ever gets worse
		case last >= 0 && x.fresh[last].start == o.start:
			x.fresh[last] = o
		default:
			x.fresh = append(x.fresh, o)
		}
	}
}

// keepFirst inserts v into an ordered list that keeps its first n.
func keepFirst[T any](list []T, n int, v T, before func(a, b T) int) []T {
	i, _ := slices.BinarySearchFunc(list, v, before)
	list = slices.Insert(list, i, v)
	return list[:min(n, len(list))]
}

func (k *kind) insert(o opening) {
	if o.start <= k.advancedTo {
		k.begunOpenings.Insert(smallest, -time.Duration(o.end), o)
	} else {
		k.futureOpenings.Insert(soonest, -o.end.Sub(o.start), o)
	}
}

func (k *kind) remove(o opening) {
	if o.start <= k.advancedTo {
		k.begunOpenings.Remove(smallest, o)
	} else {
		k.futureOpenings.Remove(soonest, o)
	}
}

// advance moves the openings that have begun by now to begunOpenings.
func (k *kind) advance(now quantity.Instant) {
	for {
		o, ok := k.futureOpenings.First(math.MaxInt64)
		if !ok || o.start > now {
			k.advancedTo = max(k.advancedTo, now)
			return
		}
		k.futureOpenings.Remove(soonest, o)
		k.begunOpenings.Insert(smallest, -time.Duration(o.end), o)
	}
}
