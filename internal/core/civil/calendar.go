package civil

import (
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// Calendar is time that repeats by a clock: on Date and each Step days later, on some days of the week or on all, at the same time of
// day. The zero value is none.
//
// An occurrence ends at the latest where the next one begins, so none runs into another on days of 23 hours.
type Calendar struct {
	// Zone is the name of the zone whose clock this is, for people.
	Zone  string
	Clock Clock
	// Date of the first occurrence on the zone's calendar, in days since 1970-01-01.
	Date int64
	// Step is from one day to the next, 1 with Days.
	Step int64
	Days Days
	// At is the time of day at which it begins, since midnight.
	At time.Duration
	// Length is how long it lasts. ByClock: what the clock shows at its end less what it shows at its begin; otherwise as time passes.
	Length  time.Duration
	ByClock bool
}

// MaxStep bounds Step: some hundred years.
const MaxStep = 36600

// None says whether it repeats nothing.
func (c *Calendar) None() bool { return c.Step <= 0 }

// Check returns what is wrong with a calendar that came from elsewhere.
func (c *Calendar) Check() error {
	period := c.Step
	if c.Days != 0 {
		period = c.Days.apart()
	}
	switch {
	case c.Step < 1 || c.Step > MaxStep:
		return errkind.Errorf(errkind.Invalid, "it repeats each %d days; want 1 to %d", c.Step, MaxStep)
	case c.Days > AllDays || c.Days != 0 && c.Step != 1:
		return errkind.Errorf(errkind.Invalid, "it repeats each %d days, on some days of the week; days of the week need 24h", c.Step)
	case c.At < 0 || c.At >= day:
		return errkind.Errorf(errkind.Invalid, "it begins %v after midnight; want a time of day", c.At)
	case c.Date < -maxDate || c.Date > maxDate:
		return errkind.Errorf(errkind.Invalid, "its first day is %d after 1970-01-01, which is beyond all calendars here", c.Date)
	case c.Length <= 0 || c.Length > time.Duration(period)*day:
		return errkind.Errorf(errkind.Invalid, "it lasts %v and comes again after %d days; make it shorter or repeat it less often",
			c.Length, period)
	}
	return c.Clock.check()
}

// maxDate keeps dates within what an instant can be, with room for a step.
const maxDate = 60000

// First is the first occurrence.
func (c *Calendar) First() (start, end quantity.Instant) { return c.After(midnight(c.Date - 2)) }

// searched bounds the dates that one search tries: two weeks of them, and as many again where a clock skips whole days.
const searched = 32

// After is the first occurrence that ends after an instant, Never if there is none.
func (c *Calendar) After(at quantity.Instant) (start, end quantity.Instant) {
	// One that is not over began at most its length ago. A day more is for the rest of its first day, one for its last, and one for what
	// clocks skip.
	step, back, date := c.Step, int64(c.Length/day)+3, c.Date
	if today := floor(c.Clock.shows(at)); today-back > date {
		date += (today - back - date) / step * step
	}
	for range searched {
		if date > maxDate {
			break
		}
		if c.Days.has(date) {
			if start, end = c.on(date); start < end && end > at {
				return start, end
			}
		}
		date += step
	}
	return quantity.Never, quantity.Never
}

// on is the occurrence of a day. It is empty where the clock skips all of it.
func (c *Calendar) on(date int64) (start, end quantity.Instant) {
	w := midnight(date).Add(c.At)
	start = c.Clock.instant(w)
	end = start.Add(c.Length)
	if c.ByClock {
		if e := c.Clock.instant(w.Add(c.Length)); e > start {
			end = e // otherwise it begins in a skipped hour and would end before: both move
		}
	}
	next := date + c.Step
	for !c.Days.has(next) {
		next++
	}
	return start, min(end, c.Clock.instant(midnight(next).Add(c.At)))
}

func midnight(date int64) wall { return wall(date * int64(day)) }

// floor is the date of a time on the wall.
func floor(w wall) int64 {
	date := int64(w) / int64(day)
	if int64(w)%int64(day) < 0 {
		date--
	}
	return date
}

// Dated is the date and the time of day that the clock shows at an instant.
func (c Clock) Dated(at quantity.Instant) (date int64, since time.Duration) {
	w := c.shows(at)
	date = floor(w)
	return date, w.Sub(midnight(date))
}

// From is the same calendar with the first occurrence that begins at an instant or later.
func (c Calendar) From(at quantity.Instant) Calendar {
	date, _ := c.Clock.Dated(at)
	for c.Date = date - 1; c.Date < date+searched; c.Date++ { // a skipped hour may move one over midnight
		if !c.Days.has(c.Date) {
			continue
		}
		if start, end := c.on(c.Date); start >= at && start < end {
			break
		}
	}
	return c
}
