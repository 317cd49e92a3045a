package backfill

import (
	"math/bits"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Where the policy has an index gangs are in one order with all other jobs (adr 0031): a gang is given a placement, and keeps it until it
// starts, when its slices are worth as much with it as with the jobs that wait for their windows. So a gang that is over soon goes before
// long jobs, and a long or wide one waits while shorter ones come, until it is late. Without an index the oldest keeps a place.

// mostHolders is how many gangs keep a place at once by what they are worth.
const mostHolders = 4

// order is what a planner keeps of the order of gangs.
type order struct {
	floor *market.Floor
	// inLine ranks the jobs of the line.
	inLine ranking.Order[*Job]
	// byIndex: by the policy's index, else by age.
	byIndex bool
	// classes there were when the indexes of those in the line were found.
	classes int
	// worthy keep a place by what they are worth, the best first; spareWorthy is room for the next such list.
	worthy, spareWorthy []*Job
	// outweighed is the gang that a place was found for at the last plan, and whose slices were worth more to others; nil if none was.
	// What they could use grows shorter with time alone, so it is weighed again in every step.
	outweighed *Job
	// contenders is room for indexes.
	contenders []int64
}

func newOrder(byIndex bool, floor *market.Floor) order {
	o := order{byIndex: byIndex, floor: floor, inLine: byAge}
	if byIndex {
		o.inLine = byWorth
	}
	return o
}

// older orders jobs by priority, then age.
func older(a, b *Job) int {
	return policy.ByAge(
		&policy.Candidate{Job: a.Name(), Priority: a.Spec().Priority, Submitted: a.Submitted()},
		&policy.Candidate{Job: b.Name(), Priority: b.Spec().Priority, Submitted: b.Submitted()},
	)
}

//nolint:gochecknoglobals // read-only by use; Go has no constant structs
var (
	byAge = ranking.Order[*Job]{
		Compare: older, Key: func(j *Job) ranking.Key { return ranking.Key{policy.Age(j.Spec().Priority, j.Submitted())} },
	}
	// byWorth ranks the greatest index first, then by age.
	byWorth = ranking.Order[*Job]{
		Compare: older, Key: func(j *Job) ranking.Key { return ranking.Key{^j.index, policy.Age(j.Spec().Priority, j.Submitted())} },
	}
)

// indexOf is what each of a gang's slices is worth with it, on the class where that is most.
func (o *order) indexOf(j *Job) (most int64) {
	if !o.byIndex {
		return 0
	}
	for _, c := range o.floor.Classes() {
		most = max(most, o.floor.Estimator().GangIndex(j.Spec(), c, c.SpeedOf(j.Spec())))
	}
	return most
}

// reindex places those in the line by the present classes.
func (o *order) reindex(line *ranking.List[*Job]) {
	if !o.byIndex || o.classes == len(o.floor.Classes()) {
		return
	}
	o.classes = len(o.floor.Classes())
	lined := slices.Collect(line.All())
	*line = ranking.List[*Job]{}
	for _, j := range lined {
		j.index = o.indexOf(j)
		line.Gather(o.inLine, 0, j)
	}
	line.Settle(o.inLine)
}

// prevails says whether the gang that was outweighed at the last plan may not be now.
func (o *order) prevails(now quantity.Instant) bool {
	j := o.outweighed
	if j == nil || o.floor.Late().Waits(now) {
		return false
	}
	// A place that has begun moves with the clock, and may be on other slices by now.
	return j.place.Start < now || o.outweighs(now, j, &j.place, surveyed)
}

// outweighs reports whether the slices of a placement are worth as much with a gang as with as many jobs first in line for their windows,
// for as long as their time is free.
func (o *order) outweighs(now quantity.Instant, j *Job, p *Placement, free func(*Slice) []protocol.Gap) bool {
	var gang, others sum
	for _, c := range o.floor.Classes() {
		n, length := 0, time.Duration(0)
		for _, s := range p.Slices {
			if s.Class() == c {
				gang.add(o.floor.Estimator().GangIndex(j.Spec(), c, p.Speed))
				n, length = n+1, max(length, freeFrom(free(s), max(now, p.Start)))
			}
		}
		if n == 0 {
			continue
		}
		o.contenders = o.floor.Contenders(now, c, length, n, o.contenders[:0])
		for _, x := range o.contenders {
			others.add(x)
		}
	}
	return !gang.less(others)
}

// surveyed is the slice's free time as the last plan saw it.
func surveyed(s *Slice) []protocol.Gap { return s.surveyed }

// freeFrom is how long the gap lasts in which an instant lies.
func freeFrom(gaps []protocol.Gap, t quantity.Instant) time.Duration {
	for i := range gaps {
		if g := &gaps[i]; g.Start <= t && t < g.End {
			return g.End.Sub(t)
		}
	}
	return 0
}

// sum of indexes, which may take 128 bits.
type sum struct{ high, low uint64 }

func (s *sum) add(x int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(x), 0) //nolint:gosec // an index is at least 0
	s.high += carry
}

func (s sum) less(t sum) bool { return s.high < t.high || s.high == t.high && s.low < t.low }
