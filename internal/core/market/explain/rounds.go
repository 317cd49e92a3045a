package explain

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/tally"
)

// Rounds are the rounds that every waiting job was asked in. Invariant: a job whose answers do not change is added the counts that it
// would have if each round had been counted for it when it was held. So a round costs nothing for those who lose it: rounds are counted
// by what was needed in them, and a job's share is taken when somebody asks for it or when its answers change.
type Rounds struct {
	all tally.Seen
	// classes are by class of slices, in their order, rounds by their length.
	classes []*tally.Tally
	// latest is room for what a job has seen of each class.
	latest []seen
}

// seen is how many windows of a class were long enough for a job, and how many too short.
type seen struct {
	class       int
	long, short tally.Seen
}

// Answers are what a job says to every window, as long as nothing changes.
type Answers interface {
	// Eligibility is why it is sold nothing at all, Eligible if it may be.
	Eligibility() Reason
	// Need is by class the shortest window that it could use, of one that is Eligible, and Refusal what it says to shorter ones.
	Classes() int
	Need(class int) time.Duration
	Refusal(class int) atomizer.Refusal
}

// Share is what a job had seen of the rounds when its counts were last complete.
type Share struct {
	all     int64
	entries []tally.Entry // by class, of a job that is eligible
}

// add makes room for one more entry and no others: there are as many as classes, which seldom change.
func (s *Share) add(e tally.Entry) {
	if len(s.entries) == cap(s.entries) {
		s.entries = append(make([]tally.Entry, 0, len(s.entries)+1), s.entries...)
	}
	s.entries = append(s.entries, e)
}

// Cover adds one more class of slices.
func (r *Rounds) Cover() { r.classes = append(r.classes, &tally.Tally{}) }

// Note adds a round that every waiting job was asked in.
func (r *Rounds) Note(class int, length time.Duration, now quantity.Instant) {
	r.all.Note(uint64(r.all.N+1), now)
	r.classes[class].Note(uint64(r.all.N), length, now)
}

// Begin counts for a job from now on, by what it answers.
func (r *Rounds) Begin(s *Share, by Answers) {
	s.all = r.all.N
	if by.Eligibility() != Eligible {
		return
	}
	for i := range by.Classes() {
		r.Extend(s, i, by.Need(i))
	}
}

// Extend counts for a job by what it needs of one more class.
func (r *Rounds) Extend(s *Share, class int, need time.Duration) {
	s.add(r.classes[class].Enter(need))
}

// End brings a job's counts up to date before its answers change.
func (r *Rounds) End(s *Share, by Answers, to *Counts) {
	r.AddTo(s, by, to)
	for i := range s.entries {
		r.classes[i].Leave(&s.entries[i])
	}
	s.entries = s.entries[:0]
}

// Settle brings a job's counts up to date.
func (r *Rounds) Settle(s *Share, by Answers, to *Counts) {
	r.AddTo(s, by, to)
	r.Skip(s)
}

// Skip leaves out of a job's counts what it has not counted yet.
func (r *Rounds) Skip(s *Share) {
	s.all = r.all.N
	for i := range s.entries {
		r.classes[i].Begin(&s.entries[i])
	}
}

// AddTo adds to some counts what a job has not counted yet. What a refusal said is that of the latest round.
func (r *Rounds) AddTo(s *Share, by Answers, to *Counts) {
	if why := by.Eligibility(); why != Eligible {
		if n := r.all.Since(s.all); n.N > 0 {
			to.Several(why, n.N, n.At)
		}
		return
	}
	latest := r.latest[:0]
	for i := range s.entries {
		long, short := r.classes[i].Count(&s.entries[i])
		latest = append(latest, seen{i, long, short})
	}
	slices.SortFunc(latest, func(a, b seen) int { return cmp.Compare(a.short.Round, b.short.Round) })
	r.latest = latest
	for i := range latest {
		n := &latest[i]
		if n.long.N > 0 {
			to.Several(LostToPolicy, n.long.N, n.long.At)
		}
		if n.short.N > 0 {
			to.SeveralRefusals(by.Refusal(n.class), n.short.N, n.short.At)
		}
	}
}
