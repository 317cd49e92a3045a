package ends

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// MostSpans bounds the spans that a curve remembers, the newest, and apart from them those that are still open, the oldest.
	MostSpans = 256
	// leastAtRisk and mostAtRisk bound how many spans must have outlived the present age before a curve says anything of it.
	leastAtRisk, mostAtRisk = 8, 64
	// whole is a probability of 1 inside a curve: fine enough that MostSpans roundings do not show in parts per million.
	whole = 1 << 40
)

// span is how long something lasted, or, cut, for how long at least.
type span struct {
	length time.Duration
	cut    bool
}

// shorter orders spans by length; of the same length those that ended are first, as Kaplan and Meier count.
func shorter(a, b span) int {
	if c := cmp.Compare(a.length, b.length); c != 0 || a.cut == b.cut {
		return c
	}
	if a.cut {
		return 1
	}
	return -1
}

// Curve is a survival curve: how long spans of one kind last. The zero value knows nothing.
type Curve struct {
	// aged are the newest spans, a ring once it is full; sorted the same by length.
	aged, sorted []span
	oldest       int
	// open are since when spans last that have not ended, in order.
	open []quantity.Instant
}

// Needed is how many spans must have outlived an age before a curve can bound the end at a chance of alpha (parts per million): enough that
// the first of them may end before a bound above 0, as far as a curve may be expected to come to that.
func Needed(alpha int64) int {
	return int(min(max(quantity.MulDiv(forecast.One, 1, max(1, alpha))-1, leastAtRisk), mostAtRisk))
}

// Add a span that is over: it ended after length, or, cut, lasted longer than that and nobody saw its end.
func (c *Curve) Add(length time.Duration, cut bool) {
	x := span{max(0, length), cut}
	if len(c.aged) < MostSpans {
		c.aged = append(c.aged, x)
	} else {
		at, _ := slices.BinarySearchFunc(c.sorted, c.aged[c.oldest], shorter)
		c.sorted = slices.Delete(c.sorted, at, at+1)
		c.aged[c.oldest] = x
		c.oldest = (c.oldest + 1) % MostSpans
	}
	at, _ := slices.BinarySearchFunc(c.sorted, x, shorter)
	c.sorted = slices.Insert(c.sorted, at, x)
}

// Open says that a span has begun. More than MostSpans at once are not counted.
func (c *Curve) Open(since quantity.Instant) {
	if len(c.open) == MostSpans {
		return
	}
	at, _ := slices.BinarySearch(c.open, since)
	c.open = slices.Insert(c.open, at, since)
}

// Close says that a span which began then is not open any more; one that was not counted is nobody's loss.
func (c *Curve) Close(since quantity.Instant) {
	if at, there := slices.BinarySearch(c.open, since); there {
		c.open = slices.Delete(c.open, at, at+1)
	}
}

// Len is how many spans that are over it knows.
func (c *Curve) Len() int { return len(c.sorted) }

// Residual is how much longer a span of this age lasts at least, with a chance of alpha (parts per million) to be wrong. It is one of the
// spans that are open. ok is false where fewer than are Needed have outlived that age. It is None where too few end to bound the end.
//
// Where nothing was cut the chance is exact for exchangeable spans: of n that outlived the age the bound is the k-th shortest, k =
// floor(alpha (n+1)), before which the next ends with a chance of k/(n+1) (as forecast.Rank, from the other end). With spans that were cut
// the product-limit estimate takes the place of the count.
func (c *Curve) Residual(now quantity.Instant, age time.Duration, alpha int64) (left time.Duration, ok bool) {
	from, _ := slices.BinarySearchFunc(c.sorted, age, func(s span, age time.Duration) int {
		if s.length <= age {
			return -1
		}
		return 1
	})
	// The youngest open span that is older than age; those before it are older still.
	open, _ := slices.BinarySearch(c.open, now.Add(-age))
	risk := len(c.sorted) - from + open
	if risk < Needed(alpha) {
		return 0, false
	}
	// One more, the span itself, ends first: so the bound holds for it too and not only for those that are known.
	survival := whole - quantity.MulDiv(whole, 1, int64(risk)+1)
	least := whole - quantity.MulDiv(whole, min(max(alpha, 0), forecast.One), forecast.One)
	if survival < least {
		return 0, true
	}
	for _, s := range c.sorted[from:] {
		for open > 0 && now.Sub(c.open[open-1]) < s.length {
			open--
			risk--
		}
		if !s.cut {
			if survival -= quantity.MulDiv(survival, 1, int64(risk)); survival < least {
				return s.length - age, true
			}
		}
		risk--
	}
	return None, true
}

// Oldest is the greatest age up to the given one that enough spans have outlived for Residual to say something at that chance; ok is
// false without one.
func (c *Curve) Oldest(now quantity.Instant, age time.Duration, alpha int64) (_ time.Duration, ok bool) {
	n, open := len(c.sorted), 0
	for range Needed(alpha) {
		switch {
		case open < len(c.open) && (n == 0 || now.Sub(c.open[open]) >= c.sorted[n-1].length):
			age = min(age, now.Sub(c.open[open])-1)
			open++
		case n > 0:
			n--
			age = min(age, c.sorted[n].length-1)
		default:
			return 0, false
		}
	}
	return age, age >= 0
}

// None stands for no end in sight.
const None = time.Duration(1<<63 - 1)
