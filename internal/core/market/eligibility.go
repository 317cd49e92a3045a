package market

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
	"sluice.dev/sluice/internal/core/trp"
)

// Lengths of windows and needs of jobs.
const (
	// open is the length of a window without a known end.
	open = time.Duration(math.MaxInt64 - 1)
	// never is the need of a job that can use no window of a class.
	never = time.Duration(math.MaxInt64)
)

// eligibility is how a job answers windows, as far as that is kept from round to round.
type eligibility struct {
	// stale: what is kept may no longer be true.
	stale bool
	// indexed jobs answer from what is kept; the others, at unindexed - 1 in that list, are asked each time.
	indexed   bool
	unindexed int
	// ranked jobs are in the rankings of their group, with key as what they are compared by. moves: what it has attained grows by
	// itself since it runs, and the key's is what it had when that was last looked at, so no more than it has.
	ranked, moves bool
	group         *group
	key           policy.Candidate
	// waits is when its present wait began, ahead 1 + its place in that list or 0. invitation is the latest that it was asked by.
	waits      quantity.Instant
	ahead      int
	invitation uint64
	// ineligible is why an indexed job does not answer at all, Eligible if it does.
	ineligible Reason
	// answers by class.
	answers []answer
	// bids: it is interested in the window of the present round.
	bids     bool
	counting counting
}

// answer is what a job says to windows of one class: it is interested from a length on, and to shorter ones it always says
// the same.
type answer struct {
	need    time.Duration
	refusal atomizer.Refusal
	// laxity is that of the present instant plus the instant; the longest time without a deadline.
	laxity time.Duration
	// wall and demand bound every piece of it on this class.
	wall   time.Duration
	demand trp.Vector
}

// group is the ranked jobs of one queue, or of all where queues make no difference to the policy, by class.
type group struct{ rankings []ranking.List[*Job] }

func (f *Floor) groupOf(j *Job) *group {
	if f.cfg.Policy.Motion() != policy.WithinQueue {
		if f.everybody == nil {
			f.everybody = &group{}
			f.groups = append(f.groups, f.everybody)
		}
		return f.everybody
	}
	queue, _ := j.Queue()
	g := f.byQueue[queue]
	if g == nil {
		g = &group{}
		f.byQueue[queue] = g
		f.groups = append(f.groups, g)
	}
	return g
}

// refreshIndex makes the entries of stale jobs again.
func (f *Floor) refreshIndex(now quantity.Instant) {
	f.now = now
	for i := 0; i < len(f.stale); i++ {
		j := f.stale[i]
		f.stopCounting(j)
		if j.ranked {
			f.unrank(j)
			if f.cfg.Market != nil {
				f.unwait(j)
			}
		}
		if j.unindexed > 0 {
			f.dropUnindexed(j)
		}
		j.stale, j.indexed = false, false
		if j.active > 0 {
			f.refreshEntry(now, j)
		}
		if j.indexed {
			f.startCounting(j)
		}
	}
	clear(f.stale)
	f.stale = f.stale[:0]
}

// refreshEntry makes a job's entry in the index: for each class the shortest window that it can use. Jobs whose answers move by
// themselves are asked each time: in a queue with a cap, or too long for the longest window there usually is.
func (f *Floor) refreshEntry(now quantity.Instant, j *Job) {
	j.ineligible = j.Ineligible(now)
	if len(f.classes) > maxClasses || j.Spec().External || j.Volatile() {
		f.addUnindexed(j)
		return
	}
	j.indexed = true
	if j.ineligible != Eligible {
		return
	}
	j.answers = slices.Grow(j.answers[:0], len(f.classes))[:len(f.classes)]
	useful := false
	for i, c := range f.classes {
		a, ok := f.answer(j, c)
		if !ok {
			j.indexed = false
			f.addUnindexed(j)
			return
		}
		j.answers[i] = a
		useful = useful || a.need != never
	}
	if !useful {
		return
	}
	j.key = policy.Candidate{
		Job: j.Name(), Priority: j.Spec().Priority, Submitted: j.Submitted(), Attained: j.Attained(), Weight: 1,
	}
	if j.moves = j.Busy() > 0; j.moves {
		j.key.Attained, _, _ = j.Use(now)
	}
	j.group = f.groupOf(j)
	for len(j.group.rankings) < len(f.classes) {
		j.group.rankings = append(j.group.rankings, ranking.List[*Job]{})
	}
	f.rank(j)
	if f.cfg.Market != nil {
		f.wait(now, j)
	}
}

