package forecast

import (
	"slices"
	"testing"
)

// rolled makes the candidates of a series.
func rolled(s *Series, fold func(k int) int) (*roller, []candidate) {
	r := &roller{Series: s, fold: make([]int, len(s.Pods)), hours: s.Steps / hour}
	for k := range s.Pods {
		r.fold[k] = fold(k)
	}
	return r, append(r.plain(), r.learned()...)
}

func everyRule(*candidate) bool { return true }

// TestRollingSeesNeitherTheFutureNorTheJudged: with another future the choice for an hour is the same, and so is what was
// judged of hours whose outcomes were known; with other pods in a fold the choice for that fold is the same.
func TestRollingSeesNeitherTheFutureNorTheJudged(t *testing.T) {
	const hours, cut = 7, 5
	fold := func(k int) int { return k % folds }
	_, before := rolled(synthetic(8, hours*hour, 3), fold)

	late := synthetic(8, hours*hour, 3)
	for k := range late.Pods {
		for i := cut * hour; i < late.Steps; i++ {
			late.Pods[k].Use[i] = Capacity - 3*late.Pods[k].Use[i]/2
		}
	}
	late.outcomes()
	_, after := rolled(late, fold)
	for f := range folds {
		for _, asked := range []float64{5, 1} {
			for h := history + known; h <= cut; h++ {
				if a, b := choose(before, everyRule, h, f, asked), choose(after, everyRule, h, f, asked); a.name != b.name ||
					a.asked != b.asked {
					t.Errorf("hour %d, fold %d: %s, and %s with another future", h, f, a.name, b.name)
				}
			}
		}
	}
	differs := false
	for i := range before {
		for h := range hours {
			if same := before[i].judged[h] == after[i].judged[h]; h <= cut-known && !same {
				t.Fatalf("%s: hour %d is judged by its future", before[i].name, h)
			} else if !same {
				differs = true
			}
		}
	}
	if !differs {
		t.Error("another future changes nothing")
	}

	const other = 2
	moved := synthetic(8, hours*hour, 3)
	for k := range moved.Pods {
		if fold(k) == other {
			for i := range moved.Pods[k].Use {
				moved.Pods[k].Use[i] = Capacity - moved.Pods[k].Use[i]
			}
		}
	}
	moved.outcomes()
	_, elsewhere := rolled(moved, fold)
	for i := range before {
		if !equalShown(before[i].shown[other], elsewhere[i].shown[other], other) {
			t.Fatalf("%s: what is chosen by for a fold knows its pods", before[i].name)
		}
		if before[i].judged[hours-2][other] == elsewhere[i].judged[hours-2][other] {
			t.Fatalf("%s: other pods are judged alike", before[i].name)
		}
	}
}

// equalShown compares what is shown of the other folds.
func equalShown(a, b [][folds]Score, but int) bool {
	for h := range a {
		for g := range folds {
			if g != but && a[h][g] != b[h][g] {
				return false
			}
		}
	}
	return true
}

// TestChoice: the cheapest that kept what was asked; where none did the one that came nearest.
func TestChoice(t *testing.T) {
	r := &roller{hours: 6}
	of := func(name string, misses int, bound int64) candidate {
		c := r.blank(name)
		for h := range r.hours {
			for n := range 100 {
				peak := int64(100)
				if n < misses {
					peak = bound + 1
				}
				for f := range folds {
					c.shown[f][h][1].add(bound, peak)
				}
			}
		}
		return c
	}
	all := []candidate{of("dear", 0, 300), of("cheap", 3, 150), of("cheaper", 8, 120), of("cheapest", 20, 101)}
	for asked, want := range map[float64]string{0: "dear", 1: "dear", 3: "cheap", 8: "cheaper", 50: "cheapest"} {
		if got := choose(all, everyRule, 5, 0, asked); got.name != want {
			t.Errorf("asked %v: %s, want %s", asked, got.name, want)
		}
	}
	if got := choose(all[1:], everyRule, 5, 0, 1); got.name != "cheap" {
		t.Errorf("none keeps 1%%: %s, want the one that misses least", got.name)
	}
}

// TestRollingLines: the ways to choose are judged on the same predictions as the default, and say what they picked.
func TestRollingLines(t *testing.T) {
	r := synthetic(12, 9*hour, 5).Roll()
	if r.First != 5 || r.Hours != 4 || r.Default.Rule != "most of 3 h x 1.45" || r.Former.Rule == "" || len(r.Ways) != 6 ||
		r.Default.Predictions == 0 {
		t.Fatalf("%+v", r)
	}
	for _, w := range slices.Concat(r.Ways, r.Fixed, []Rolled{r.Former}) {
		if w.Predictions != r.Default.Predictions || w.Worst < w.UnderRate() {
			t.Errorf("%+v", w)
		}
	}
	for _, w := range r.Ways {
		if len(w.Picked) != folds || slices.Contains(w.Picked, "") {
			t.Errorf("%+v", w)
		}
	}
	if short := synthetic(3, 3*hour, 1).Roll(); short.Hours != 0 || short.Default.Predictions != 0 {
		t.Errorf("%+v", short)
	}
}
