package index

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Config is how an index works.
type Config struct {
	// ByQueue ranks the jobs of each queue apart. Seniority keeps those that are ranked by how long they have waited, too.
	ByQueue, Seniority bool
	// MostClasses bounds the classes that answers are kept for, 0 for a bound of 64: below 0 every job is asked each time.
	MostClasses int
}

// Keeper keeps something of jobs that is good as long as their entries are.
type Keeper interface {
	// Forget says that a job may answer otherwise now.
	Forget(j *Job)
}

// Index is all jobs that may be sold something. Invariant: a job that is not stale is either indexed, and then its entry, its places in the
// rankings, in line and among the late are those that it would get now, or it is among the unindexed, which are asked each time.
type Index struct {
	board     *window.Board
	examiner  examiner
	rankings  rankings
	seniority seniority
	lateness  lateness
	keeper    Keeper
	bySenior  bool

	// jobs that may be sold something, in no order.
	jobs []*Job
	// stale are the jobs whose entries are to be made again, unindexed those that are asked each time.
	stale     dirty.Set[*Job]
	unindexed []*Job
	// entering and joining are room for jobs that are about to enter the rankings and the line.
	entering, joining []*Job
	// generation counts the changes that can make a job eligible; fresh are the jobs that changed after the generation seen: windows
	// that stand are offered to them alone.
	generation, seen uint64
	fresh            dirty.Set[*Job]
	rounds           explain.Rounds
}

// New is an empty index.
func New(cfg Config, e *Estimator) *Index {
	if cfg.MostClasses == 0 {
		cfg.MostClasses = 64
	}
	x := &Index{board: e.board, bySenior: cfg.Seniority, examiner: examiner{Estimator: e, mostClasses: cfg.MostClasses}}
	x.rankings = rankings{policy: e.policy, byQueue: cfg.ByQueue, queues: map[string]*Group{}}
	x.seniority.line = newLine(func(j *Job) quantity.Instant { return j.waits })
	x.lateness.line = newLine(func(j *Job) quantity.Instant { return j.due })
	return x
}

// Keep has somebody told of entries that change.
func (x *Index) Keep(k Keeper) { x.keeper = k }

// Cover adds a new class of the board's.
func (x *Index) Cover(c *window.Class) {
	x.rankings.cover(c.At())
	x.seniority.line.cover()
	x.lateness.line.cover()
	x.rounds.Cover()
	var enter []*Job
	for _, j := range x.jobs {
		if x.extend(j, c) {
			enter = append(enter, j)
		}
	}
	x.rankings.insertAll(enter, c.At())
	if x.bySenior {
		x.seniority.insertAll(enter, c.At())
	}
}

// Activate brings in a job, which is late at an instant. What changed of it before was nobody's news.
func (x *Index) Activate(j *Job, due quantity.Instant) {
	j.generation = 0
	x.jobs = append(x.jobs, j)
	j.active = len(x.jobs)
	j.due = due
	x.lateness.dues.Set(&j.dueSlot, j, due)
}

// Retire removes a job: it is over, or has nothing left to sell.
func (x *Index) Retire(j *Job) {
	last := x.jobs[len(x.jobs)-1]
	x.jobs[j.active-1], last.active = last, j.active
	x.jobs[len(x.jobs)-1] = nil
	x.jobs = x.jobs[:len(x.jobs)-1]
	j.active, j.aside = 0, 0
	j.losses.Free()
	x.lateness.dues.Set(&j.dueSlot, j, quantity.Never)
	x.Invalidate(j)
}

// Changed notes that a job may be eligible where it was not before: open windows are offered to it too.
func (x *Index) Changed(j *Job) {
	if j.active > 0 {
		x.fresh.Add(&j.fresh, j)
	}
	x.generation++
	j.generation = x.generation
	x.Invalidate(j)
}

// Invalidate says that what a job answers to windows may be another than before.
func (x *Index) Invalidate(j *Job) { x.stale.Add(&j.stale, j) }

// Jobs are all, Unindexed those that are asked each time, in no order; Fresh those that changed after the last pass, in the order in which
// they did. They are only read.
func (x *Index) Jobs() []*Job { return x.jobs }

// Unindexed are the jobs that are asked each time, in no order.
func (x *Index) Unindexed() []*Job { return x.unindexed }

// Fresh are the jobs that changed after the last pass.
func (x *Index) Fresh() []*Job { return x.fresh.List() }

// Generation counts the changes that can make a job eligible; News says whether there were some after the last pass, and EndPass ends one.
func (x *Index) Generation() uint64 { return x.generation }

// News says whether a change after the last pass can make a job eligible.
func (x *Index) News() bool { return x.generation != x.seen }

