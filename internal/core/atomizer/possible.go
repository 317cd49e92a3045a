package atomizer

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Kinds counts slices that no job can tell apart: there are few kinds, however many slices. The zero value has none.
type Kinds struct {
	list []kind // in the order in which they came
	at   map[like]int
}

// like is what a job sees of a slice.
type like struct {
	Profile  string
	Capacity trp.Vector
	Speed    int64
}

type kind struct {
	like
	// ID is the slice that represents the kind in messages to people.
	ID    job.SliceID
	count int
}

func likeness(s *protocol.Slice) like { return like{s.Profile, s.Capacity, s.Speed} }

// Add counts one more slice.
func (k *Kinds) Add(s *protocol.Slice) {
	l := likeness(s)
	if i, found := k.at[l]; found {
		k.list[i].count++
		return
	}
	if k.at == nil {
		k.at = map[like]int{}
	}
	k.at[l] = len(k.list)
	k.list = append(k.list, kind{like: l, ID: s.ID, count: 1})
}

// Remove counts one less of those that were added.
func (k *Kinds) Remove(s *protocol.Slice) {
	l := likeness(s)
	i, found := k.at[l]
	if !found {
		return
	}
	if k.list[i].count--; k.list[i].count > 0 {
		return
	}
	k.list = slices.Delete(k.list, i, i+1)
	delete(k.at, l)
	for j := i; j < len(k.list); j++ {
		k.at[k.list[j].like] = j
	}
}

// Impossible says why a job could never finish on these slices, offered in windows of at most longest, with the nearest
// request that would fit; both empty if it could. It judges the configured inventory, not what is free now. Without any
// slice nothing is known and nothing is refused; of an external job only its memory is.
func Impossible(spec *job.Spec, there *Kinds, longest time.Duration) (why, nearest string) {
	all := there.list
	if len(all) == 0 {
		return "", ""
	}
	if all = usable(spec, all); len(all) == 0 {
		return "by its speeds it can run on no kind of slice there is", "a speed above 0 for one of the profiles there are"
	}
	if spec.Kind == job.Rigid {
		return impossibleRigid(spec, all)
	}
	var most quantity.Amount
	var biggest job.SliceID
	for i := range all {
		if c := all[i].Capacity[trp.Memory]; c > most || most == 0 {
			most, biggest = c, all[i].ID
		}
	}
	from := int64(0)
	for _, upTo := range spec.Safe.Bounds {
		if need := spec.Safe.LeastOver(from, from+1, trp.Unscaled); need > most {
			return fmt.Sprintf("units %d to %d need %d MiB to be safe, the largest slice (%s) has %d MiB", from, upTo, mib(need), biggest,
					most>>20),
				fmt.Sprintf("memory of at most %d MiB in every phase", most>>20)
		}
		from = upTo
	}
	if spec.External {
		return "", "" // how long a piece takes is its agent's to know
	}
	return tooLong(spec, all, longest)
}

// tooLong looks at the least useful piece where it is hardest, and for the slice that would hold it. The window that a job needs is the
// longest that any of its points needs on the slice that is best there.
func tooLong(spec *job.Spec, all []kind, longest time.Duration) (why, nearest string) {
	v := judged(spec)
	var horizon time.Duration
	for _, from := range append(hardest(spec), crossing(&v, all)...) {
		v.Committed = job.Ranges{}.Add(job.Range{From: 0, To: from})
		var least Refusal
		for i := range all {
			s := &all[i]
			_, r := fitOne(&v, Window{Capacity: s.Capacity, Speed: spec.SpeedOn(s.Profile, s.Speed), End: quantity.Instant(0).Add(longest)},
				from)
			if i == 0 || r.Why == Interested || r.Why == TooShort && (least.Why != TooShort || r.Need < least.Need) {
				least = r
			}
			if r.Why == Interested {
				break
			}
		}
		switch {
		case least.Why == TooShort && least.Need > horizon:
			horizon = least.Need
			why = fmt.Sprintf("the least useful piece from unit %d takes %v, longer than the longest window of %v", from, roundUp(horizon),
				longest)
		case least.Why != TooShort && least.Why != Interested:
			return fmt.Sprintf("no slice safely runs a useful piece from unit %d on: it needs %d MiB over tauMin %v", from,
					mib(least.Least), spec.TauMin),
				"a smaller tauMin, or lower memory where a phase begins"
		}
	}
	if why == "" {
		return "", ""
	}
	return why, fmt.Sprintf("a horizon, and a maxWindow of its queue, of at least %v; or a smaller grid or tauMin", roundUp(horizon))
}

// judged is what is asked whether a job could ever run: with nothing learned of it. Where no time is declared any that holds its start will
// do.
func judged(spec *job.Spec) View {
	return View{Spec: spec, Learned: &protocol.Learned{}, Resume: job.Token{Epoch: 1}, Hopeful: spec.Untimed()}
}

