package config

import (
	"time"

	"sluice.dev/sluice/internal/core/market/starvation"
)

// Starvation reads the starvation limit: {after, slowdown, share, places}, or never for no limit at all. What is left out has its default.
func (v value) Starvation() starvation.Limit {
	if v.Plain() && v.node.Value == "never" {
		return starvation.Limit{After: -1}
	}
	o := v.object("after", "slowdown", "share", "places")
	l := starvation.Limit{
		After:    after(o.get("after")),
		Slowdown: o.get("slowdown").integer(1, starvation.MostSlowdown, 0),
		Share:    o.get("share").fraction(1000, 1, 1000, 0),
	}
	if places := o.get("places"); places.given() {
		if l.Places = int(places.integer(0, starvation.MostPlaces, 1)); l.Places == 0 {
			l.Places = -1
		}
	}
	return l
}

// after is how long a job waits at least until it is late; negative: it never is.
func after(v value) time.Duration {
	if v.Plain() && v.node.Value == "never" {
		return -1
	}
	return v.duration(time.Second, MaxTime, 0)
}
