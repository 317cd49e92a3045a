package zone

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// outgrown: its profile was raised after a memory kill, and now the job would be interested in no window that any slice
// there is could ever offer, in none of the ways that it may run. Empty if it still would.
func (z *Zone) outgrown(j *home.Job) string {
	free := job.NextFree(0, j.Spec.Total, j.Committed(), j.Claimed())
	if free.Empty() || j.Learned().MemoryScale <= trp.Unscaled || len(j.Claims()) > 0 {
		return ""
	}
	most := z.largest(j.Spec)
	if most == 0 {
		return ""
	}
	v := j.View()
	least := needs(&v, free.From)
	if z.fits(j, &v, most) {
		return ""
	}
	if z.cfg.Market != nil {
		for i := range j.Spec.Options {
			v.Option = &j.Spec.Options[i]
			if least = min(least, needs(&v, free.From)); z.fits(j, &v, most) {
				return ""
			}
		}
	}
	if least <= most {
		return fmt.Sprintf("it outgrew every slice: %s; no slice safely runs a useful piece from %s %d on, the largest has %d MiB", killed(j), j.Spec.UnitName(), free.From, most>>20)
	}
	where := "the largest slice has"
	if n := j.Width(); z.borrowsSlices(j.Spec) {
		where = "no zone has a slice with more than"
	} else if n > 1 {
		where = fmt.Sprintf("no %v has %d slices with more than", j.Spec.Topology, n)
	}
	return fmt.Sprintf("it outgrew every slice: %s; it needs about %d MiB, %s %d MiB", killed(j), least>>20, where, most>>20)
}

// needs is the least memory that a job goes on with from a unit, in the way that a view says.
func needs(v *atomizer.View, from int64) quantity.Amount {
	if v.Spec.Kind == job.Rigid {
		return v.Safe().LeastOver(0, v.Spec.Total, v.Scale())
	}
	return v.Safe().LeastOver(from, from+1, v.Scale())
}

// fits says whether a job whose view this is would be interested in a window that some slice could offer; the largest has most.
func (z *Zone) fits(j *home.Job, v *atomizer.View, most quantity.Amount) bool {
	free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	if needs(v, free.From) > most {
		return false
	}
	if v.Spec.Kind == job.Rigid {
		return true
	}
	for _, v.Hopeful = range []bool{false, true} {
		for _, w := range z.reach(j) {
			if _, r := atomizer.Fit(v, w); r.Why == atomizer.Interested {
				return true
			}
		}
	}
	return false
}

// reach is the longest window of each class of slices that a job may run on.
func (z *Zone) reach(j *home.Job) (all []atomizer.Window) {
	end := quantity.Instant(0).Add(z.floor.Longest(&entryOf(j).floor))
	for _, c := range z.floor.Classes() {
		if c.Slices() > 0 {
			all = append(all, atomizer.Window{Capacity: c.Whole, Speed: c.SpeedOf(j.Spec), End: end})
		}
	}
	if most := z.elsewhere(); most > 0 { // how fast it is there is not known here
		all = append(all, atomizer.Window{Capacity: trp.Vector{trp.Memory: most}, Speed: 1000, End: end})
	}
	return all
}

// elsewhere is the memory of the largest slices that any zone has, where jobs search; 0 where they do not.
func (z *Zone) elsewhere() quantity.Amount {
	if z.cfg.Search == nil {
		return 0
	}
	return slices.Max(z.cfg.Search.Flow.Classes)
}

// killed tells the last memory kill of a job.
func killed(j *home.Job) string {
	past := j.Past()
	for i := len(past) - 1; i >= 0; i-- {
		if p := &past[i]; p.Outcome == job.MemoryKilled {
			r := job.Range{From: max(p.Range.From, p.Committed.To), To: p.Range.To}
			used := ""
			if peak := p.Peak[trp.Memory]; peak > 0 {
				used = fmt.Sprintf(", having used %d MiB", peak>>20)
			}
			return fmt.Sprintf("its run of %ss %v on %s was ended for its memory%s", j.Spec.UnitName(), r, p.Slice, used)
		}
	}
	return fmt.Sprintf("after %s", job.MemoryKilled)
}

// tooSlow: by the fastest run observed, not even the least useful piece fits the longest window there can be.
func (z *Zone) tooSlow(j *home.Job) string {
	if j.Spec.Kind == job.Rigid || len(j.Learned().Rates) == 0 || len(z.floor.Slices()) == 0 {
		return ""
	}
	v, fastest := j.View(), int64(0)
	if z.elsewhere() > 0 {
		fastest = 1000 // as reach has it
	}
	for _, c := range z.floor.Classes() {
		if c.Slices() > 0 {
			fastest = max(fastest, c.SpeedOf(j.Spec))
		}
	}
	if fastest == 0 {
		return ""
	}
	v.Hopeful = true
	if need, longest := atomizer.LeastWindow(&v, fastest), z.floor.Longest(&entryOf(j).floor); need > longest {
		return fmt.Sprintf("a %s takes %v at best: the least useful piece needs a window of %v, the longest is %v; a smaller grid would help",
			j.Spec.UnitName(), slices.Min(j.Learned().Rates).Round(time.Microsecond), need.Round(time.Millisecond), longest)
	}
	return ""
}

// borrowsSlices says whether a job may run on slices of other zones, where there are any.
func (z *Zone) borrowsSlices(spec *job.Spec) bool { return spans(spec) && z.elsewhere() > 0 }

// largest is the memory of the largest slice that a job can run on; of the smallest of them, where it needs several as close
// together as it says. How many slices of a class other zones have is not known here: a gang that may borrow of them is judged by one.
func (z *Zone) largest(spec *job.Spec) (most quantity.Amount) {
	if spec.Slices <= 1 {
		most = z.elsewhere()
		for _, c := range z.floor.Classes() {
			if c.Slices() > 0 && c.SpeedOf(spec) > 0 {
				most = max(most, c.Whole[trp.Memory])
			}
		}
		return most
	}
	if z.borrowsSlices(spec) {
		most = z.elsewhere()
	}
	for _, node := range z.planner.Within(spec.Topology) {
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
