package ends

import "sluice.dev/sluice/internal/core/quantity"

// Bet is the prediction that a subjob was sold on.
type Bet struct {
	// Until its gap was predicted to last; Never or 0 where nothing was predicted.
	Until quantity.Instant
	// Claimed: there was a claimed end.
	Claimed bool
}

// None says that nothing was predicted.
func (b Bet) None() bool { return b.Until == 0 || b.Until == quantity.Never }

// Outcome is how a subjob has ended.
type Outcome struct {
	// Planned is when it was to end, Ended when it did; Cut: because its gap was over.
	Planned, Ended quantity.Instant
	Cut            bool
}

// Ended takes in what became of a subjob and of its bet. The bet failed where the gap was over before it and before the subjob. A subjob
// whose least useful piece is longer than its bet was promised nothing; its bet counts all the same, or else the level of a guard that has
// come to 0, where no bet is long enough for anybody, would stay there.
func (l *Learner) Ended(b Bet, o Outcome) {
	if b.None() {
		return
	}
	l.version++
	failed := o.Cut && o.Ended < b.Until
	at := &l.stats.Kept
	if o.Planned > b.Until {
		at = &l.stats.Beyond
	}
	at.N++
	if o.Cut {
		at.Cut++
	}
	if failed {
		l.stats.Failed++
	}
	if b.Claimed {
		l.claimed.Saw(failed)
	} else {
		l.known.Saw(failed)
	}
}
