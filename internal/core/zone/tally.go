package zone

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
func (z *Zone) count(s *state) {
	z.countTo(s, &s.counts)
	s.counted = z.tally.end()
}

// countsOf are a job's counts as they are now, for people: nothing is kept of it.
func (z *Zone) countsOf(s *state) counts {
	c := counts{slices.Clone(s.counts.list)}
	z.countTo(s, &c)
	return c
}

// countTo adds to c what the job has not counted yet.
func (z *Zone) countTo(s *state, c *counts) {
	if !s.indexed {
		return
	}
	for n := max(s.counted, z.tally.base); n < z.tally.end(); n++ {
		r := &z.tally.rounds[n-z.tally.base]
		s.countIn(c, r.class, r.length, 1, r.at)
	}
}

// countIn counts n rounds for windows of a class and length that the job lost or could not use.
func (s *state) countIn(c *counts, class int, length time.Duration, n int64, last quantity.Instant) {
	if s.deaf != interested {
		c.several(s.deaf, n, last)
		return
	}
	a := &s.answers[class]
	if a.need <= length {
		c.several(lostToPolicy, n, last)
		return
	}
	r := reasonOf[a.refusal.Why]
	c.several(r, n, last).refusal = a.refusal
}

// remember adds a round that every waiting job was asked in.
func (z *Zone) remember(class int, length time.Duration, now quantity.Instant) {
	if len(z.tally.rounds) == tallySize {
		z.countAll()
	}
	z.tally.rounds = append(z.tally.rounds, asked{length, class, now})
}

// countAll counts everything for everybody and forgets it. Sorted by length, the rounds that a job could not use come
// first; the last of them and the last of the others are known from running maxima.
func (z *Zone) countAll() {
	rounds := z.tally.rounds
	for class := range z.classes {
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
			j := len(of) - 1 - i
			after[j] = max(after[j], after[j+1])
		}
		for _, s := range z.live {
			if !s.indexed || s.counted > z.tally.base {
				continue
			}
			short := 0
			if s.deaf == interested {
				short = sort.Search(len(of), func(i int) bool { return rounds[of[i]].length >= s.answers[class].need })
			}
			if short > 0 {
				s.countIn(&s.counts, class, rounds[of[short-1]].length, int64(short), rounds[before[short-1]].at)
			}
			if short < len(of) {
				s.countIn(&s.counts, class, rounds[of[short]].length, int64(len(of)-short), rounds[after[short]].at)
			}
		}
	}
	for _, s := range z.live {
		if s.counted > z.tally.base {
			z.count(s)
		}
		s.counted = z.tally.end()
	}
	z.tally.base, z.tally.rounds = z.tally.end(), rounds[:0]
}
