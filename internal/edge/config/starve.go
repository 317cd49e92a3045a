package config

import (
	"time"

	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/edge/strict"
)

// StarvationOf reads the starvation limit: {after, slowdown, share, places}, or never for no limit at all. What is left out has its
// default.
func StarvationOf(v strict.Value) starvation.Limit {
	if v.Plain() && v.Raw() == "never" {
		return starvation.Limit{After: -1}
	}
	o := v.Object("after", "slowdown", "share", "places")
	l := starvation.Limit{
		After:    after(o.Get("after")),
		Slowdown: o.Get("slowdown").Integer(1, starvation.MostSlowdown, 0),
		Share:    o.Get("share").Fraction(1000, 1, 1000, 0),
	}
	if places := o.Get("places"); places.Given() {
		if l.Places = int(places.Integer(0, starvation.MostPlaces, 1)); l.Places == 0 {
			l.Places = -1
		}
	}
	return l
}

// after is how long a job waits at least until it is late; negative: it never is.
func after(v strict.Value) time.Duration {
	if v.Plain() && v.Raw() == "never" {
		return -1
	}
	return v.Duration(time.Second, MaxTime, 0)
}
