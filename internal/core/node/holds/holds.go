// Package holds is the grants of a node: time that is held for an asker until it is redeemed or lapses. Every hold is in the timeline of
// its slices under its own token, which no other boot and no other node gives out.
//
// Holds are soft. The boot's epoch in the token fences off those of an earlier boot (docs/adr/0002-soft-grants.md).
package holds

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/core/trp"
)

// numberShift is where the node's number stands in a token's sequence: the bits below it count.
const numberShift = 40

// NumberOf is the number of the node that made a token.
func NumberOf(t job.Token) int { return int(t.Seq >> numberShift) }

// Hold is time that is held.
type Hold struct {
	Token job.Token
	// Asked is what it answers; zero: nobody asked, it was won.
	Asked      Question
	Job        job.ID
	Slice      job.SliceID
	Also       []job.SliceID
	Start, End quantity.Instant
	Expiry     quantity.Instant
	// Peak is what is counted for it against the host's memory.
	Peak trp.Peak
	// Residence is the number of the program that what it is for can go on in; 0: none.
	Residence uint64
	// OwnPlace: it takes over the job's own reservation.
	OwnPlace bool
	// Gang: it is for a member of a gang, and stands longer than others.
	Gang bool
}

// Question names what was asked: a zone's ask, or a search of a ticket, as far as its losses go: after each it is another question.
type Question struct {
	From protocol.Address
	Ask  uint64
	// Search: the ticket of this number, of this home in this epoch, asks, and has lost so often.
	Search bool
	Home   uint32
	Epoch  uint32
	Losses uint8
}

// Holds holds the grants of one node that are not redeemed yet.
type Holds struct {
	inventory *inventory.Inventory
	number    uint64
	epoch     uint32 // durable: the node's boots
	last      uint64 // the last token given out in this epoch
	list      []*Hold
	// longer is how many of them are for gangs. While there are none the list is in order of expiry too, as it is in order of token.
	longer int
	spent  []*Hold // room for the next ones
	asked  map[Question]*Hold
}

// New returns the holds of a node with a number: none.
func New(i *inventory.Inventory, number int) *Holds {
	return &Holds{inventory: i, number: uint64(number) << numberShift, asked: map[Question]*Hold{}}
}

// Boot notes an epoch. Epoch is the last one.
func (h *Holds) Boot(epoch uint32) { h.epoch = max(h.epoch, epoch) }

// Epoch see Boot.
func (h *Holds) Epoch() uint32 { return h.epoch }

// Make holds free time, until it lapses.
func (h *Holds) Make(now quantity.Instant, of Hold, stands time.Duration) Hold {
	h.last++
	of.Token, of.Expiry = job.Token{Epoch: h.epoch, Seq: h.number | h.last}, now.Add(stands)
	x := h.room()
	*x = of
	if of.Gang {
		h.longer++
	}
	h.list = append(h.list, x)
	if of.Asked != (Question{}) {
		h.asked[of.Asked] = x
	}
	h.inventory.Each(of.Slice, of.Also, func(s *inventory.Slice) { s.Sell(protocol.ForHold, of.Job, of.Token, of.Start, of.End) })
	return of
}

func (h *Holds) room() *Hold {
	last := len(h.spent) - 1
	if last < 0 {
		return &Hold{}
	}
	x := h.spent[last]
	h.spent = h.spent[:last]
	return x
}

// Answer is the hold that answers a question, if there is one: until it ends, the same question has the same answer.
func (h *Holds) Answer(q Question) (Hold, bool) { return value(h.asked[q]) }

// Of is the hold of a token, if one stands.
func (h *Holds) Of(t job.Token) (Hold, bool) {
	i, found := h.find(t)
	if !found {
		return Hold{}, false
	}
	return *h.list[i], true
}

// Peak is what is counted for a token against the host's memory.
func (h *Holds) Peak(t job.Token) (trp.Peak, bool) {
	i, found := h.find(t)
	if !found {
		return trp.Peak{}, false
	}
	return h.list[i].Peak, true
}

// Residence is the number of the program that what a token is for can go on in; 0: none.
func (h *Holds) Residence(t job.Token) (number uint64, known bool) {
	i, found := h.find(t)
	if !found {
		return 0, false
	}
	return h.list[i].Residence, true
}

func value(x *Hold) (Hold, bool) {
	if x == nil {
		return Hold{}, false
	}
	return *x, true
}

func (h *Holds) find(t job.Token) (int, bool) {
	return slices.BinarySearchFunc(h.list, t, func(x *Hold, t job.Token) int { return x.Token.Compare(t) })
}

// Drop gives a hold's time back, if there is one of this token.
func (h *Holds) Drop(t job.Token) {
	i, found := h.find(t)
	if !found {
		return
	}
	x := h.list[i]
	h.spent = append(h.spent, x)
	if i == 0 && len(h.list) > 1 {
		h.list[0], h.list = nil, h.list[1:] // most lapse or are redeemed in their order
	} else {
		h.list = slices.Delete(h.list, i, i+1)
	}
	if x.Gang {
		h.longer--
	}
	delete(h.asked, x.Asked)
	h.inventory.Each(x.Slice, x.Also, func(s *inventory.Slice) { s.Return(t) })
}

// DropWithin gives up the holds on a slice that a reservation takes time from.
func (h *Holds) DropWithin(now quantity.Instant, s job.SliceID, r *protocol.Reservation) {
	for i := len(h.list) - 1; i >= 0; i-- {
		x := h.list[i]
		if _, hit := timeline.Overlap(r, max(now, x.Start), x.End); hit && (x.Slice == s || slices.Contains(x.Also, s)) {
			h.Drop(x.Token)
		}
	}
}

// Lapse drops those that nobody has redeemed in time.
func (h *Holds) Lapse(now quantity.Instant) {
	for i := 0; i < len(h.list); {
		switch {
		case h.list[i].Expiry <= now:
			h.Drop(h.list[i].Token)
		case h.longer == 0:
			return // all behind it lapse later
		default:
			i++
		}
	}
}

// Next is when the next one lapses.
func (h *Holds) Next() quantity.Instant {
	first := quantity.Never
	for _, x := range h.list {
		if first = min(first, x.Expiry); h.longer == 0 {
			break
		}
	}
	return first
}

// Begun are those whose time has begun, in order of token.
func (h *Holds) Begun(now quantity.Instant, yield func(t job.Token, slices int)) {
	for _, x := range h.list {
		if x.Start <= now {
			yield(x.Token, 1+len(x.Also))
		}
	}
}
