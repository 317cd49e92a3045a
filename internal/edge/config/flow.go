package config

import (
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
)

// FlowOf reads how tickets search for places (mechanism laminar). What is left out has the default of core/federation/flow; the size
// classes are those of the slices that there are.
func FlowOf(v strict.Value) flow.Config {
	o, found := v.Object("digests", "stale", "maxWait|patience", "pace", "burst", "hops", "zoneHops", "resplits", "tickets", "wakes",
		"grant"), v.Count()
	c := flow.Config{
		Period: o.Get("digests").Duration(time.Millisecond, time.Minute, 0), Stale: o.Get("stale").Duration(time.Millisecond, time.Hour, 0),
		Patience: o.Get("maxWait").Duration(time.Millisecond, time.Hour, 0), Pace: o.Get("pace").Duration(time.Millisecond, time.Minute, 0),
		Burst: int(o.Get("burst").Integer(1, 255, 0)), MaxHops: int(o.Get("hops").Integer(1, 255, 0)),
		ZoneHops: int(o.Get("zoneHops").Integer(1, 255, 0)),
		Resplits: int(o.Get("resplits").Integer(1, 16, 0)), ZoneTickets: int(o.Get("tickets").Integer(1, 1<<20, 0)),
		Wakes:    int(o.Get("wakes").Integer(1, 1<<16, 0)),
		GrantTTL: o.Get("grant").Duration(time.Millisecond, time.Minute, 0),
	}
	if v.Given() && v.Count() == found {
		whole := c
		whole.Classes = flow.Classes{quantity.Amount(1)}
		if err := whole.Validate(); err != nil { // what no setting alone is wrong in
			for _, e := range strict.Reasons(err) {
				v.Wrong("%s", strings.TrimPrefix(e.Error(), "flow: "))
			}
		}
	}
	return c
}
