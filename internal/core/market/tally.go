package market

import (
	"slices"
	"sort"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// tally remembers the last rounds that every waiting job was asked in. What a job would have counted in them follows from
// what it answers to windows of a kind, which does not change while the job rests in the index: so it is counted when
// somebody asks for it, when the job changes, or when the tally is full, and a round costs nothing for those who lose it.
type tally struct {
	// base is the number of the first round that is remembered.
	base   uint64
	rounds []asked
}

// asked is one round.
type asked struct {
	length time.Duration
	class  int
	at     quantity.Instant
}

// tallySize bounds what is remembered. Counting a full tally for all jobs costs about 50 ns a job and class.
const tallySize = 1024

// end is the number of the next round.
func (t *tally) end() uint64 { return t.base + uint64(len(t.rounds)) }

// count brings a job's counts up to date.
func (f *Floor) count(j *Job) {
	f.countTo(j, &j.counts)
	j.counted = f.tally.end()
}

// Counts are why the job was not served as they are now, for people: nothing is kept of it.
func (f *Floor) Counts(j *Job) Counts {
	c := Counts{slices.Clone(j.counts.List)}
	f.countTo(j, &c)
	return c
}

// countTo adds to c what the job has not counted yet.
func (f *Floor) countTo(j *Job, c *Counts) {
	if !j.indexed {
		return
	}
	for n := max(j.counted, f.tally.base); n < f.tally.end(); n++ {
		r := &f.tally.rounds[n-f.tally.base]
		j.countIn(c, r.class, r.length, 1, r.at)
	}
}

// countIn counts n rounds for windows of a class and length that the job lost or could not use.
func (j *Job) countIn(c *Counts, class int, length time.Duration, n int64, last quantity.Instant) {
	if j.ineligible != Eligible {
		c.several(j.ineligible, n, last)
		return
	}
	a := &j.answers[class]
	if a.need <= length {
		c.several(LostToPolicy, n, last)
		return
	}
	r := reasonOf[a.refusal.Why]
	c.several(r, n, last).Refusal = a.refusal
}

// remember adds a round that every waiting job was asked in.
func (f *Floor) remember(class int, length time.Duration, now quantity.Instant) {
	if len(f.tally.rounds) == tallySize {
		f.countAll()
	}
	f.tally.rounds = append(f.tally.rounds, asked{length, class, now})
}

// countAll counts everything for everybody and forgets it. Sorted by length, the rounds that a job could not use come
// first; the last of them and the last of the others are known from running maxima.
func (f *Floor) countAll() {
	rounds := f.tally.rounds
	for class := range f.classes {
		var of []int32
		for i := range rounds {
			if rounds[i].class == class {
				of = append(of, int32(i))
			}
		}
		if len(of) == 0 {
			continue
		}
		slices.SortFunc(of, func(a, b int32) int { return int(min(1, max(-1, rounds[a].length-rounds[b].length))) })
		before, after := slices.Clone(of), slices.Clone(of)
		for i := 1; i < len(of); i++ {
			before[i] = max(before[i], before[i-1])
			k := len(of) - 1 - i
			after[k] = max(after[k], after[k+1])
		}
		for _, j := range f.jobs {
			if !j.indexed || j.counted > f.tally.base {
				continue
			}
			short := 0
			if j.ineligible == Eligible {
				short = sort.Search(len(of), func(i int) bool { return rounds[of[i]].length >= j.answers[class].need })
			}
			if short > 0 {
				j.countIn(&j.counts, class, rounds[of[short-1]].length, int64(short), rounds[before[short-1]].at)
			}
			if short < len(of) {
				j.countIn(&j.counts, class, rounds[of[short]].length, int64(len(of)-short), rounds[after[short]].at)
			}
		}
	}
	for _, j := range f.jobs {
		if j.counted > f.tally.base {
			f.count(j)
		}
		j.counted = f.tally.end()
	}
	f.tally.base, f.tally.rounds = f.tally.end(), rounds[:0]
}
