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
