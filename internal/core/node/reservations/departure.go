package reservations

import (
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Leave closes every slice from a while before an instant on, at which the machine is gone for good; 0: that is not known (any more). What
// was sold beyond is truncated, or withdrawn. Like what others have it is no fact: a restart hears it again before anything is offered.
func (b *Reservations) Leave(now, until quantity.Instant, out *protocol.Out) {
	b.until = until
	at := quantity.Instant(0)
	if until != 0 {
		at = departure.Closes(until, b.cfg.HandOver)
	}
	for _, s := range b.parts.Inventory.All() {
		x := b.slot(s)
		if x.closes == at {
			continue
		}
		if x.closes != 0 {
			s.ReopenFor(lastOther)
		}
		x.closes = at
		x.closeForGood(until)
		b.changed(x)
		b.TruncateForOthers(now, s, out)
	}
}
