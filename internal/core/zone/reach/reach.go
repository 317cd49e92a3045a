// Package reach says whether what is left of a job could ever run: on the slices that there are, in the longest windows that there can be,
// and with what was learned of it. Invariant: what could still run is never said to be out of reach, so one more slice puts nothing there.
package reach

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Floor is what is asked of the floor.
type Floor interface {
	Classes() []*window.Class
	Slices() []*window.Slice
	// Estimator says how long a window of a job may be.
	Estimator() *index.Estimator
}

// Planner knows which slices stand together.
type Planner interface {
	Within(level job.Level) [][]*backfill.Slice
}

// Reach says whether what is left of a job of one zone could ever run.
type Reach struct {
	floor   Floor
	planner Planner
	options bool
	// elsewhere is the memory of the largest slices that any zone has, where jobs search; 0 where they do not.
	elsewhere quantity.Amount
	// awaited are nodes that have slices and have not offered them since this boot.
	awaited map[job.NodeID]bool
	// lent are the slices that each pilot of a pool has: one of them may come at any time.
	lent []pool
}

// pool is what each of its pilots has.
type pool struct {
	name   string
	slices []protocol.Slice
}

// New judges by floor and planner. options: jobs may run in any of the ways that they declare. elsewhere is the memory of the largest
// slices that any zone has, where jobs search; 0 where they do not.
func New(floor Floor, planner Planner, options bool, elsewhere quantity.Amount) *Reach {
	return &Reach{floor: floor, planner: planner, options: options, elsewhere: elsewhere, awaited: map[job.NodeID]bool{}}
}

// Await notes a node that has slices and is away: nothing is out of reach until it has offered them, or is gone.
func (r *Reach) Await(node job.NodeID) { r.awaited[node] = true }

// Lend notes what slices pilots of a pool have, which may come when they are wanted; it replaces what was noted of the pool before.
func (r *Reach) Lend(name string, list []protocol.Slice) {
	r.lent = slices.DeleteFunc(r.lent, func(p pool) bool { return p.name == name })
	if len(list) > 0 {
		r.lent = append(r.lent, pool{name, list})
	}
}

// each calls f for every slice that a pool may lend and that a job can run on, with the job's speed there.
func (r *Reach) each(spec *job.Spec, f func(s *protocol.Slice, speed int64)) {
	for _, p := range r.lent {
		for i := range p.slices {
			if speed := spec.SpeedOn(p.slices[i].Profile, p.slices[i].Speed); speed > 0 {
				f(&p.slices[i], speed)
			}
		}
	}
}

// Settled notes that a node has offered its slices, or is gone for good.
func (r *Reach) Settled(node job.NodeID) { delete(r.awaited, node) }

// Beyond says why nothing could ever run what is left of a job; empty if something could, or a node's slices are not known yet.
func (r *Reach) Beyond(j *home.Job, of *index.Job) string {
	if len(r.awaited) > 0 {
		return ""
	}
	if why := r.tooSlow(j, of); why != "" {
		return why
	}
	return r.outgrown(j, of)
}

// outgrown: its profile was raised after a memory kill, and now the job would be interested in no window that any slice
// there is could ever offer, in none of the ways that it may run. Empty if it still would.
func (r *Reach) outgrown(j *home.Job, of *index.Job) string {
	free := job.NextFree(0, j.Spec.Total, j.Progress().Committed(), j.Progress().Claimed())
	if free.Empty() || j.Learned().MemoryScale <= trp.Unscaled || len(j.Claims()) > 0 {
		return ""
	}
	most := r.Largest(j.Spec)
	if most == 0 {
		return ""
	}
	v := j.View()
	least := needs(&v, free.From)
	if r.fits(of, &v, most) {
		return ""
	}
	if r.options {
		for i := range j.Spec.Options {
			v.Option = &j.Spec.Options[i]
			if least = min(least, needs(&v, free.From)); r.fits(of, &v, most) {
				return ""
			}
		}
	}
	if least <= most {
		return fmt.Sprintf("it outgrew every slice: %s; no slice safely runs a useful piece from %s on, the largest has %d MiB",
			killed(j), j.Spec.Called(free.From), most>>20)
	}
	where := "the largest slice has"
	if n := j.Width(); r.borrows(j.Spec) {
		where = "no zone has a slice with more than"
	} else if n > 1 {
		where = fmt.Sprintf("no %v has %d slices with more than", j.Spec.Topology, n)
	}
	return fmt.Sprintf("it outgrew every slice: %s; it needs about %d MiB, %s %d MiB", killed(j), least>>20, where, most>>20)
}

// needs is the least memory with which a job can go on from unit from, by the profile in its view. A rigid job needs it for all of its
// units.
func needs(v *atomizer.View, from int64) quantity.Amount {
	if v.Spec.Kind == job.Rigid {
		return v.Safe().LeastOver(0, v.Spec.Total, v.Scale())
	}
	return v.Safe().LeastOver(from, from+1, v.Scale())
}

