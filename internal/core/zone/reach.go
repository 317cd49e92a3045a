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
// there is could ever offer. Empty if it still would.
func (z *Zone) outgrown(j *home.Job) string {
	scale := j.Learned().MemoryScale
	free := job.NextFree(0, j.Spec.Total, j.Committed(), j.Claimed())
	if free.Empty() || scale <= trp.Unscaled || len(j.Claims()) > 0 {
		return ""
	}
	most := z.largest(j.Spec)
	if most == 0 {
		return ""
	}
	least := j.Safe().LeastOver(free.From, free.From+1, scale)
	if j.Spec.Kind == job.Rigid {
		least = j.Safe().LeastOver(0, j.Spec.Total, scale)
	}
	if least > most {
		where := "the largest slice has"
		if n := j.Width(); n > 1 {
			where = fmt.Sprintf("no node has %d slices with more than", n)
		}
		return fmt.Sprintf("it outgrew every slice: after %s it needs about %d MiB, %s %d MiB", job.MemoryKilled, least>>20, where, most>>20)
	}
	if j.Spec.Kind == job.Rigid {
		return ""
	}
	v := j.View()
	for _, v.Hopeful = range []bool{false, true} {
		for _, c := range z.floor.Classes() {
			if c.Slices() == 0 {
				continue
			}
			w := atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec), End: quantity.Instant(0).Add(z.floor.Longest(&entryOf(j).floor))}
			if _, r := atomizer.Fit(&v, w); r.Why == atomizer.Interested {
				return ""
			}
		}
	}
	return fmt.Sprintf("it outgrew every slice: after %s no slice safely runs a useful piece from %s %d on; the largest has %d MiB", job.MemoryKilled, j.Spec.UnitName(), free.From, most>>20)
}

// tooSlow: by the fastest run observed, not even the least useful piece fits the longest window there can be.
func (z *Zone) tooSlow(j *home.Job) string {
	if j.Spec.Kind == job.Rigid || len(j.Learned().Rates) == 0 || len(z.floor.Slices()) == 0 {
		return ""
	}
	v, fastest := j.View(), int64(0)
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

// largest is the memory of the largest slice that a job can run on; of the smallest of them, where it needs several of one
// node.
func (z *Zone) largest(spec *job.Spec) (most quantity.Amount) {
	if spec.Slices <= 1 {
		for _, c := range z.floor.Classes() {
			if c.Slices() > 0 && c.SpeedOf(spec) > 0 {
				most = max(most, c.Capacity[trp.Memory])
			}
		}
		return most
	}
	for _, node := range z.planner.Nodes() {
		left := spec.Slices
		for _, sl := range slices.Backward(node) {
			if sl.Class().SpeedOf(spec) > 0 {
				left--
			}
			if left == 0 {
				most = max(most, sl.Class().Capacity[trp.Memory])
				break
			}
		}
	}
	return most
}
