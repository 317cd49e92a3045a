package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// reckon notes what running subjobs have had up to now. It counts for a policy like what ended ones have had: else a job
// that continues from window to window would look as if it had never been served, and keep its slice from everybody.
func (z *Zone) reckon(now quantity.Instant) {
	for _, s := range z.reckoned {
		s.going, s.q.going = 0, 0
	}
	z.reckoned = append(z.reckoned[:0], z.busy...)
	for _, s := range z.busy {
		s.going = 0
		for i := range s.Claims {
			c := &s.Claims[i]
			if l := s.lease(c.Token); l.running != 0 && l.running < now {
				s.going += memoryTime(c.Demand, now.Sub(l.running))
			}
		}
		s.q.going += s.going
	}
}

// memoryTime is memory held for a time, in MiB-milliseconds.
func memoryTime(demand trp.Vector, d time.Duration) int64 {
	return int64(demand[trp.Memory]>>20+1) * max(0, d.Milliseconds())
}
