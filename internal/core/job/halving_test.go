package job_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
)

func TestRungs(t *testing.T) {
	for _, c := range []struct {
		reduction, from int64
		want            map[int64]int
	}{
		{3, 1, map[int64]int{0: -1, 1: 0, 2: 0, 3: 1, 8: 1, 9: 2, 80: 3, 81: 4}},
		{2, 10, map[int64]int{9: -1, 10: 0, 19: 0, 20: 1, 160: 4}},
		{16, 1 << 40, map[int64]int{1<<40 - 1: -1, 1 << 40: 0, 1 << 44: 1, math.MaxInt64: 5}},
		{2, 1, map[int64]int{math.MaxInt64: job.MaxRungs - 1, -5: -1}},
	} {
		s := job.Stop{Reduction: c.reduction, From: c.from}
		for step, want := range c.want {
			if got := s.Rung(step); got != want {
				t.Errorf("from %d by %d: step %d is rung %d, want %d", c.from, c.reduction, step, got, want)
			}
		}
	}
}

// TestNobodyGoodIsStopped: whatever is known where, a trial is stopped only if so many of all that are known were better that it is not
// among the best 1/Reduction, and none of fewer than Reduction; where all is known at one place it is stopped if that is so.
func TestNobodyGoodIsStopped(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := job.Stop{Reduction: rapid.Int64Range(2, 5).Draw(r, "reduction"), From: 1}
		worths := rapid.SliceOfN(rapid.Int64Range(-6, 6), 0, 25)
		told, own, worth := worths.Draw(r, "told"), worths.Draw(r, "own"), rapid.Int64Range(-7, 7).Draw(r, "worth")
		var known job.Scores
		for _, w := range told { // in any number of results
			known = known.Add(&job.Tried{Scores: []job.Score{{Rung: 2, Worth: w}}})
		}
		var bar job.Bar
		if bars := known.Bars(&s); len(told) > 0 {
			if len(bars) != 1 || bars[0].Rung != 2 || bars[0].Known != int64(len(told)) {
				r.Fatalf("the bars are %+v", bars)
			}
			bar = bars[0]
		}
		all := slices.Concat(told, own)
		better := 0
		for _, w := range all {
			if w > worth {
				better++
			}
		}
		n := len(all) + 1
		best := (n + int(s.Reduction) - 1) / int(s.Reduction)
		hopeless := n >= int(s.Reduction) && better >= best
		got := s.Hopeless(worth, bar, own)
		if got && !hopeless {
			r.Fatalf("%d is stopped, and %d of %d are better", worth, better, n)
		}
		if (len(told) == 0 || len(own) == 0) && got != hopeless {
			r.Fatalf("%d is not stopped, and %d of %d are better", worth, better, n)
		}
	})
}

func TestScoresKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var s job.Scores
		var want [3][]int64
		for _, one := range rapid.SliceOf(rapid.Custom(func(r *rapid.T) job.Score {
			return job.Score{Rung: rapid.IntRange(-1, 2).Draw(r, "rung"), Worth: rapid.Int64Range(0, 9).Draw(r, "worth")}
		})).Draw(r, "scores") {
			before := s.Clone()
			sum := before.Mix(digest.New()).Sum()
			s = s.Add(&job.Tried{Scores: []job.Score{one, {Rung: job.MaxRungs}}})
			if before.Mix(digest.New()).Sum() != sum {
				r.Fatal("a clone has changed")
			}
			if one.Rung >= 0 {
				want[one.Rung] = append(want[one.Rung], one.Worth)
			}
		}
		for rung, list := range s {
			slices.SortFunc(want[rung], func(a, b int64) int { return int(b - a) })
			if !slices.Equal(list, want[rung]) {
				r.Fatalf("rung %d has %v, want %v", rung, list, want[rung])
			}
		}
	})
}
