package forecast

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Recent bounds the next hour of a series by the most of its last hours times a margin. It promises nothing: of the rules that
// do, each came to passing its bound more often than asked on hours that it was not chosen on. It is what is left when every
// choice is made by hours before those that it is judged on (ADR 0015).
type Recent struct {
	// Window that is looked back over; Margin in parts per million of the most seen in it, at least One.
	Window time.Duration
	Margin int64
}

// DefaultRecent is the rule that is passed in at most 1% of the hours at the least cost, as far as is known.
func DefaultRecent() Recent { return Recent{Window: 3 * time.Hour, Margin: 1_450_000} }

// Upper is the bound for a window of which most was the most, 0 or more; rounded up, at most the largest amount.
func (r Recent) Upper(most quantity.Amount) quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(most), r.Margin, One))
}
