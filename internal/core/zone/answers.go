package zone

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/quantity"
)

// answers are what the waiting jobs say to a window, counted for people.
type answers struct{ interested, short, unsafe, barred, busy int }

// windowKey is what decides how jobs answer a window.
type windowKey struct {
	class  *class
	length time.Duration
}

// answersTo asks every waiting job what it says to a window that has begun.
func (z *Zone) answersTo(now quantity.Instant, c *class, w *window) (a answers) {
	length := w.length(now)
	for _, s := range z.live {
		why := atomizer.Interested
		switch {
		case s.indexed && s.deaf != interested, !s.indexed && z.deafness(now, s) != interested:
			a.busy++
			continue
		case !s.indexed:
			_, r := z.fit(s, c, now, w.end)
			why = r.Why
		case s.answers[c.at].need > length:
			why = s.answers[c.at].refusal.Why
		}
		switch why {
		case atomizer.Interested:
			a.interested++
		case atomizer.Unsafe:
			a.unsafe++
		case atomizer.TooShort, atomizer.NotForever:
			a.short++
		case atomizer.Barred:
			a.barred++
		default:
			a.busy++
		}
	}
	return a
}

// reason says why nobody is asked for a window.
func (a *answers) reason() string {
	if a.short+a.unsafe+a.barred+a.busy == 0 {
		return "no job is waiting"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{{a.short, "too short"}, {a.unsafe, "too small"}, {a.barred, "of the wrong kind"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s for %d jobs", p.text, p.n))
		}
	}
	if a.busy > 0 {
		parts = append(parts, fmt.Sprintf("%d jobs run at their limit or pause", a.busy))
	}
	return strings.Join(parts, ", ")
}
