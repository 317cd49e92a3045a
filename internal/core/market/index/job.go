// Package index keeps, for each job and each class of slices, the shortest window that the job can use, and finds the first that can use a
// given one: by the policy, by how long jobs wait, and of those that have waited too long. It must not know how a window is sold.
//
// Read job.go for a job's entry, estimator.go for what a window is worth to a job, examine.go for how an entry is made, then index.go,
// which keeps all entries up to date.
package index

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Demand is what an index asks whoever owns a job: its view, and through that its answer where an atomizer gives it at once. For an
// external job its agent answers, in messages. Answers hold until Index.Invalidate.
type Demand interface {
	Name() job.ID
	Spec() *job.Spec
	// Queue it is in, and the longest window that this lets it have, 0 for any.
	Queue() (name string, longest time.Duration)
	// Agent answers for it in messages if it is external.
	Agent() protocol.Address
	// View is what an atomizer may know. What a node was asked for counts as claimed.
	View() atomizer.View
	// Busy is how many subjobs of it run or are asked for.
	Busy() int
	// Submitted is when it came, and Served when it last got something; 0: never.
	Submitted() quantity.Instant
	Served() quantity.Instant
	// Ineligible is why it is sold nothing at all now, Eligible if it may be.
	Ineligible(now quantity.Instant) explain.Reason
	// RestsUntil is when its pause after a failure is over; 0 if it never had one.
	RestsUntil() quantity.Instant
	// Volatile: whether it is eligible moves without it, so it is asked each time.
	Volatile() bool
	// Avoids says whether it leaves the slice to others.
	Avoids(s *window.Slice) bool
	// Loses reports whether most of its work is lost where its window ends early.
	Loses() bool
	// Attained is the memory-time that it has had, Use the same with what runs now, of it and of its queue, with the queue's weight
	// of at least 1; in MiB-milliseconds.
	Attained() int64
	Use(now quantity.Instant) (own, queue, weight int64)
	// Trust is what its declarations are held against: its own record, or, as long as that has Seen nothing, what jobs of its queue
	// have shown, which may change without it and is the same for all such jobs of the queue.
	Trust() protocol.Trust
	// Sentence says what a reason means for it, for people.
	Sentence(r explain.Reason) string
}

// Never is the need of a job that can use no window of a class.
const Never = time.Duration(math.MaxInt64)

// Job is one job as an index keeps it; the job's owner holds it, and is its Demand. Soft. Invariant: unless it is stale, its entry is what
// it would answer now, and it is in the rankings of the classes that it can use and in no others.
type Job struct {
	Demand
	// Record is what the mechanism that runs keeps of the job; nobody else reads it.
	Record any
	// active is 1 + its place among the active jobs, 0 if it is none of them.
	active int
	// generation of the last change that can have made it eligible.
	generation uint64
	// stale: its entry may no longer be true. fresh: it is among those that standing windows are offered to.
	stale, fresh dirty.Mark
	entry        Entry
	// unindexed is 1 + its place among the jobs that are asked each time, or 0.
	unindexed int
	// group whose rankings it is in, if it is ranked.
	group *Group
	// waits is when its present wait began, its key in the line; ahead is 1 + its place in the list of jobs served ahead of time.
	waits quantity.Instant
	ahead int
	// due is when the job is late, Never if it is not to be; dueSlot keeps its alarm, inLate: it is among those that are.
	due     quantity.Instant
	dueSlot int
	inLate  bool
	// residence is the number of the program that its subjobs can go on in, 0 for none; numbered: it was found.
	residence uint64
	numbered  bool
	// aside is until when it is in no order, since it declined.
	aside quantity.Instant
	// counts of why it was not served, share what it has seen of the rounds that all were asked in, losses since it was last served.
	counts explain.Counts
	share  explain.Share
	losses explain.Losses
}

// Active says whether it may be sold something.
func (j *Job) Active() bool { return j.active > 0 }

// Generation is that of the last change which can have made it eligible; Fresh says whether that was after the last pass.
func (j *Job) Generation() uint64 { return j.generation }

// Fresh says whether it has changed after the last pass.
func (j *Job) Fresh() bool { return bool(j.fresh) }

// Stale says whether its entry may no longer be true.
func (j *Job) Stale() bool { return bool(j.stale) }

// Entry is how it answers windows. It is only read.
func (j *Job) Entry() *Entry { return &j.entry }

// Counts are why it was not served, without its share of the rounds that all were asked in (Index.Counts).
func (j *Job) Counts() *explain.Counts { return &j.counts }

// Losses are what it has lost since it was last served.
func (j *Job) Losses() *explain.Losses { return &j.losses }

// Ineligible is why the job is sold nothing at all now, Eligible if it may be.
func (j *Job) Ineligible(now quantity.Instant) explain.Reason {
	if why := j.Demand.Ineligible(now); why != explain.Eligible || j.aside <= now {
		return why
	}
	return explain.Aside
}

// SetAside removes it from all orders until an instant.
func (j *Job) SetAside(until quantity.Instant) { j.aside = until }

// Waited is how long it has gone without being served, Since when that began.
func (j *Job) Waited(now quantity.Instant) time.Duration { return max(0, now.Sub(j.Since())) }

// Residence is the number of the program that its subjobs can go on in (job.Spec.Residence); 0: none.
func (j *Job) Residence() uint64 {
	if !j.numbered {
		j.residence, j.numbered = j.Spec().Residence(j.Name()), true
	}
	return j.residence
}

