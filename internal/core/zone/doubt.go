package zone

import (
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/quantity"
)

// doubtedOften is how many different jobs in a row must have been refused on one view of a slice before it is offered to
// nobody for a while. So no job alone takes a slice off the market, and a view that is wrong costs few messages.
const doubtedOften = 3

// doubt counts the different jobs in a row that a slice's node refused on its present view, and leaves the slice alone for
// AskTTL when they are many: what was refused to all of them is not asked again and again of the same view. Where there is no view, as
// of a node that is gone when the zone comes up, nothing is asked, and none is on its way that rigid jobs should be kept waiting for.
func (z *Zone) doubt(now quantity.Instant, sl *slice, j *home.Job) {
	if sl.view == nil || sl.doubter == j {
		return
	}
	sl.doubter = j
	if sl.doubts++; sl.doubts >= doubtedOften {
		z.setStale(sl, now.Add(z.cfg.AskTTL))
	}
}

// looksAnother: a slice's view says something else than before, so what was refused may be had now.
func (z *Zone) looksAnother(sl *slice) {
	sl.trust()
	if sl.stale != 0 {
		z.setStale(sl, 0)
	}
	if z.home.Avoiding() {
		z.home.LooksAnother(sl.id)
	}
}

func (s *slice) trust() { s.doubter, s.doubts = nil, 0 }
