// Package residents is the programs that stay on a node's slices between subjobs (ADR 0082): who goes on in one, and when it has to end. A
// slice is given to nobody else before its program is confirmed gone. All of it is soft: no boot finds one.
package residents

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

const (
	// Patience is how long a program waits for a subjob that goes on in it.
	Patience = 5 * time.Minute
	// notice is how long before its slice is another's a program is told to end.
	notice = 2 * time.Second
)

// Residents holds what stays on the slices of one node.
type Residents struct {
	record    *record.Recorder
	inventory *inventory.Inventory
	retry     time.Duration
	sold      []Residences
	// told is when those that leave were last told so, by the subjob they stayed after.
	told []dismissal
	// next is when to look again.
	next quantity.Instant
}

// dismissal is a program that was told to end, on a slice, and when it is told so again.
type dismissal struct {
	token job.Token
	slice job.SliceID
	again quantity.Instant
}

// Residences knows the number of the program that what was sold under a token can go on in; 0: none.
type Residences interface {
	Residence(t job.Token) (number uint64, known bool)
}

// New returns the residents of a node: none. Who leaves is told so again after each retry.
func New(r *record.Recorder, i *inventory.Inventory, retry time.Duration, sold ...Residences) *Residents {
	return &Residents{record: r, inventory: i, retry: retry, sold: sold, next: quantity.Never}
}

// residence is the number of the program that what was sold under a token can go on in; 0: none.
func (r *Residents) residence(t job.Token) uint64 {
	for _, of := range r.sold {
		if number, known := of.Residence(t); known {
			return number
		}
	}
	return 0
}

// Stays notes that a program has stayed after a subjob that has just ended. Another that is known to be there is to end.
func (r *Residents) Stays(now quantity.Instant, slice job.SliceID, t job.Token, of job.ID, is *protocol.Resident) {
	s := r.inventory.Record(slice)
	if s.Stay() != nil || is.Number == 0 {
		r.dismiss(now, t, slice)
		return
	}
	s.SetStay(&inventory.Stay{Resident: *is, Token: t, Job: of, Waits: now})
}

// Stray has a program ended that stayed after a subjob of which nothing is known.
func (r *Residents) Stray(now quantity.Instant, slice job.SliceID, t job.Token) {
	if !slices.ContainsFunc(r.inventory.Staying(), func(s *inventory.Slice) bool { return s.Stay().Token == t }) { // else it is said again
		r.dismiss(now, t, slice)
	}
}

// dismiss has a program told to end at the next Drive.
func (r *Residents) dismiss(now quantity.Instant, t job.Token, slice job.SliceID) {
	if !slices.ContainsFunc(r.told, func(d dismissal) bool { return d.token == t }) {
		r.told = append(r.told, dismissal{token: t, slice: slice, again: now})
	}
}

// Gone notes that the program that stayed after a subjob is gone.
func (r *Residents) Gone(t job.Token) {
	r.told = slices.DeleteFunc(r.told, func(d dismissal) bool { return d.token == t })
	for _, s := range r.inventory.Staying() {
		if s.Stay().Token == t {
			s.SetStay(nil)
			return
		}
	}
}

// Refuses says why a slice is not granted, as another program stays there, or the one is gone that the piece is cut for; empty: it may be.
// The other program ends, and the slice is offered when it is gone.
func (r *Residents) Refuses(now quantity.Instant, s *inventory.Slice, a *protocol.Asking) string {
	x := s.Stay()
	switch {
	case x == nil && a.Plan.Resident:
		return string(s.ID()) + ": " + inventory.ProgramGone
	case x == nil || s.Serves(a.Plan.Residence) || a.Start > now.Add(notice):
		return ""
	}
	r.leave(now, s, "another won the slice")
	return string(s.ID()) + ": a program of job " + string(x.Job) + " stays there, and ends first"
}

// leave makes a program end.
func (r *Residents) leave(now quantity.Instant, s *inventory.Slice, why string) {
	x := *s.Stay()
	if x.Leaving != "" {
		return
	}
	x.Leaving = why
	s.SetStay(&x)
	r.dismiss(now, x.Token, s.ID())
}

// Drive ends the programs that can stay no longer, and tells those that leave.
func (r *Residents) Drive(now quantity.Instant, out *protocol.Out) {
	r.next = quantity.Never
	for _, s := range r.inventory.Staying() {
		if why, until := r.stays(now, s); why != "" {
			r.leave(now, s, why)
		} else {
			r.next = min(r.next, until)
		}
	}
	for i := range r.told {
		d := &r.told[i]
		if d.again <= now {
			d.again = now.Add(r.retry)
			r.record.Send(out, protocol.Message{Kind: protocol.Dismiss, To: r.record.Executor(), Token: d.token,
				Body: &protocol.Holding{Slice: d.slice}})
		}
		r.next = min(r.next, d.again)
	}
}

// Next is when Drive is due although nothing changes; Never: not before.
func (r *Residents) Next() quantity.Instant { return r.next }

// stays says why a program can't stay any longer; empty: it can, until an instant at least.
func (r *Residents) stays(now quantity.Instant, s *inventory.Slice) (why string, until quantity.Instant) {
	x := s.Stay()
	if x.Leaving != "" {
		return "", quantity.Never
	}
	if usable, ok := s.Usable(); !ok {
		return usable, 0
	}
	until = x.Waits.Add(Patience)
	if until <= now {
		return "nobody came for it", 0
	}
	for _, c := range s.Closed() {
		if o, hit := timeline.Overlap(&c, now, now.Add(notice)+1); hit {
			return timeline.Describe(&o), 0
		}
		if o, hit := timeline.Overlap(&c, now, until.Add(notice)); hit {
			until = min(until, o.Start.Add(-notice))
		}
	}
	for _, sold := range s.Sold() {
		number := r.residence(sold.Token)
		if number == x.Number || number == 0 && sold.Kind == protocol.ForHold { // of some holds nobody knows yet for what they are
			continue
		}
		if sold.Start <= now.Add(notice) {
			return "its slice is sold", 0
		}
		until = min(until, sold.Start.Add(-notice))
		break
	}
	return "", until
}
