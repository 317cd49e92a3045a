package starvation_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestTheBudgetIsExactAndBounds: what is in it is what a bucket of rational numbers holds, however often it is looked at, and in any
// stretch of time no more is given than the share of the capacity in it and in a burst before, and one grant.
func TestTheBudgetIsExactAndBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share, capacity := rapid.Int64Range(1, 1000).Draw(t, "share"), rapid.Int64Range(1, 20_000).Draw(t, "capacity")
		var b starvation.Budget
		b.SetShare(share)
		b.Capacity(capacity)
		now := quantity.Instant(1e18)
		b.Fill(now)
		whole, full := new(big.Rat), big.NewRat(capacity*starvation.Burst.Milliseconds()*share, 1000)
		type grant struct {
			at   quantity.Instant
			cost int64
		}
		var grants []grant
		var most int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			ms := rapid.Int64Range(0, 1<<rapid.IntRange(0, 29).Draw(t, "magnitude")).Draw(t, "ms")
			now = now.Add(time.Duration(ms)*time.Millisecond + time.Duration(rapid.Int64Range(0, 1).Draw(t, "odd")))
			b.Fill(now)
			if rapid.Bool().Draw(t, "asks") && b.Credit() > 0 {
				cost := starvation.Cost(time.Duration(rapid.Int64Range(1, int64(72*time.Hour)).Draw(t, "length")), 1000)
				b.Spend(cost)
				grants, most = append(grants, grant{now, cost}), max(most, cost)
			}
		}
		// The same by hand, in one step between two grants.
		at := quantity.Instant(1e18)
		fill := func(to quantity.Instant) {
			ms := (int64(to)-1e18)/1e6 - (int64(at)-1e18)/1e6
			whole.Add(whole, new(big.Rat).Mul(big.NewRat(ms, 1000), big.NewRat(capacity*share, 1)))
			if at = to; whole.Cmp(full) > 0 {
				whole.Set(full)
			}
		}
		for i, g := range grants {
			fill(g.at)
			if whole.Sign() <= 0 {
				t.Fatalf("grant %d was given without credit", i)
			}
			whole.Sub(whole, big.NewRat(g.cost, 1))
		}
		fill(now)
		if floor := new(big.Int).Div(whole.Num(), whole.Denom()); floor.Int64() != b.Credit() && whole.Cmp(full) < 0 {
			t.Fatalf("it holds %d, by hand %s", b.Credit(), whole.FloatString(3))
		}
		for i := range grants {
			sum := int64(0)
			for k := i; k < len(grants); k++ {
				sum += grants[k].cost
				ms := int64(grants[k].at-grants[i].at)/1e6 + 1 + starvation.Burst.Milliseconds()
				if bound := ms*capacity/1000*share + ms + most + capacity*share; sum > bound {
					t.Fatalf("from %d to %d %d is given, more than %d", i, k, sum, bound)
				}
			}
		}
		switch again := b.Solvent(0); {
		case again < now.Add(-time.Millisecond):
			t.Fatalf("it is to be solvent at %d, before %d", again, now)
		case b.Credit() <= 0 && again < now.Add(time.Hour*24*365*9):
			before := b
			if before.Fill(again.Add(-2 * time.Millisecond)); before.Credit() > 1 {
				t.Fatalf("it is solvent before %d", again)
			}
			if b.Fill(again.Add(time.Second)); b.Credit() < 0 {
				t.Fatalf("it was to be solvent at %d and holds %d", again, b.Credit())
			}
		}
	})
}

func TestDue(t *testing.T) {
	l := starvation.Limit{After: time.Hour, Slowdown: 10}
	for length, want := range map[time.Duration]quantity.Instant{0: 3600e9, time.Minute: 3600e9, time.Hour: 36000e9} {
		if got := l.Due(0, length); got != want {
			t.Errorf("a job of %v is late at %d, want %d", length, got, want)
		}
	}
	l.After = -1
	if l.Due(0, time.Hour) != quantity.Never {
		t.Error("who never starves is late")
	}
	for _, bad := range []starvation.Limit{{Slowdown: -1}, {Share: 1001}, {Share: -5}, {Places: 1000}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is good", bad)
		}
	}
}
