package survival

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// rateWindow is over how long growth is averaged: a process that starts is no trend.
	rateWindow = 2 * time.Second
	// rateStep is how far apart what is remembered is at least, and ratePoints is room for all of a window.
	rateStep   = rateWindow / 16
	ratePoints = 18
)

// Rate is how fast a number grows, over the last two seconds. The zero value has seen nothing.
type Rate struct {
	at    [ratePoints]time.Duration
	value [ratePoints]int64
	// first point of n, in a ring.
	first, n int
}

// Add takes in a value, and returns what it grows by in a second. As long as less than the window is known the rest of it counts as
// without growth.
func (r *Rate) Add(now time.Duration, value int64) quantity.Amount {
	// The oldest point that is left is the last one that is no younger than the window.
	for r.n > 1 && now-r.at[(r.first+1)%ratePoints] >= rateWindow {
		r.first, r.n = (r.first+1)%ratePoints, r.n-1
	}
	if last := (r.first + r.n + ratePoints - 1) % ratePoints; r.n == 0 || now-r.at[last] >= rateStep {
		if r.n == ratePoints {
			r.first, r.n = (r.first+1)%ratePoints, r.n-1
		}
		next := (r.first + r.n) % ratePoints
		r.at[next], r.value[next] = now, value
		r.n++
	}
	over := max(now-r.at[r.first], rateWindow)
	grown, sign := value-r.value[r.first], quantity.Amount(1)
	if grown < 0 {
		grown, sign = -grown, -1
	}
	return sign * quantity.Amount(quantity.MulDiv(grown, int64(time.Second), int64(over)))
}
