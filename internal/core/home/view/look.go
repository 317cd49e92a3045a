package view

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// look is one look at jobs: what the estimates for all jobs seen at one instant have in common is found once, so
// that a page of jobs does not look at every slice for each of them.
type look struct {
	v   *View
	now quantity.Instant
	// openings are the free times of the slices of each class from now on, by start, each longer than those before it: no other
	// could let a piece begin earlier. nil until somebody asks.
	openings [][]protocol.Gap
	// search finds places for rigid jobs; nil until somebody asks.
	search func(j *home.Job) (Place, bool)
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
	Place
	ok bool
}

// searchedSlices is how many slices one look examines in its searches for places of rigid jobs; it makes at least fewSearches searches. For
// all further jobs it estimates the start from the waits alone.
const searchedSlices, fewSearches = 1 << 13, 2

// look begins one.
func (v *View) look(now quantity.Instant) *look { return &look{v: v, now: now} }

// opening finds the earliest instant at which the job's next piece could begin.
func (l *look) opening(j *home.Job) (early quantity.Instant, ok bool) {
	v := l.v
	if l.openings == nil {
		l.openings = make([][]protocol.Gap, len(v.floor.Classes()))
		for _, sl := range v.floor.Slices() {
			list := &l.openings[sl.Class().At()]
			for _, g := range sl.Shown(l.now) {
				if g.Start = max(g.Start, l.now); g.Start < g.End {
					*list = widen(*list, g)
				}
			}
		}
	}
	early = quantity.Never
	for i, c := range v.floor.Classes() {
		for _, g := range l.openings[i] {
			if g.Start >= early {
				break
			}
			if p, r := v.floor.Fit(j, c, g.Start, g.End); r.Why == atomizer.Interested && !p.Range.Empty() {
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
func (l *look) rigidPlace(j *home.Job) (Place, bool) {
	v := l.v
	if p, reserved := v.planner.Planned(j); reserved {
		return p, true
	}
	view := j.View()
	key := shape{j.Width(), atomizer.RigidLength(j.Spec, 1000), view.Safe().LeastOver(0, j.Spec.Total, view.Scale())}
	alike := len(j.Spec.Speeds) == 0 && j.Progress().Committed() == nil && j.Progress().Claimed() == nil
	if f, known := l.places[key]; known && alike {
		return f.Place, f.ok
	}
	if l.searches++; l.searches > max(fewSearches, searchedSlices/max(1, len(v.floor.Slices()))) {
		speed := l.fastest(j)
		return Place{Start: l.now, Speed: speed}, speed > 0
	}
	if l.search == nil {
		l.search = v.planner.Search(l.now)
	}
	f := found{}
	f.Place, f.ok = l.search(j)
	if alike {
		if l.places == nil {
			l.places = map[shape]found{}
		}
		l.places[key] = f
	}
	return f.Place, f.ok
}

// fastest is the highest speed that the job has on a usable slice, in parts per thousand; 0 if it can run on none.
func (l *look) fastest(j *home.Job) (speed int64) {
	for _, c := range l.v.floor.Classes() {
		if c.Usable() > 0 {
			speed = max(speed, c.SpeedOf(j.Spec))
		}
	}
	return speed
}
