package market

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Lengths of windows and needs of jobs.
const (
	// open is the length of a window without a known end.
	open = time.Duration(math.MaxInt64 - 1)
	// never is the need of a job that can use no window of a class.
	never = time.Duration(math.MaxInt64)
)

// eligibility is a job's place in the index.
type eligibility struct {
	// stale: its entry may no longer be true. fresh: it is among those that standing windows are offered to.
	stale, fresh dirty.Mark
	// bids: it is interested in the window of the present round.
	bids bool
	entry
	// unindexed is 1 + its place in that list, if it is asked each time.
	unindexed int
	// group whose rankings it is in, if it is ranked.
	group *group
	// waits is when its present wait began, ahead 1 + its place in that list or 0. invitation is the latest that it was asked by.
	waits      quantity.Instant
	ahead      int
	invitation uint64
	counting   counting
}

// entry is how a job answers windows, as far as that is kept from round to round.
type entry struct {
	// indexed jobs answer from what is kept; the others are asked each time. ranked ones can use a window of some class: they are in
	// the rankings of their group, with key as what they are compared by, but for what is another on each class (keyOn). moves: what it
	// has attained grows by itself since it runs, and the key's is what it had when that was last looked at, so no more than it has.
	indexed, ranked, moves bool
	// shares: answers are other jobs' too, and nobody writes to them.
	shares bool
	// ineligible is why an indexed job does not answer at all, Eligible if it does.
	ineligible Reason
	key        policy.Candidate
	// answers by class.
	answers []answer
}

// answer is what a job says to windows of one class: it is interested from a length on, and to shorter ones it always says
// the same.
type answer struct {
	need    time.Duration
	refusal atomizer.Refusal
	// laxity is that of the present instant plus the instant; the longest time without a deadline.
	laxity time.Duration
	// index is what the policy makes of the job there.
	index int64
}

// group is the ranked jobs of one queue, or of all where queues make no difference to the policy nor by their purses, by class.
type group struct{ rankings []ranking.List[*Job] }

// cover makes a ranking for each of so many classes.
func (g *group) cover(classes int) {
	for len(g.rankings) < classes {
		g.rankings = append(g.rankings, ranking.List[*Job]{})
	}
}

