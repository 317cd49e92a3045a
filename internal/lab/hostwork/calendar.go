package hostwork

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Hours is time that the host holds a slice for by the calendar: serving hours, maintenance.
type Hours struct {
	// At is when it is announced, [From, To) the first time, Every the time to the next; 0 for once.
	At, From, To quantity.Instant
	Every        time.Duration
}

// Calendar is what these hours make of one slice up to an instant, the occurrence included that reaches across it.
func Calendar(hours []Hours, until quantity.Instant) []Stay {
	var out []Stay
	for _, h := range hours {
		for from, to := h.From, h.To; from < until && from < to; from, to = from.Add(h.Every), to.Add(h.Every) {
			out = append(out, Stay{From: from, To: to, Words: []Word{{h.At, from, to}}, Calendar: true})
			if h.Every == 0 {
				break
			}
		}
	}
	return join(out)
}
