//go:build kubernetes

package pilots

import (
	"slices"
	"testing"
	"time"
)

// TestWishesStrikeHalf: in each round half of the machines are wished for, each once, in its first half; a seed draws the same again.
func TestWishesStrikeHalf(t *testing.T) {
	const round = 40 * time.Second
	for _, c := range []struct{ rounds, machines, want int }{{1, 2, 1}, {3, 4, 2}, {5, 5, 3}, {2, 1, 1}} {
		drawn := map[int]bool{}
		for seed := range uint64(20) {
			all := wishes(seed, c.rounds, round, c.machines, 8)
			if !slices.Equal(all, wishes(seed, c.rounds, round, c.machines, 8)) {
				t.Errorf("seed %d draws two ways", seed)
			}
			had := map[[2]int]bool{}
			for _, x := range all {
				r := int(x.at / round)
				if x.at-time.Duration(r)*round >= round/2 || x.machine < 0 || x.machine >= c.machines || x.seconds < 4 || x.seconds > 8 {
					t.Errorf("drawn is %+v", x)
				}
				had[[2]int{r, x.machine}], drawn[x.machine] = true, true
			}
			if len(all) != c.rounds*c.want || len(had) != len(all) {
				t.Errorf("%d wishes in %d rounds, of %d machines in a round: %+v", len(all), c.rounds, c.machines, all)
			}
		}
		if len(drawn) != c.machines {
			t.Errorf("of %d machines only %d are ever wished for", c.machines, len(drawn))
		}
	}
}

func TestAMedianIsOfTheTurns(t *testing.T) {
	few, many := &rate{}, &rate{}
	for i, turn := range []struct{ few, many int }{{10, 20}, {10, 100}, {30, 90}} {
		few.add(turn.few, time.Second, i)
		many.add(turn.many, 2*time.Second, i)
	}
	if got := many.beside(few); got != 1.5 { // 1, 5, 1.5
		t.Errorf("beside it are %g", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("the median of four is %g", got)
	}
}
