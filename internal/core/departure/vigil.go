package departure

import "time"

const (
	// Ownerless is for how long by default a filler that a pool lends goes on without its owner.
	Ownerless = time.Minute
	// LeastOwnerless is the shortest such time: a head's restart, and a link that is made anew, are no reason to yield.
	LeastOwnerless = 10 * time.Second
	// Stall is the longest time between two looks at an owner by which its silence is still told from a stall of the one that looks.
	Stall = 3 * time.Second
)

// Sign is what a look at an owner has shown since the look before.
type Sign uint8

// The signs. Blind: it could not be looked at all.
const (
	Heard Sign = iota + 1
	Silent
	Blind
)

// Vigil decides when a filler, which is a machine that joined or a Pod, has heard nothing of its owner for too long: of its head or its
// operator, who may be dead, and then nobody would have it give way to others. The zero value waits for ever.
type Vigil struct {
	// Limit is for how long the owner may be silent, or out of sight; 0: for ever.
	Limit time.Duration

	begun  bool
	looked time.Duration // the last look
	// silent is for how long the owner has said nothing though it could be looked at, blind for how long it could not be without a break.
	// They are not one sum: an owner that is out of sight for less than Limit needs a moment to be heard once it is back.
	silent, blind time.Duration
}

// Look takes a count of time that goes on while the machine is suspended, and what was seen since the last look. It returns for how
// long the owner has not been heard, and whether that is too long. The count starts again with a look that comes late by more than Stall:
// what looks was suspended then, or its machine is overloaded, and it could not have heard anything.
func (v *Vigil) Look(now time.Duration, sign Sign) (missed time.Duration, over bool) {
	gap := now - v.looked
	switch {
	case !v.begun || gap < 0 || gap > Stall || sign == Heard:
		v.begun, v.silent, v.blind = true, 0, 0
	case sign == Blind:
		v.blind += gap
	default:
		v.silent, v.blind = v.silent+gap, 0
	}
	v.looked = now
	missed = max(v.silent, v.blind)
	return missed, v.Limit > 0 && missed >= v.Limit
}
