// Package starvation says when a job has waited too long, and what those that have may be given before others: a bounded exception to the
// order of work, and no second queue (adr). It knows neither jobs nor windows.
package starvation

import (
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// Limit is the starvation limit: a job is late when it is not over after both After and Slowdown times its own length.
type Limit struct {
	// After is T_starve: nobody is late before. 0 is the default, negative: nobody ever is.
	After time.Duration
	// Slowdown is how many times its own length a job may take. 0 is the default.
	Slowdown int64
	// Share of the capacity that the late may be given before others, in parts per thousand. 0 is the default.
	Share int64
	// Places is how many late rigid jobs may have time reserved at once, where nobody else has (backfill: skip). 0 is the default,
	// negative none.
	Places int
}

// WithDefaults fills in what is zero.
func (l Limit) WithDefaults() Limit {
	if l.After == 0 {
		l.After = 72 * time.Hour
	}
	if l.Slowdown == 0 {
		l.Slowdown = 25
	}
	if l.Share == 0 {
		l.Share = 20
	}
	if l.Places == 0 {
		l.Places = 2
	}
	return l
}

// MostSlowdown bounds Slowdown, MostPlaces Places.
const (
	MostSlowdown = 1_000_000
	MostPlaces   = 128
)

// Validate lists every problem of l.
func (l Limit) Validate() error {
	l = l.WithDefaults()
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("starve: "+format, args...))
		}
	}
	wrong(l.Slowdown < 1 || l.Slowdown > MostSlowdown, "slowdown is %d; want 1 to %d", l.Slowdown, MostSlowdown)
	wrong(l.Share < 1 || l.Share > 1000, "share is %d parts per thousand; want 1 to 1000", l.Share)
	wrong(l.Places > MostPlaces, "places is %d; want at most %d", l.Places, MostPlaces)
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// Due is when a job of a length that came at an instant is late; Never if it is not to be.
func (l Limit) Due(submitted quantity.Instant, length time.Duration) quantity.Instant {
	if l.After < 0 {
		return quantity.Never
	}
	return submitted.Add(max(l.After, time.Duration(quantity.MulDiv(int64(max(0, length)), l.Slowdown, 1))))
}
