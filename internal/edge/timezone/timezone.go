// Package timezone turns names of time zones into data for the core (core/civil), which computes repeated hours by local time and reads
// no files.
//
// The rules are those of the machine's time zone database, or where it has none those of the program's own.
package timezone

import (
	"fmt"
	"time"
	_ "time/tzdata" // images and machines without a database of time zones know them, too: 400 kB of the program

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// Ahead is how many years of a zone's changes a Clock holds, from the first occurrence or from now, whichever is later. After them the
// last offset holds.
const Ahead = 20

// Load finds a zone by its name in the database of time zones, or by an offset such as +05:30.
func Load(name string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", name); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(name, offset), nil
	}
	if loc, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
		return loc, nil
	}
	return nil, errkind.Errorf(errkind.Invalid,
		"no time zone is called %.80q: want a name such as Europe/Berlin, UTC, or an offset such as +05:30", name)
}

// Clock is what a zone's clocks show from an instant on, for Ahead years.
func Clock(loc *time.Location, from, now time.Time) civil.Clock {
	last := from
	if now.After(from) {
		last = now
	}
	until := time.Date(last.Year()+Ahead, 1, 1, 0, 0, 0, 0, time.UTC)
	t := from.Add(-72 * time.Hour).In(loc) // a first day may lie before its instant
	var changes []civil.Change
	for {
		_, offset := t.Zone()
		c := civil.Change{At: quantity.At(t), Offset: time.Duration(offset) * time.Second}
		if n := len(changes); n == 0 || changes[n-1].Offset != c.Offset { // a change of the zone's abbreviation alone is no change
			changes = append(changes, c)
		}
		_, end := t.ZoneBounds()
		if end.IsZero() || end.After(until) || len(changes) == civil.MaxChanges {
			break
		}
		// On the last day of a leap year, beyond the changes that the database lists, Go's bounds end before the moment
		// (golang/go issue 81583).
		if !end.After(t) {
			end = t.Add(24 * time.Hour)
		}
		t = end
	}
	changes[0].At = 0 // the first offset holds before, too: the same reservation made twice has the same clock
	return civil.Pack(changes)
}

// Hours is time that is to repeat by the clock of a zone.
type Hours struct {
	// Zone is its name, as Load reads it.
	Zone string
	Days civil.Days
	// Start: no occurrence begins before it. End less Start is how long each lasts; without To it may not be zero.
	Start, End time.Time
	// Every is a multiple of 24 hours. 0 means 24 hours.
	Every time.Duration
	// From is the time of day at which each begins, and To the one at which it ends by the clock, both as 08:00 or 08:00:30. Without
	// From it is Start's in the zone; without To nothing ends by the clock, but after the length as time passes.
	From, To string
}

// Calendar makes the core's calendar of them, with the first occurrence.
func (h *Hours) Calendar(now time.Time) (c civil.Calendar, start, end quantity.Instant, err error) {
	fail := func(err error) (civil.Calendar, quantity.Instant, quantity.Instant, error) {
		return civil.Calendar{}, 0, 0, err
	}
	loc, err := Load(h.Zone)
	if err != nil {
		return fail(err)
	}
	if h.Every == 0 {
		h.Every = 24 * time.Hour
	}
	if !WholeDays(h.Every) {
		return fail(errkind.Errorf(errkind.Invalid,
			"it repeats every %v: the clock of a zone is followed by whole days; want a multiple of 24h", h.Every))
	}
	c = civil.Calendar{Zone: h.Zone, Clock: Clock(loc, h.Start, now), Step: int64(h.Every / (24 * time.Hour)), Days: h.Days,
		Length: h.End.Sub(h.Start)}
	from := quantity.At(h.Start)
	first, at := c.Clock.Dated(from)
	c.At = at
	if h.From != "" {
		if c.At, err = ParseTime(h.From); err != nil {
			return fail(err)
		}
	}
	if h.To != "" {
		to, err := ParseTime(h.To)
		if err != nil {
			return fail(err)
		}
		c.ByClock, c.Length = true, to-c.At
		switch last, _ := c.Clock.Dated(quantity.At(h.End)); {
		case !h.End.IsZero():
			c.Length += time.Duration(last-first) * 24 * time.Hour
		case c.Length <= 0:
			c.Length += 24 * time.Hour
		}
	}
	if err := c.Check(); err != nil {
		return fail(err)
	}
	c = c.From(from)
	if err := c.Check(); err != nil {
		return fail(err)
	}
	start, end = c.First()
	return c, start, end, nil
}

// WholeDays says whether a length of time is a number of days, as clocks are followed by.
func WholeDays(d time.Duration) bool { return d > 0 && d%(24*time.Hour) == 0 }

// ParseTime reads a time of day, 08:00 or 08:00:30, as the time since midnight.
func ParseTime(s string) (time.Duration, error) {
	for _, form := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(form, s); err == nil {
			return t.Sub(t.Truncate(24 * time.Hour)), nil
		}
	}
	return 0, errkind.Errorf(errkind.Invalid, "%.80q is no time of day: want one such as 08:00", s)
}

// FormatTime writes what ParseTime reads.
func FormatTime(d time.Duration) string {
	d = d.Truncate(time.Second)
	s := fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute)
	if d%time.Minute != 0 {
		s += fmt.Sprintf(":%02d", d%time.Minute/time.Second)
	}
	return s
}
