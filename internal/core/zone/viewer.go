package zone

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// viewer is one look at jobs, for people: what the estimates for all jobs seen at one instant have in common is found once, so
// that a page of jobs does not look at every slice for each of them. It reads the zone and changes nothing that is decided.
type viewer struct {
	z   *Zone
	now quantity.Instant
	// openings are the free times of the slices of each class from now on, by start, each longer than those before it: no other
	// could let a piece begin earlier. nil until somebody asks.
	openings [][]protocol.Gap
	// nodes are the slices of every node, free the free time of each slice; nil until somebody asks.
	nodes [][]*backfill.Slice
	free  [][]protocol.Gap
	// places are those found for rigid jobs, by what they need; searches counts the searches.
	places   map[shape]found
	searches int
}

// shape is all that decides where a rigid job without speeds of its own could run.
type shape struct {
	width  int
	length time.Duration
	least  quantity.Amount
}

// found is an answer to where a rigid job could run.
type found struct {
	backfill.Placement
	ok bool
}

// searchedSlices is how many slices one look goes through in search of places for rigid jobs; at least fewSearches are made. The
// start of the others is estimated from the waits alone.
const searchedSlices, fewSearches = 1 << 13, 2

// viewer begins a look at jobs.
func (z *Zone) viewer(now quantity.Instant) *viewer { return &viewer{z: z, now: now} }

// opening finds the earliest instant at which the job's next piece could begin.
func (v *viewer) opening(j *home.Job) (early quantity.Instant, ok bool) {
	z := v.z
	if v.openings == nil {
		v.openings = make([][]protocol.Gap, len(z.floor.Classes()))
		for sl := range z.offeredSlices() {
			list := &v.openings[sl.floor.Class().At()]
			for _, g := range z.floor.Shown(&sl.floor, v.now) {
				if g.Start = max(g.Start, v.now); g.Start < g.End {
					*list = widen(*list, g)
				}
			}
		}
	}
	early = quantity.Never
	for i, c := range z.floor.Classes() {
		for _, g := range v.openings[i] {
			if g.Start >= early {
				break
			}
			if p, r := z.floor.Fit(&entryOf(j).floor, c, g.Start, g.End); r.Why == atomizer.Interested && !p.Range.Empty() {
				early = g.Start
			}
		}
	}
	return early, early != quantity.Never
}

// length of a gap, which may have no known end.
func length(g *protocol.Gap) time.Duration {
	if g.End == quantity.Never {
		return math.MaxInt64
	}
	return g.End.Sub(g.Start)
}

// widen adds a gap to openings, unless one that begins no later is as long, and takes out those that it is better than.
func widen(list []protocol.Gap, g protocol.Gap) []protocol.Gap {
	i := 0
	for i < len(list) && list[i].Start <= g.Start {
		if length(&list[i]) >= length(&g) {
			return list
		}
		i++
	}
	if i > 0 && list[i-1].Start == g.Start {
		i--
	}
	to := i
	for to < len(list) && length(&list[to]) <= length(&g) {
		to++
	}
	return slices.Replace(list, i, to, g)
}

// rigidPlace is where a rigid job that waits would run as things are.
func (v *viewer) rigidPlace(j *home.Job) (backfill.Placement, bool) {
	z := v.z
	if p, reserved := entryOf(j).rigid.Placement(); reserved {
		return p, true
	}
	view := j.View()
	key := shape{j.Width(), atomizer.RigidLength(j.Spec, 1000), view.Safe().LeastOver(0, j.Spec.Total, view.Scale())}
	alike := len(j.Spec.Speeds) == 0 && j.Committed() == nil && j.Claimed() == nil
	if f, known := v.places[key]; known && alike {
		return f.Placement, f.ok
	}
	if v.searches++; v.searches > max(fewSearches, searchedSlices/max(1, len(z.floor.Slices()))) {
		speed := v.fastest(j)
		return backfill.Placement{Start: v.now, Speed: speed}, speed > 0
	}
	f := v.search(j)
	if alike {
		if v.places == nil {
			v.places = map[shape]found{}
		}
		v.places[key] = f
	}
	return f.Placement, f.ok
}

// search looks for a rigid job's place on every node.
func (v *viewer) search(j *home.Job) (f found) {
	z := v.z
	if v.nodes == nil {
		v.nodes = z.planner.Nodes()
		v.free = make([][]protocol.Gap, len(z.floor.Slices()))
		for sl := range z.offeredSlices() {
			v.free[sl.floor.At()] = z.floor.Shown(&sl.floor, v.now)
		}
	}
	f.Placement, f.ok = z.planner.Search(v.now, entryOf(j).rigid, v.nodes, func(sl *backfill.Slice) []protocol.Gap { return v.free[sl.At()] })
	return f
}

// fastest is the highest speed that the job has on a usable slice, in parts per thousand; 0 if it can run on none.
func (v *viewer) fastest(j *home.Job) (speed int64) {
	for _, c := range v.z.floor.Classes() {
		if c.Usable() > 0 {
			speed = max(speed, c.SpeedOf(j.Spec))
		}
	}
	return speed
}

// usable says whether any slice is.
func (z *Zone) usable() bool {
	return slices.ContainsFunc(z.floor.Classes(), func(c *market.Class) bool { return c.Usable() > 0 })
}

// runsOn says whether the job's next piece is safe on the usable slices of a class, and how fast it is there.
func runsOn(j *home.Job, c *market.Class, from int64) (speed int64, ok bool) {
	speed = c.SpeedOf(j.Spec)
	return speed, speed > 0 && c.Usable() > 0 && j.Safe().Reach(from, c.Capacity[trp.Memory], j.Spec.Total, j.Learned().MemoryScale) > from
}
