package ends_test

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/quantity"
)

// life is a span: it ended after length, or, cut, nobody saw its end.
type life struct {
	length int64
	cut    bool
}

// oracle is the largest time beyond age that a span lasts but for a chance, read, by the product-limit formula in fractions, where enough
// are known for ppm: the span itself counts as one that ends first. Lives are all that are over and, cut, those that are open. None where
// it never comes to that.
func oracle(lives []life, age, ppm, read int64) (left int64, ok bool) {
	alpha := big.NewRat(read, 1_000_000)
	n := 0
	for _, l := range lives {
		if l.length > age {
			n++
		}
	}
	if n < ends.Needed(ppm) {
		return 0, false
	}
	one := big.NewRat(1, 1)
	survival, least := big.NewRat(int64(n), int64(n)+1), new(big.Rat).Sub(one, alpha)
	if survival.Cmp(least) < 0 {
		return 0, true
	}
	var times []int64
	for _, l := range lives {
		if !l.cut && l.length > age {
			times = append(times, l.length)
		}
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		died, risk := int64(0), int64(0)
		for _, l := range lives {
			if l.length >= t {
				risk++
				if l.length == t && !l.cut {
					died++
				}
			}
		}
		if survival.Mul(survival, new(big.Rat).Sub(one, big.NewRat(died, risk))); survival.Cmp(least) < 0 {
			return t - age, true
		}
	}
	return int64(ends.None), true
}

// TestACurveIsTheProductLimit: whatever ended, was cut or is open, the residual is that of the formula, counted by hand in fractions; where
// alpha is met to the last digit it may be what comes with a part per million less.
func TestACurveIsTheProductLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c ends.Curve
		var lives []life
		const now = 1000
		for range rapid.IntRange(0, 60).Draw(t, "over") {
			l := life{rapid.Int64Range(0, 40).Draw(t, "length"), rapid.IntRange(0, 3).Draw(t, "cut") == 0}
			c.Add(time.Duration(l.length), l.cut)
			lives = append(lives, l)
		}
		for range rapid.IntRange(0, 20).Draw(t, "open") {
			age := rapid.Int64Range(0, 40).Draw(t, "age")
			c.Open(quantity.Instant(now - age))
			lives = append(lives, life{age, true})
		}
		for range rapid.IntRange(0, 5).Draw(t, "closed") { // one that was open is over
			i := slices.IndexFunc(lives[c.Len():], func(life) bool { return true })
			if i < 0 {
				break
			}
			i += c.Len()
			l := lives[i]
			lives = slices.Delete(lives, i, i+1)
			c.Close(quantity.Instant(now - l.length))
			c.Add(time.Duration(l.length), false)
			lives = slices.Insert(lives, 0, life{l.length, false})
		}
		age, alpha := rapid.Int64Range(0, 45).Draw(t, "at"), rapid.Int64Range(0, 999_999).Draw(t, "alpha")
		got, ok := c.Residual(now, time.Duration(age), alpha)
		most, known := oracle(lives, age, alpha, alpha)
		least, _ := oracle(lives, age, alpha, max(0, alpha-1))
		if ok != known || int64(got) > most || int64(got) < least {
			t.Fatalf("%d, %v; want %d to %d, %v", got, ok, least, most, known)
		}
	})
}

// TestWithoutCutsItIsARank: of n spans that ended the bound is the k-th shortest, k = floor(alpha (n+1)).
func TestWithoutCutsItIsARank(t *testing.T) {
	var c ends.Curve
	for i := range 19 {
		c.Add(time.Duration(10*(i+1)), false)
	}
	for alpha, want := range map[int64]time.Duration{52_000: 10, 101_000: 20, 501_000: 100} {
		if got, ok := c.Residual(0, 0, alpha); !ok || got != want {
			t.Errorf("alpha %d: %d, %v; want %d", alpha, got, ok, want)
		}
	}
	if got, ok := c.Residual(0, 100, 201_000); !ok || got != 20 { // of the nine that outlive 100 the second, k = floor(.2 * 10)
		t.Errorf("at 100: %d, %v", got, ok)
	}
}

// TestTheNewestSpansStay: what is older than MostSpans spans counts no more, and no more are open than that.
func TestTheNewestSpansStay(t *testing.T) {
	var c ends.Curve
	for range 1000 {
		c.Add(time.Hour, false)
	}
	for range ends.MostSpans {
		c.Add(time.Minute, false)
	}
	if got, _ := c.Residual(0, 0, 900_000); got != time.Minute || c.Len() != ends.MostSpans {
		t.Errorf("%v of %d", got, c.Len())
	}
	for i := range 3 * ends.MostSpans {
		c.Open(quantity.Instant(i))
	}
	if got, _ := c.Residual(0, 2*time.Minute, 500_000); got != 0 {
		t.Errorf("nothing has outlived two minutes, and %v are left", got)
	}
}

// TestOldestIsAnAgeThatIsKnown: the age that is given back is known of, and no greater one up to that which was asked for.
func TestOldestIsAnAgeThatIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c ends.Curve
		const now = 1000
		for range rapid.IntRange(0, 80).Draw(t, "over") {
			c.Add(time.Duration(rapid.Int64Range(0, 40).Draw(t, "length")), false)
		}
		for range rapid.IntRange(0, 30).Draw(t, "open") {
			c.Open(quantity.Instant(now - rapid.Int64Range(0, 40).Draw(t, "age")))
		}
		asked := time.Duration(rapid.IntRange(0, 50).Draw(t, "asked"))
		alpha := rapid.Int64Range(0, 300_000).Draw(t, "alpha")
		want, known := time.Duration(-1), false
		for age := asked; age >= 0 && !known; age-- {
			if _, known = c.Residual(now, age, alpha); known {
				want = age
			}
		}
		if got, ok := c.Oldest(now, asked, alpha); ok != known || known && got != want {
			t.Fatalf("%d, %v; want %d, %v", got, ok, want, known)
		}
	})
}
