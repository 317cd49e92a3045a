package reservations

import (
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Leave closes every slice from a while before its machine is gone for good, or from now on if it is about to go; it gives the time back if
// that is not known (any more). What was sold beyond is truncated, or withdrawn. Like what others have it is no fact: a restart hears it
// again before anything is offered.
func (b *Reservations) Leave(now quantity.Instant, stock *protocol.Stock, out *protocol.Out) {
	again := b.until == stock.Until
	b.until = stock.Until
	at := quantity.Instant(0)
	if b.until != 0 {
		at = departure.Closes(b.until, b.cfg.HandOver)
		if stock.Leaves {
			at = min(at, now)
		}
	}
	for _, s := range b.parts.Inventory.All() {
		x := b.slot(s)
		// The same end was heard before: the slice is closed as it should be, or is closed already, whichever instant that began at.
		if again && (x.closes == at || at != 0 && x.closes != 0 && max(x.closes, at) <= now) {
			continue
		}
		if x.closes != 0 {
			s.ReopenFor(lastOther)
		}
		x.closes = at
		x.closeForGood(b.until)
		b.changed(x)
		b.TruncateForOthers(now, s, out)
	}
}