// EndPass ends a pass: what has changed so far is no news.
func (x *Index) EndPass() { x.fresh.Clear(); x.seen = x.generation }

// Stale says whether some entry may not be true.
func (x *Index) Stale() bool { return x.stale.Len() > 0 }

// Groups are those that jobs are ranked in.
func (x *Index) Groups() []*Group { return x.rankings.groups }

// Late is the first job in the index that is late and could use a window of a class and length.
func (x *Index) Late(class int, length time.Duration) (*Job, bool) {
	return x.lateness.line.lists[class].First(length)
}

// Senior are the ranked jobs that could use a window of a class and length, longest wait first; without Ahead: those that have been served
// ahead of time.
func (x *Index) Senior(class int, length time.Duration) func(func(*Job) bool) {
	return x.seniority.line.lists[class].Within(length)
}

// Ahead are the ranked jobs that have been served ahead of time.
func (x *Index) Ahead() []*Job { return x.seniority.ahead }

// Refresh makes the entries of stale jobs again. As long as there are no slices nobody answers to any.
func (x *Index) Refresh(now quantity.Instant) {
	if len(x.board.Classes()) == 0 {
		return
	}
	x.lateness.ripen(now)
	x.stale.Drain(func(j *Job) { x.refresh(now, j) })
	x.rankings.insertAll(x.entering, 0)
	x.seniority.insertAll(x.joining, 0)
	clear(x.entering)
	clear(x.joining)
	x.entering, x.joining = x.entering[:0], x.joining[:0]
}

// refresh makes a job's entry. It enters the rankings and the waiting line with the others; if its place is unchanged it stays there: most
// jobs with news answer as before.
func (x *Index) refresh(now quantity.Instant, j *Job) {
	is, e := &x.examiner.room, &j.entry
	*is = Entry{answers: is.answers[:0]}
	if j.active > 0 {
		x.examiner.examine(now, j, is)
	}
	if x.keeper != nil {
		x.keeper.Forget(j)
	}
	x.lateness.leave(j)
	counts := e.indexed && is.indexed && e.ineligible == explain.Eligible && is.ineligible == explain.Eligible && e.needsAs(is)
	if counts {
		x.Settle(j)
	} else if e.indexed {
		x.rounds.End(&j.share, e, &j.counts)
	}
	ranked, waiting := e.ranked && is.ranked && j.group == x.rankings.of(j) && x.placedAs(e, is), false
	if x.bySenior && e.ranked {
		if waiting = is.ranked && j.ahead == 0 && j.waits == j.Since() && e.needsAs(is); !waiting {
			x.seniority.leave(j)
		}
	}
	if e.ranked && !ranked {
		x.rankings.remove(j)
	}
	if j.unindexed > 0 {
		x.dropUnindexed(j)
	}
	x.examiner.adopt(j, is)
	switch {
	case counts:
	case e.indexed:
		x.rounds.Begin(&j.share, e)
	case j.active > 0:
		x.unindexed = append(x.unindexed, j)
		j.unindexed = len(x.unindexed)
	}
	if !e.ranked {
		return
	}
	x.lateness.enter(j)
	if !ranked {
		j.group = x.rankings.of(j)
		j.group.cover(len(e.answers))
		x.entering = append(x.entering, j)
	}
	if x.bySenior && !waiting {
		x.seniority.enter(now, j)
		x.joining = append(x.joining, j)
	}
}

// placedAs reports whether a ranked job's places in the rankings are those of another entry, by the policy itself. The attained time of a
// running job may lag behind: the entry then has the earlier value.
func (x *Index) placedAs(e, is *Entry) bool {
	if !e.needsAs(is) {
		return false
	}
	has := is.key.Attained
	if is.moves {
		is.key.Attained = min(has, e.key.Attained)
	}
	if x.rankings.same(e, is) {
		return true
	}
	is.key.Attained = has
	return false
}

// extend completes a job's entry by its answer for a new class: the others stay as they are, and so do its places in their rankings.
// It says whether the job is to enter that of the class.
func (x *Index) extend(j *Job, c *window.Class) (enters bool) {
	e, classes := &j.entry, len(x.board.Classes())
	if bool(j.stale) || classes <= x.examiner.mostClasses && (!e.indexed || e.ineligible != explain.Eligible) {
		return false
	}
	a, ok := x.examiner.answer(j, c)
	first := a.need != Never && !e.ranked
	if !ok || classes > x.examiner.mostClasses || first && (x.bySenior || j.Busy() > 0) || j.knownLate() ||
		x.examiner.outdoes(j.Spec(), c) {
		x.Invalidate(j)
		return false
	}
	x.examiner.add(j, a)
	x.rounds.Extend(&j.share, c.At(), a.need)
	if a.need == Never {
		return false
	}
	if first {
		e.rankBy(j)
		j.group = x.rankings.of(j)
	}
	j.group.cover(classes)
	return true
}

