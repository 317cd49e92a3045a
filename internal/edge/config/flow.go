package config

import (
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
)

// Flow reads how tickets search for places (mechanism laminar). What is left out has the default of core/federation/flow; the size classes are those of the
// slices that there are.
func (v value) Flow() flow.Config {
	o, found := v.object("digests", "stale", "patience", "pace", "burst", "hops", "zoneHops", "resplits", "tickets", "wakes", "grant"), v.c.count()
	c := flow.Config{
		Period: o.get("digests").duration(time.Millisecond, time.Minute, 0), Stale: o.get("stale").duration(time.Millisecond, time.Hour, 0),
		Patience: o.get("patience").duration(time.Millisecond, time.Hour, 0), Pace: o.get("pace").duration(time.Millisecond, time.Minute, 0),
		Burst: int(o.get("burst").integer(1, 255, 0)), MaxHops: int(o.get("hops").integer(1, 255, 0)), ZoneHops: int(o.get("zoneHops").integer(1, 255, 0)),
		Resplits: int(o.get("resplits").integer(1, 16, 0)), ZoneTickets: int(o.get("tickets").integer(1, 1<<20, 0)), Wakes: int(o.get("wakes").integer(1, 1<<16, 0)),
		GrantTTL: o.get("grant").duration(time.Millisecond, time.Minute, 0),
	}
	if v.given() && v.c.count() == found {
		whole := c
		whole.Classes = flow.Classes{quantity.Amount(1)}
		if err := whole.Validate(); err != nil { // what no setting alone is wrong in
			for _, e := range reasons(err) {
				v.wrong("%s", strings.TrimPrefix(e.Error(), "flow: "))
			}
		}
	}
	return c
}
