package airlock

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Level is how short of memory a host is.
type Level uint8

const (
	// Calm: what was suspended goes on.
	Calm Level = iota
	// Guarded: nothing is suspended, and nothing goes on.
	Guarded
	// Severe: memory is made free.
	Severe
	// Emergency: the lowest is ended at once.
	Emergency
)

var levelNames = [...]string{"calm", "guarded", "severe", "emergency"}

// String is the level for people.
func (l Level) String() string { return levelNames[l] }

// Reading is what a host's memory is like, in numbers.
type Reading struct {
	Level Level
	// Share of its memory that is used, and of time that was lost for want of memory, in parts per thousand.
	Share, Stall           int64
	Used, Capacity, Growth quantity.Amount
	Exhausted              time.Duration // until all is used, at this growth; the longest duration if it does not grow
	severe, calm           quantity.Amount
}

// Over reports whether use is over the severe line, whatever it grows by.
func (r *Reading) Over() bool { return r.severe > 0 && r.Used >= r.severe }

// Fits reports whether use stays below the severe line with more; always true of a host whose memory is not known.
func (r *Reading) Fits(more quantity.Amount) bool { return r.severe == 0 || r.Used+more < r.severe }

// String explains the level.
func (r *Reading) String() string {
	s := fmt.Sprintf("%v: %d of %d MiB used (%d.%d%%)", r.Level, r.Used>>20, r.Capacity>>20, r.Share/10, r.Share%10)
	if r.Growth > 0 {
		s += fmt.Sprintf(", growing by %d MiB/s, which is %v to the end", r.Growth>>20, r.Exhausted.Round(time.Millisecond))
	}
	if r.Stall > 0 {
		s += fmt.Sprintf(", stalled for %d.%d%% of the time", r.Stall/10, r.Stall%10)
	}
	return s
}

// Read says how short of memory a host is. One without memory is calm: it is not known how much it has.
func (c *Config) Read(s *Snapshot) Reading {
	r := Reading{Used: max(0, s.Used), Capacity: s.Capacity, Growth: s.Growth, Stall: s.Stall, Exhausted: 1<<63 - 1}
	if s.Capacity <= 0 {
		return r
	}
	r.Share = quantity.MulDiv(int64(r.Used), 1000, int64(s.Capacity))
	r.severe, r.calm = share(s.Capacity, c.Severe), share(s.Capacity, c.Calm)
	if left := s.Capacity - r.Used; left <= 0 {
		r.Exhausted = 0
	} else if s.Growth > 0 {
		r.Exhausted = time.Duration(min(quantity.MulDiv(int64(left), int64(time.Second), int64(s.Growth)), 1<<62))
	}
	switch {
	case r.Used >= share(s.Capacity, c.Emergency) || r.Exhausted <= c.Brink:
		r.Level = Emergency
	case r.Used >= r.severe || r.Exhausted <= c.Horizon || s.Stall >= c.Stall:
		r.Level = Severe
	case r.Used >= r.calm:
		r.Level = Guarded
	}
	return r
}

// share of a capacity in parts per thousand.
func share(capacity quantity.Amount, permille int64) quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(capacity), permille, 1000))
}