// Rerank moves jobs to their places by what they have attained by now.
func (x *Index) Rerank(now quantity.Instant, jobs []*Job) {
	for _, j := range jobs {
		x.rankings.remove(j)
		j.entry.key.Attained, _, _ = j.Use(now)
		x.rankings.insert(j)
	}
}

// CatchUp brings the key of a job that moves up to what it has attained by now, and says whether the policy gives it another place for
// that: it has come too early in the rankings then (Rerank).
func (x *Index) CatchUp(now quantity.Instant, j *Job, key *policy.Candidate) bool {
	own, _, _ := j.Use(now)
	pair := &x.rankings.pair
	pair[0], pair[1] = *key, *key
	pair[1].Attained = max(own, key.Attained)
	*key = pair[1]
	return x.rankings.policy.Compare(&pair[0], &pair[1]) != 0
}

func (x *Index) dropUnindexed(j *Job) {
	last := x.unindexed[len(x.unindexed)-1]
	x.unindexed[j.unindexed-1], last.unindexed = last, j.unindexed
	x.unindexed[len(x.unindexed)-1] = nil
	x.unindexed = x.unindexed[:len(x.unindexed)-1]
	j.unindexed = 0
}

// NoteRound adds a round that every waiting job was asked in to what they count. Settle brings a job's counts up to date before that, and
// Skip leaves the round out of them: the winner has not lost it.
func (x *Index) NoteRound(class int, length time.Duration, now quantity.Instant) {
	x.rounds.Note(class, length, now)
}

// Settle brings the counts of a job up to date.
func (x *Index) Settle(j *Job) { x.rounds.Settle(&j.share, &j.entry, &j.counts) }

// Skip omits from a job's counts what it has not counted yet.
func (x *Index) Skip(j *Job) { x.rounds.Skip(&j.share) }

// Counts are why the job was not served as they are now, for people: nothing is kept of it.
func (x *Index) Counts(j *Job) explain.Counts {
	c := j.counts.Clone()
	if j.entry.indexed {
		x.rounds.AddTo(&j.share, &j.entry, &c)
	}
	return c
}

// Simple reports whether a job's answers can be cached instead of asked for each time.
func (x *Index) Simple(j *Job) bool {
	return !slices.ContainsFunc(x.board.Classes(), func(c *window.Class) bool {
		_, simple := x.examiner.answer(j, c)
		return !simple
	})
}

// CouldUse says whether some class has windows for a job. An agent may be silent: nobody waits for it.
func (x *Index) CouldUse(now quantity.Instant, j *Job) bool {
	return slices.ContainsFunc(x.board.Classes(), func(c *window.Class) bool { return x.couldUse(now, j, c, Never-1) })
}

// couldUse says whether a job waits for a window of a class and length and could use it.
func (x *Index) couldUse(now quantity.Instant, j *Job, c *window.Class, length time.Duration) bool {
	if j.active == 0 || j.Spec().External || j.Ineligible(now) != explain.Eligible {
		return false
	}
	a, simple := x.examiner.answer(j, c)
	if simple {
		return a.need <= length && a.need != Never
	}
	_, ok := x.examiner.Contends(now, j, c)
	return ok
}

// Contenders appends the greatest indexes of those that wait for windows of a class and could use one of a length, n of them or as many as
// there are, the greatest first.
func (x *Index) Contenders(now quantity.Instant, c *window.Class, length time.Duration, n int, out []int64) []int64 {
	if !x.examiner.HasIndex() {
		return out
	}
	from := len(out)
	enter := func(index int64) {
		i, _ := slices.BinarySearchFunc(out[from:], index, func(a, b int64) int { return cmp.Compare(b, a) })
		out = slices.Insert(out, from+i, index)
		out = out[:min(len(out), from+n)]
	}
	x.Refresh(now)
	for _, g := range x.Groups() {
		list := g.On(c.At())
		if list == nil {
			continue
		}
		var at ranking.Cursor
		for range n {
			j, ok := list.Next(&at, min(length, Never-1))
			if !ok {
				break
			}
			enter(j.entry.answers[c.At()].index)
		}
	}
	for _, j := range x.unindexed {
		if x.couldUse(now, j, c, length) {
			if index := x.examiner.Index(j, c); index > 0 {
				enter(index)
			}
		}
	}
	return out
}
