package job

import (
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
)

// Stop says when a trial is stopped for what its metric says: by asynchronous successive halving, in the form in which a trial that is not
// promoted is stopped, and nothing is run again (Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020). A trial
// comes to a rung with a step; there it is compared with what is known of the others at that rung, and goes on if it is among the best
// 1/Reduction of them, itself included.
type Stop struct {
	// Reduction is 2 to 16; 0: no trial is stopped.
	Reduction int64
	// From is the step of the first rung, at least 1. Each later one is Reduction times as far.
	From int64
	// Maximize: more of the metric is better. Else less is.
	Maximize bool
}

// MaxRungs bounds the rungs of a sweep: by then its steps are 2^15 times those of the first rung at least.
const MaxRungs = 16

// Rung is the last rung that a trial has come to by a step, from 0; -1: none.
func (s *Stop) Rung(step int64) int {
	rung := -1
	for at := max(1, s.From); at <= step && rung < MaxRungs-1; rung++ {
		if at > math.MaxInt64/s.Reduction {
			return rung + 1
		}
		at *= s.Reduction
	}
	return rung
}

// Score is what a trial was worth at a rung: an integer that is the larger the better its metric was.
type Score struct {
	Rung  int
	Worth int64
}

// Tried is what a subjob has found out of trials that have ended. It is never changed.
type Tried struct {
	// Scores are what they were worth at the rungs to which they came; Hopeless is how many of them were stopped for it.
	Scores   []Score
	Hopeless int64
}

// Bar is what is known of a rung: of Known trials Ahead are worth at least Worth.
type Bar struct {
	Rung         int
	Known, Ahead int64
	Worth        int64
}

// BarOf is the bar of a rung at which trials have these worths, the best first: as high as the next one has to come.
func (s *Stop) BarOf(rung int, best []int64) Bar {
	n := int64(len(best))
	ahead := min(n, s.keep(n+1))
	return Bar{Rung: rung, Known: n, Ahead: ahead, Worth: best[ahead-1]}
}

// keep is how many of n trials go on.
func (s *Stop) keep(n int64) int64 { return (n + s.Reduction - 1) / s.Reduction }

// Hopeless says that a trial with a worth is not among the best of those at a rung: of what bar knows, if anything, and of others besides.
// Nobody is among fewer than Reduction. It never says so of one that would go on if all were known one by one: of those at the bar
// nobody is taken for better unless the bar is.
func (s *Stop) Hopeless(worth int64, bar Bar, others []int64) bool {
	n := bar.Known + int64(len(others)) + 1
	if n < s.Reduction {
		return false
	}
	better := int64(0)
	if bar.Worth > worth {
		better = bar.Ahead
	}
	for _, o := range others {
		if o > worth {
			better++
		}
	}
	return better >= s.keep(n)
}

// Scores are what trials of a sweep were worth, for each rung the best first.
type Scores [][]int64

// Add adds what trials were worth, if anything. Its receiver is changed.
func (s Scores) Add(t *Tried) Scores {
	if t == nil {
		return s
	}
	for _, one := range t.Scores {
		if one.Rung < 0 || one.Rung >= MaxRungs {
			continue
		}
		for len(s) <= one.Rung {
			s = append(s, nil)
		}
		at, _ := slices.BinarySearchFunc(s[one.Rung], one.Worth, func(a, b int64) int {
			if a >= b { // the best first, and equal ones in the order in which they came
				return -1
			}
			return 1
		})
		s[one.Rung] = slices.Insert(s[one.Rung], at, one.Worth)
	}
	return s
}

// Bars are those of all rungs to which a trial has come.
func (s Scores) Bars(by *Stop) (list []Bar) {
	if by.Reduction == 0 {
		return nil
	}
	for rung, best := range s {
		if len(best) > 0 {
			list = append(list, by.BarOf(rung, best))
		}
	}
	return list
}

// Mix mixes the scores into a digest; without any it is that of before there were scores.
func (s Scores) Mix(h digest.Hash) digest.Hash {
	if len(s) > 0 {
		h = h.Text("scores")
	}
	for _, rung := range s {
		h = h.Int(int64(len(rung))).Int(rung...)
	}
	return h
}

// Clone shares nothing with s.
func (s Scores) Clone() Scores {
	c := slices.Clone(s)
	for i := range c {
		c[i] = slices.Clone(c[i])
	}
	return c
}