// roundUp is a time in milliseconds that is no shorter.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// usable are the slices that the job's speeds let it run on; all of them if it declares none.
func usable(spec *job.Spec, all []kind) []kind {
	if len(spec.Speeds) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s kind) bool { return spec.SpeedOn(s.Profile, s.Speed) == 0 })
}

// hardest are the points of progress that stand for all others: where a phase begins, and the last cut point before it
// ends, from which the least useful piece reaches into the next phase and needs the memory of both.
func hardest(spec *job.Spec) (points []int64) {
	from := int64(0)
	for _, upTo := range spec.Safe.Bounds {
		points = append(points, from)
		if last := (upTo - 1) / spec.Grid * spec.Grid; last > from {
			points = append(points, last)
		}
		from = upTo
	}
	return points
}

// crossing are the first points of each phase from which the least useful piece reaches into the next, by what is useful on each kind of
// slice: near the end of a job the piece from the last point before a phase ends is shorter than it.
func crossing(v *View, all []kind) (points []int64) {
	from, spec := int64(0), v.Spec
	for _, upTo := range spec.Safe.Bounds {
		for i := range all {
			units := v.useful(job.Range{To: math.MaxInt64 / 2}, spec.SpeedOn(all[i].Profile, all[i].Speed))
			if first := (max(0, upTo-units) + spec.Grid) / spec.Grid * spec.Grid; upTo < spec.Total && from < first && first < upTo &&
				!slices.Contains(points, first) {
				points = append(points, first)
			}
		}
		from = upTo
	}
	return points
}

// fitOne is Fit at one point of progress, for either divisible kind.
func fitOne(v *View, w Window, from int64) (Piece, Refusal) {
	return cut(v, w, job.Range{From: from, To: v.Spec.Total}, v.Spec.Total)
}

func impossibleRigid(spec *job.Spec, all []kind) (why, nearest string) {
	need := spec.Safe.LeastOver(0, spec.Total, trp.Unscaled)
	fit, most := 0, quantity.Amount(0)
	for i := range all {
		c := all[i].Capacity[trp.Memory]
		most = max(most, c)
		if need <= c {
			fit += all[i].count
		}
	}
	n := max(1, spec.Slices)
	switch {
	case fit == 0:
		return fmt.Sprintf("it needs %d MiB, the largest slice has %d MiB", mib(need), most>>20),
			fmt.Sprintf("memory of at most %d MiB", most>>20)
	case fit < n:
		return fmt.Sprintf("it needs %d slices of %d MiB at once, there are %d", n, mib(need), fit), fmt.Sprintf("slices: %d", fit)
	}
	return "", ""
}

// mib rounds up, so that a need is never shown smaller than it is.
func mib(a quantity.Amount) int64 { return (int64(a) + 1<<20 - 1) >> 20 }

// WholeMiB is the memory that a slice must have to run all of a job, in MiB.
func WholeMiB(spec *job.Spec) int64 { return mib(spec.Safe.LeastOver(0, spec.Total, trp.Unscaled)) }

// Holds reports whether a slice could be one of those that run a rigid job.
func Holds(spec *job.Spec, s *protocol.Slice) bool {
	return spec.Safe.LeastOver(0, spec.Total, trp.Unscaled) <= s.Capacity[trp.Memory] && spec.SpeedOn(s.Profile, s.Speed) > 0
}

// Fitting is how many slices could run some piece of the job, offered in windows of at most longest; of a rigid job, all of it on one.
func Fitting(spec *job.Spec, there *Kinds, longest time.Duration) (n int) {
	v := judged(spec)
	for _, k := range usable(spec, there.list) {
		if fits(&v, &k, longest) {
			n += k.count
		}
	}
	return n
}

// fits says whether a slice could run some piece of the job.
func fits(v *View, k *kind, longest time.Duration) bool {
	s := v.Spec
	switch {
	case s.Kind == job.Rigid:
		return s.Safe.LeastOver(0, s.Total, trp.Unscaled) <= k.Capacity[trp.Memory]
	case s.External: // how long a piece takes is its agent's to know
		return slices.ContainsFunc(hardest(s), func(at int64) bool {
			return s.Safe.LeastOver(at, at+1,
				trp.Unscaled) <= k.Capacity[trp.Memory]
		})
	}
	w := Window{Capacity: k.Capacity, Speed: s.SpeedOn(k.Profile, k.Speed), End: quantity.Instant(0).Add(longest)}
	return slices.ContainsFunc(hardest(s), func(at int64) bool {
		v.Committed = job.Ranges{}.Add(job.Range{From: 0, To: at})
		_, r := fitOne(v, w, at)
		return r.Why == Interested
	})
}
