package market

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/tally"
)

// What a job counts in a round follows from what it answers to windows of a kind, and that does not change while it rests in the
// index: so rounds are counted by what is needed in them, and a job's share is taken when somebody asks for it or when the job
// changes. A round costs nothing for those who lose it.

// asked are the rounds that every waiting job was asked in.
type asked struct {
	all tally.Seen
	// by class of slices, in their order, rounds by their length.
	classes []*tally.Tally
	// latest is room for what a job has seen of each class.
	latest []seen
}

// seen is how many windows of a class were long enough for a job, and how many too short.
type seen struct {
	class       int
	long, short tally.Seen
}

// counting is what a job in the index had seen when its counts were last complete.
type counting struct {
	all     int64
	entries []tally.Entry // by class, of a job that is eligible
}

// add makes room for one more entry and no others: there are as many as classes, which seldom change.
func (c *counting) add(e tally.Entry) {
	if len(c.entries) == cap(c.entries) {
		c.entries = append(make([]tally.Entry, 0, len(c.entries)+1), c.entries...)
	}
	c.entries = append(c.entries, e)
}

// remember adds a round that every waiting job was asked in.
func (f *Floor) remember(class int, length time.Duration, now quantity.Instant) {
	f.asked.all.Note(uint64(f.asked.all.N+1), now)
	f.asked.classes[class].Note(uint64(f.asked.all.N), length, now)
}

// startCounting has a job that was just put into the index count from now on, by what it needs.
func (f *Floor) startCounting(j *Job) {
	j.counting.all = f.asked.all.N
	if j.ineligible != Eligible {
		return
	}
	for i := range j.answers {
		j.counting.add(f.asked.classes[i].Enter(j.answers[i].need))
	}
}

// stopCounting brings a job's counts up to date before it leaves the index.
func (f *Floor) stopCounting(j *Job) {
	f.countTo(j, &j.counts)
	for i := range j.counting.entries {
		f.asked.classes[i].Leave(&j.counting.entries[i])
	}
	j.counting.entries = j.counting.entries[:0]
}

// count brings a job's counts up to date.
func (f *Floor) count(j *Job) {
	f.countTo(j, &j.counts)
	f.discount(j)
}

// discount has a job in the index forget the rounds that it has not counted yet.
func (f *Floor) discount(j *Job) {
	j.counting.all = f.asked.all.N
	for i := range j.counting.entries {
		f.asked.classes[i].Begin(&j.counting.entries[i])
	}
}

// Counts are why the job was not served as they are now, for people: nothing is kept of it.
func (f *Floor) Counts(j *Job) Counts {
	c := Counts{slices.Clone(j.counts.List)}
	f.countTo(j, &c)
	return c
}

// countTo adds to c what a job in the index has not counted yet. What a refusal said is that of the latest round.
func (f *Floor) countTo(j *Job, c *Counts) {
	if !j.indexed {
		return
	}
	if j.ineligible != Eligible {
		if s := f.asked.all.Since(j.counting.all); s.N > 0 {
			c.several(j.ineligible, s.N, s.At)
		}
		return
	}
	latest := f.asked.latest[:0]
	for i := range j.counting.entries {
		long, short := f.asked.classes[i].Count(&j.counting.entries[i])
		latest = append(latest, seen{i, long, short})
	}
	slices.SortFunc(latest, func(a, b seen) int { return cmp.Compare(a.short.Round, b.short.Round) })
	f.asked.latest = latest
	for i := range latest {
		s := &latest[i]
		if s.long.N > 0 {
			c.several(LostToPolicy, s.long.N, s.long.At)
		}
		if s.short.N > 0 {
			refusal := j.answers[s.class].refusal
			c.several(reasonOf[refusal.Why], s.short.N, s.short.At).Refusal = refusal
		}
	}
}

// countIn counts a round that only jobs which have changed were asked in, for a window of a class and length that the job lost or
// could not use.
func (j *Job) countIn(class int, length time.Duration, now quantity.Instant) {
	switch {
	case j.ineligible != Eligible:
		j.counts.add(j.ineligible, now)
	case j.answers[class].need <= length:
		j.counts.add(LostToPolicy, now)
	default:
		j.counts.refusal(j.answers[class].refusal, now)
	}
}