// fits says whether a job whose view this is would be interested in a window that some slice could offer; the largest has most.
func (r *Reach) fits(of *index.Job, v *atomizer.View, most quantity.Amount) bool {
	free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	if needs(v, free.From) > most {
		return false
	}
	if v.Spec.Kind == job.Rigid {
		return true
	}
	for _, v.Hopeful = range []bool{false, true} {
		for _, w := range r.windows(of, v.Spec) {
			if _, no := atomizer.Fit(v, w); no.Why == atomizer.Interested {
				return true
			}
		}
	}
	return false
}

// windows are the longest window of each class of slices that a job may run on.
func (r *Reach) windows(of *index.Job, spec *job.Spec) (all []atomizer.Window) {
	end := quantity.Instant(0).Add(r.floor.Estimator().Longest(of))
	for _, c := range r.floor.Classes() {
		if c.Slices() > 0 {
			all = append(all, atomizer.Window{Capacity: c.Whole, Speed: c.SpeedOf(spec), End: end})
		}
	}
	r.each(spec, func(s *protocol.Slice, speed int64) {
		all = append(all, atomizer.Window{Capacity: s.Capacity, Speed: speed, End: end})
	})
	if most := r.elsewhere; most > 0 { // how fast it is there is not known here
		all = append(all, atomizer.Window{Capacity: trp.Vector{trp.Memory: most}, Speed: 1000, End: end})
	}
	return all
}

// killed tells the last memory kill of a job.
func killed(j *home.Job) string {
	past := j.History().Past()
	for i := len(past) - 1; i >= 0; i-- {
		if p := &past[i]; p.Outcome == job.MemoryKilled {
			r := job.Range{From: max(p.Range.From, p.Committed.To), To: p.Range.To}
			used := ""
			if peak := p.Peak[trp.Memory]; peak > 0 {
				used = fmt.Sprintf(", having used %d MiB", peak>>20)
			}
			return fmt.Sprintf("its run of %ss %s on %s was ended for its memory%s", j.Spec.UnitName(), j.Spec.Span(r), p.Slice, used)
		}
	}
	return fmt.Sprintf("after %s", job.MemoryKilled)
}

// tooSlow: by the fastest run observed, not even the least useful piece fits the longest window there can be.
func (r *Reach) tooSlow(j *home.Job, of *index.Job) string {
	if j.Spec.Kind == job.Rigid || len(j.Learned().Rates) == 0 || len(r.floor.Slices()) == 0 {
		return ""
	}
	v, fastest := j.View(), int64(0)
	if r.elsewhere > 0 {
		fastest = 1000 // as reach has it
	}
	for _, c := range r.floor.Classes() {
		if c.Slices() > 0 {
			fastest = max(fastest, c.SpeedOf(j.Spec))
		}
	}
	r.each(j.Spec, func(_ *protocol.Slice, speed int64) { fastest = max(fastest, speed) })
	if fastest == 0 {
		return ""
	}
	v.Hopeful = true
	if need, longest := atomizer.LeastWindow(&v, fastest), r.floor.Estimator().Longest(of); need > longest {
		return fmt.Sprintf("a %s takes %v at best: the least useful piece needs a window of %v, the longest is %v; a smaller grid would "+
			"help", j.Spec.UnitName(), slices.Min(j.Learned().Rates).Round(time.Microsecond), need.Round(time.Millisecond), longest)
	}
	return ""
}

// borrows says whether a job may run on slices of other zones, where there are any.
func (r *Reach) borrows(spec *job.Spec) bool {
	return spec.Topology == job.SameCluster && spec.Kind == job.Rigid && spec.Slices > 1 && r.elsewhere > 0
}

// Largest is the memory of the largest slice that a job can run on; of the smallest of them, where it needs several as close
// together as it says. How many slices of a class other zones have is not known here: a gang that may borrow of them is judged by one.
func (r *Reach) Largest(spec *job.Spec) (most quantity.Amount) {
	if spec.Slices <= 1 {
		most = r.elsewhere
		for _, c := range r.floor.Classes() {
			if c.Slices() > 0 && c.SpeedOf(spec) > 0 {
				most = max(most, c.Whole[trp.Memory])
			}
		}
		r.each(spec, func(s *protocol.Slice, _ int64) { most = max(most, s.Capacity[trp.Memory]) })
		return most
	}
	if r.borrows(spec) {
		most = r.elsewhere
	}
	for _, node := range r.planner.Within(spec.Topology) {
		left := spec.Slices
		for _, sl := range slices.Backward(node) {
			if sl.Class().SpeedOf(spec) > 0 {
				left--
			}
			if left == 0 {
				most = max(most, sl.Class().Whole[trp.Memory])
				break
			}
		}
	}
	return most
}
