package airlock

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// shownWithin is for how long a host may take to show what a task has let go of that was ended. A kernel frees memory behind the end of a
// process, and its figures follow behind that.
const shownWithin = 2 * time.Second

// apart is the time between two looks from which on what was let go of in between counts as shown: who knows when it was, and what others
// have taken since.
const apart = time.Second

// Owed is what tasks that were ended have let go of and their host does not show yet. Without it who was ended seems to have brought
// nothing: it has no memory any more, and the host has no less in use, so the next one would be ended for the same deficit, and the one
// after it. Whoever calls Decide keeps one from look to look.
type Owed struct {
	// amount was freed by ended tasks; most is the peak of use since the look before that; shown is the largest drop below most.
	amount, most, shown quantity.Amount
	// last is what was in use at the last look, at the time of that look.
	last quantity.Amount
	at   quantity.Instant
	// until it counts.
	until quantity.Instant
}

// Look is what is owed at a look at which so much is in use, and since whose last one tasks that were ended have let go of so much.
//
// What the host shows is the most by which its memory in use fell: that others take of it meanwhile makes nothing of it owed again, since
// in use is what they have too.
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