func (f *Floor) groupOf(j *Job) *group {
	if f.cfg.Policy.Motion() != policy.WithinQueue && (f.cfg.Market == nil || !f.ranksBids()) {
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

// refreshIndex makes the entries of stale jobs again. As long as there are no slices nobody answers to any.
func (f *Floor) refreshIndex(now quantity.Instant) {
	if len(f.classes) == 0 {
		return
	}
	f.ripen(now)
	f.stale.Drain(func(j *Job) { f.refreshEntry(now, j) })
	f.rankAll(f.entering, 0)
	f.lineUp(f.joining, 0)
	clear(f.entering)
	clear(f.joining)
	f.entering, f.joining = f.entering[:0], f.joining[:0]
}

// refreshEntry makes a job's entry in the index. It enters the rankings, and those that wait, with the others; where its place is the
// one it has it stays there: of the jobs that are told something new most answer as before.
func (f *Floor) refreshEntry(now quantity.Instant, j *Job) {
	is := &f.examined
	*is = entry{answers: is.answers[:0]}
	if j.active > 0 {
		f.examine(now, j, is)
	}
	f.book.forget(j)
	f.leaveLate(j)
	counts := j.indexed && is.indexed && j.ineligible == Eligible && is.ineligible == Eligible && j.needsAs(is)
	if counts {
		f.count(j)
	} else {
		f.stopCounting(j)
	}
	ranked, waiting := j.ranked && is.ranked && j.group == f.groupOf(j) && f.placedAs(j, is), false
	if f.cfg.Market != nil && j.ranked {
		if waiting = is.ranked && j.ahead == 0 && j.waits == j.since() && j.needsAs(is); !waiting {
			f.unwait(j)
		}
	}
	if j.ranked && !ranked {
		f.unrank(j)
	}
	if j.unindexed > 0 {
		f.dropUnindexed(j)
	}
	f.adopt(j, is)
	switch {
	case counts:
	case j.indexed:
		f.startCounting(j)
	case j.active > 0:
		f.addUnindexed(j)
	}
	if !j.ranked {
		return
	}
	f.enterLate(j)
	if !ranked {
		j.group = f.groupOf(j)
		j.group.cover(len(f.classes))
		f.entering = append(f.entering, j)
	}
	if f.cfg.Market != nil && !waiting {
		f.wait(now, j)
		f.joining = append(f.joining, j)
	}
}

// needsAs says whether a job answers with the same needs by another entry: then its places in lists that are searched by need may stay.
func (e *entry) needsAs(is *entry) bool {
	return slices.EqualFunc(e.answers, is.answers, func(a, b answer) bool { return a.need == b.need })
}

// placedAs says whether a ranked job's places in the rankings are those of another entry, by the policy itself. What has been attained by
// one that moves may lag behind: the entry has then what it had.
func (f *Floor) placedAs(j *Job, is *entry) bool {
	if !j.needsAs(is) {
		return false
	}
	has := is.key.Attained
	if is.moves {
		is.key.Attained = min(has, j.key.Attained)
	}
	for i, c := range f.classes {
		if j.answers[i].need == never {
			continue
		}
		if f.pair = [2]policy.Candidate{j.keyOn(c), is.keyOn(c)}; f.cfg.Policy.Compare(&f.pair[0], &f.pair[1]) != 0 {
			is.key.Attained = has
			return false
		}
	}
	return true
}

// keyOn is what a job is compared by on a class.
func (e *entry) keyOn(c *Class) policy.Candidate {
	key := e.key
	key.Laxity, key.Index = e.answers[c.at].laxity, e.answers[c.at].index
	return key
}

// examine finds what a job answers to windows of every class: for each the shortest that it can use. Jobs whose answers move by
// themselves are asked each time: in a queue with a cap, or too long for the longest window there usually is.
func (f *Floor) examine(now quantity.Instant, j *Job, e *entry) {
	*e = entry{answers: e.answers[:0], ineligible: j.Ineligible(now)}
	if len(f.classes) > maxClasses || j.Spec().External || j.Volatile() {
		return
	}
	if e.ineligible != Eligible {
		e.indexed = true
		return
	}
	e.answers = slices.Grow(e.answers, len(f.classes))[:len(f.classes)]
	useful := false
	for i, c := range f.classes {
		a, ok := f.answer(j, c)
		if !ok {
			return
		}
		e.answers[i] = a
		useful = useful || a.need != never
	}
	if e.indexed = true; !useful {
		return
	}
	e.rankBy(j)
	if e.moves = j.Busy() > 0; e.moves {
		e.key.Attained, _, _ = j.Use(now)
	}
}

// rankBy makes an entry one that is ranked, by what the job has attained with all that is over.
func (e *entry) rankBy(j *Job) {
	e.ranked = true
	e.key = policy.Candidate{
		Job: j.Name(), Priority: j.Spec().Priority, Submitted: j.Submitted(), Attained: j.Attained(), Weight: 1,
		Laxity: math.MaxInt64,
	}
}

// extend completes a job's entry by its answer for a new class: the others stay as they are, and so do its places in their rankings.
// It says whether the job is to enter that of the class.
func (f *Floor) extend(j *Job, c *Class) (enters bool) {
	if bool(j.stale) || len(f.classes) <= maxClasses && (!j.indexed || j.ineligible != Eligible) {
		return false
	}
	a, ok := f.answer(j, c)
	first := a.need != never && !j.ranked
	if !ok || len(f.classes) > maxClasses || first && (f.cfg.Market != nil || j.Busy() > 0) || j.knownLate() || f.outdoes(j.Spec(), c) {
		f.InvalidateJob(j)
		return false
	}
	f.addAnswer(j, a)
	j.counting.add(f.asked.classes[c.at].Enter(a.need))
	if a.need == never {
		return false
	}
	if first {
		j.rankBy(j)
		j.group = f.groupOf(j)
	}
	j.group.cover(len(f.classes))
	return true
}

// rank puts a job into the rankings of its group, by its key.
func (f *Floor) rank(j *Job) {
	j.ranked = true
	for i, c := range f.classes {
		if j.answers[i].need != never {
			j.group.rankings[i].Insert(c.order, j.answers[i].need, j)
		}
	}
}

// rerank gives jobs that move the places of what they have attained by now.
func (f *Floor) rerank(now quantity.Instant, jobs []*Job) {
	for _, j := range jobs {
		f.unrank(j)
		j.key.Attained, _, _ = j.Use(now)
		f.rank(j)
	}
}

// unrank takes a job out of them.
func (f *Floor) unrank(j *Job) {
	for i := range j.answers {
		if j.answers[i].need != never {
			j.group.rankings[i].Remove(f.classes[i].order, j)
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
	a = answer{need: never, laxity: f.laxity(j, c, 0), index: f.index(j, c)}
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
		a.need = p.Length
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
			return f.hopes(j, c, a)
		}
		guess = 0
	}
	a.need = leastLength(yes, guess, longest)
	return a, true
}

// hopes is the answer of a job that the longest window there usually is would be too short for, by its usual run time: in that one
// it tries its least useful piece (Fit).
func (f *Floor) hopes(j *Job, c *Class, a answer) (answer, bool) {
	v, longest := j.View(), f.Longest(j)
	fit := func(d time.Duration) (atomizer.Piece, atomizer.Refusal) {
		return atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), End: quantity.Instant(d)})
	}
	v.Hopeful = true
	_, r := fit(longest)
	if r.Why != atomizer.Interested {
		_, most := j.Queue()
		return a, 0 < most && most <= longest && r == a.refusal // others are longer yet, where something known ends them
	}
	a.need = longest
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
