package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Ask has every waiting job answer a window of the n-th class, and returns how many are interested.
func Ask(z *Zone, now quantity.Instant, n int, length time.Duration) int {
	z.listen(now)
	a := z.answersTo(now, z.classes[n%len(z.classes)], &window{start: now, end: now.Add(length)}, len(z.live))
	return a.interested
}

// First finds the job that the policy asks first for such a window, whether there is one.
func First(z *Zone, now quantity.Instant, n int, length time.Duration) bool {
	z.pick = candidate{}
	z.best(now, z.classes[n%len(z.classes)], &window{start: now, end: now.Add(length)})
	return z.pick.job != nil
}
