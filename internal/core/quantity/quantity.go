// Package quantity holds the integer quantities the core computes with: instants, lengths of time and amounts of a
// resource. Everything is an integer so that two kinds of processor decide alike. It knows no clock and no unit of
// any particular resource.
package quantity

import (
	"math"
	"time"
)

// Amount is how much of one resource, in the resource's own unit (memory: bytes). It is never negative in a valid value.
type Amount int64

// Instant is a moment in nanoseconds since the Unix epoch. The core never reads a clock: it is handed instants.
type Instant int64

// Never is an end that is not known: later than every real instant.
const Never Instant = math.MaxInt64

// At converts a wall-clock time to an Instant.
func At(t time.Time) Instant { return Instant(t.UnixNano()) }

// Time converts back to UTC wall-clock time. Never converts to the zero time.
func (t Instant) Time() time.Time {
	if t == Never {
		return time.Time{}
	}
	return time.Unix(0, int64(t)).UTC()
}

// Add returns t+d and saturates at Never; Never plus anything is Never.
func (t Instant) Add(d time.Duration) Instant {
	if t == Never || (d > 0 && t > Never-Instant(d)) {
		return Never
	}
	return t + Instant(d)
}

// Sub returns t-u, saturating at the longest duration when t is Never.
func (t Instant) Sub(u Instant) time.Duration {
	if t == Never {
		return time.Duration(math.MaxInt64)
	}
	return time.Duration(t - u)
}

// MulDiv returns a*b/c rounded up, for non-negative a, b and positive c, without overflowing in between as long as
// the result fits. It saturates at the largest int64.
func MulDiv(a, b, c int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	hi, lo := mul64(uint64(a), uint64(b))
	lo2 := lo + uint64(c-1)
	if lo2 < lo {
		hi++
	}
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q := div64(hi, lo2, uint64(c))
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}
