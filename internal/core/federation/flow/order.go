package flow

import (
	"cmp"
	"math/bits"
	"slices"
)

// key is a probe's place in the order of one decision: utility falling, then ticket rising, as one number of 128 bits that rises.
type key struct{ high, low uint64 }

func keyOf(utility int64, t TicketID) key { return key{^(uint64(utility) ^ 1<<63), uint64(t)} }

// few is up to how many probes each is compared with each: that takes no jump that depends on the answer, and jumps that are guessed wrong
// are most of what a sort of few costs.
const few = 16

// orderOf is the indices of probes in the order of their keys, in the room of into. Two of one ticket (its probe was doubled, or its home
// has moved on) go by home, then the later epoch first.
func orderOf(keys []key, probes []Probe, into []int) []int {
	into = slices.Grow(into[:0], len(keys))[:len(keys)]
	if len(keys) <= few && rank(keys, into) {
		return into
	}
	for i := range into {
		into[i] = i
	}
	slices.SortFunc(into, func(i, k int) int {
		x, y, p, q := &keys[i], &keys[k], &probes[i], &probes[k]
		return cmp.Or(cmp.Compare(x.high, y.high), cmp.Compare(x.low, y.low), cmp.Compare(p.Home, q.Home), cmp.Compare(q.Epoch, p.Epoch))
	})
	return into
}

// rank puts the indices of few keys in order, and is false if two are the same.
func rank(keys []key, into []int) bool {
	var before [few]uint8 // how many come before each
	same := uint64(1)     // 0 once two are the same
	for i := 1; i < len(keys); i++ {
		x, mine := keys[i], uint8(0)
		for k := range i {
			y := keys[k]
			low, borrow := bits.Sub64(x.low, y.low, 0)
			high, first := bits.Sub64(x.high, y.high, borrow)
			before[k] += uint8(first)
			mine += uint8(1 - first)
			differ := low | high
			same &= (differ | -differ) >> 63
		}
		before[i] = mine
	}
	if same == 0 {
		return false
	}
	for i := range keys {
		into[before[i]] = i
	}
	return true
}