// Since is when its present wait began.
func (j *Job) Since() quantity.Instant { return max(j.Submitted(), j.Served()) }

// Deadline is the owner's, Never if none was given.
func (j *Job) Deadline() quantity.Instant {
	if d := j.Spec().Deadline; d != 0 {
		return d
	}
	return quantity.Never
}

// Due is when it is late, IsLate says whether it is by now.
func (j *Job) Due() quantity.Instant { return j.due }

// IsLate says whether it is late by now.
func (j *Job) IsLate(now quantity.Instant) bool { return j.due <= now }

// knownLate reports whether the index knows that the job is late.
func (j *Job) knownLate() bool { return j.dueSlot == 0 && j.due != quantity.Never }

// Parallelism is how many subjobs of it may run at once by what is known of it now.
func (j *Job) Parallelism() int {
	if s := j.Spec(); !s.Untimed() {
		return s.Parallelism
	}
	v := j.View()
	return v.Parallelism()
}

// unsold says whether nothing was ever sold to a job.
func (j *Job) unsold() bool { return j.Busy() == 0 && j.Attained() == 0 && j.Served() == 0 }

// need is the shortest window of a class that it can use, if the index has that and it is as it was examined.
func (j *Job) need(c *window.Class) (time.Duration, bool) {
	if e := &j.entry; e.indexed && !bool(j.stale) && c.At() < len(e.answers) && e.answers[c.At()].need < window.Endless {
		return e.answers[c.At()].need, true
	}
	return 0, false
}

// CountIn counts a round that only jobs which have changed were asked in, for a window of a class and length that the job lost or
// could not use.
func (j *Job) CountIn(class int, length time.Duration, now quantity.Instant) {
	switch e := &j.entry; {
	case e.ineligible != explain.Eligible:
		j.counts.Add(e.ineligible, now)
	case e.answers[class].need <= length:
		j.counts.Add(explain.LostToPolicy, now)
	default:
		j.counts.Refuse(e.answers[class].refusal, now)
	}
}

// Entry is how a job answers windows, as far as that is kept from round to round.
type Entry struct {
	// indexed jobs answer from what is kept; the others are asked each time. ranked ones can use a window of some class: they are in
	// the rankings of their group, with key as what they are compared by, but for what is another on each class (KeyOn). moves: what it
	// has attained grows by itself since it runs, and the key's is what it had when that was last looked at, so no more than it has.
	indexed, ranked, moves bool
	// shares: answers are other jobs' too, and nobody writes to them.
	shares bool
	// ineligible is why an indexed job does not answer at all, Eligible if it does.
	ineligible explain.Reason
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
	// index is the policy's index of the job there.
	index int64
}

// Indexed reports whether the job answers from its entry; the rest applies to such jobs alone.
func (e *Entry) Indexed() bool { return e.indexed }

// Ranked says whether it is in the rankings.
func (e *Entry) Ranked() bool { return e.ranked }

// Moves says whether what the job has attained grows by itself: its key may lag behind.
func (e *Entry) Moves() bool { return e.moves }

// Eligibility is why the job does not answer at all, Eligible if it does. Need is the shortest window of a class that it can use, Never if
// it can use none, and Refusal what it says to shorter ones; Classes is of how many.
func (e *Entry) Eligibility() explain.Reason { return e.ineligible }

// Classes is the number of classes that it has an answer for.
func (e *Entry) Classes() int { return len(e.answers) }

// Need is the shortest window of a class that the job can use.
func (e *Entry) Need(class int) time.Duration { return e.answers[class].need }

// Refusal is what it says to shorter ones.
func (e *Entry) Refusal(class int) atomizer.Refusal { return e.answers[class].refusal }

// can says whether the job can use some window of a class.
func (e *Entry) can(class int) bool { return e.answers[class].need != Never }

// Uses says whether the job can use a window of a class and length.
func (e *Entry) Uses(class int, length time.Duration) bool {
	return e.ineligible == explain.Eligible && e.answers[class].need <= length
}

// Index is the policy's index of the job on a class.
func (e *Entry) Index(class int) int64 { return e.answers[class].index }

// KeyOn is what a ranked job is compared by on a class.
func (e *Entry) KeyOn(class int) (key policy.Candidate) {
	e.keyOn(class, &key)
	return key
}

func (e *Entry) keyOn(class int, key *policy.Candidate) {
	a := &e.answers[class]
	*key = e.key
	key.Laxity, key.Index = a.laxity, a.index
}

// needsAs says whether a job answers with the same needs by another entry: then its places in lists that are searched by need may stay.
func (e *Entry) needsAs(is *Entry) bool {
	return slices.EqualFunc(e.answers, is.answers, func(a, b answer) bool { return a.need == b.need })
}

// Group is the ranked jobs of one queue, or of all where queues make no difference to the policy nor by their purses, by class.
type Group struct{ lists []ranking.List[*Job] }

// On is the group's ranking on a class, nil if nobody was ranked there yet.
func (g *Group) On(class int) *ranking.List[*Job] {
	if class >= len(g.lists) {
		return nil
	}
	return &g.lists[class]
}

// cover makes a ranking for each class.
func (g *Group) cover(classes int) {
	for len(g.lists) < classes {
		g.lists = append(g.lists, ranking.List[*Job]{})
	}
}

// ByName orders jobs.
func ByName(a, b *Job) int { return cmp.Compare(a.Name(), b.Name()) }