// rank puts a job into the rankings of its group, by its key.
func (f *Floor) rank(j *Job) {
	j.ranked = true
	for i, c := range f.classes {
		if j.answers[i].need != never {
			j.group.rankings[i].Insert(c.before, j.answers[i].need, j)
		}
	}
}

// rerank gives jobs that move the places of what they have attained by now.
func (f *Floor) rerank(jobs []*Job) {
	for _, j := range jobs {
		f.unrank(j)
		j.key.Attained, _, _ = j.Use(f.now)
		f.rank(j)
	}
}

// unrank takes a job out of them.
func (f *Floor) unrank(j *Job) {
	for i := range j.answers {
		if j.answers[i].need != never {
			j.group.rankings[i].Remove(f.classes[i].before, j)
		}
	}
	j.ranked = false
}

// addUnindexed makes a job one that is asked each time, dropUnindexed ends that.
func (f *Floor) addUnindexed(j *Job) {
	f.unindexed = append(f.unindexed, j)
	j.unindexed = len(f.unindexed)
}

func (f *Floor) dropUnindexed(j *Job) {
	last := f.unindexed[len(f.unindexed)-1]
	f.unindexed[j.unindexed-1], last.unindexed = last, j.unindexed
	f.unindexed[len(f.unindexed)-1] = nil
	f.unindexed = f.unindexed[:len(f.unindexed)-1]
	j.unindexed = 0
}

// answer finds what a job says to windows of a class; ok is false if that is not simple enough to keep. What it needs is
// not computed but found by asking the atomizer itself, with windows of different length: its answer is monotone in the
// length, and grid, checkpoint and the end of the work make a formula wrong in a few cases of a hundred.
func (f *Floor) answer(j *Job, c *Class) (a answer, ok bool) {
	a = answer{need: never, laxity: f.laxity(j, c, 0)}
	v := j.View()
	ask := func(d time.Duration) (atomizer.Piece, atomizer.Refusal) {
		end := quantity.Instant(d)
		if d == open {
			end = quantity.Never
		}
		return atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), End: end})
	}
	switch {
	case Wide(j.Spec()):
		a.refusal = placed(j.Spec())
		return a, true
	case j.Spec().Kind == job.Rigid:
		p, r := ask(open)
		if r.Why != atomizer.Interested {
			a.refusal = r
			return a, true
		}
		_, a.refusal = ask(0)
		a.need, a.wall, a.demand = p.Length, p.Wall, p.Demand
		if j.Spec().Walltime == 0 {
			a.need = open
		}
		return a, true
	}
	// What no window is long enough for is refused as unsafe, barred or out of work in every window.
	yes := func(d time.Duration) bool { _, r := ask(d); return r.Why == atomizer.Interested }
	if _, a.refusal = ask(0); a.refusal.Why != atomizer.TooShort {
		return a, true
	}
	longest, guess := f.Longest(j), a.refusal.Need
	if guess > longest || !yes(guess) {
		if !yes(longest) {
			return a, false
		}
		guess = 0
	}
	a.need = leastLength(yes, guess, longest)
	if f.cfg.Policy.Motion() == policy.ByUse {
		p, _ := ask(open - 1)
		a.wall, a.demand = p.Wall, p.Demand
		if j.Spec().Kind == job.Items {
			a.demand = c.Capacity // a shorter piece may lie elsewhere, where more is needed
		}
	}
	return a, true
}

// leastLength is the least length that is accepted; most is, 0 is not, and so is a guess other than 0, which if it is right
// is confirmed by one question.
func leastLength(yes func(time.Duration) bool, guess, most time.Duration) time.Duration {
	low, high := time.Duration(0), most // low is refused, high accepted
	if guess > 0 {
		if high = guess; !yes(guess - 1) {
			return guess
		}
		high--
	}
	for low+1 < high {
		if middle := low + (high-low)/2; yes(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
