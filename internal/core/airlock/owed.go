package airlock

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// shownWithin bounds how long a host takes to show memory that an ended task has freed. A kernel frees it after the process ends, and its
// figures lag behind that.
const shownWithin = 2 * time.Second

// apart is the time between two looks from which on memory freed between them counts as shown: nobody knows when it was freed, and what
// others have taken since.
const apart = time.Second

// Owed is memory that ended tasks have freed and their host does not show yet. Without it an ended task seems to have freed nothing: it has
// no memory any more and the host has no less in use, so the next one would be ended for the same deficit, and the one after it. The caller
// of Decide keeps one from look to look.
type Owed struct {
	// amount: freed by ended tasks. most: peak use since the look before the latest was counted. shown: largest drop below most.
	amount, most, shown quantity.Amount
	// last is what was in use at the last look, at the time of that look.
	last quantity.Amount
	at   quantity.Instant
	// until it counts.
	until quantity.Instant
}

// Look returns what is owed at a look with used in use, where ended tasks have freed let since the last one.
//
// The host shows at most the largest drop of its memory in use. Memory that others take meanwhile is not owed again, since they have it in
// use too.
func (o *Owed) Look(now quantity.Instant, used, let quantity.Amount) quantity.Amount {
	if now >= o.until {
		o.amount, o.shown = 0, 0
	}
	if let > 0 && now.Sub(o.at) < apart {
		o.amount, o.shown, o.most, o.until = o.amount-o.shown+let, 0, o.last, now.Add(shownWithin)
	}
	o.last, o.at = used, now
	if o.amount == 0 {
		return 0
	}
	o.most = max(o.most, used)
	o.shown = min(o.amount, max(o.shown, o.most-used))
	return o.amount - o.shown
}
