// Package leases is what was sold of a node's slices, and what runs: one lease's life from LeaseMade to LeaseGone. No slice is reused
// before the last process tree there is confirmed gone, and a lease's outstanding messages (its start, its stop, its result) are sent until
// acknowledged.
//
// Leases are the state, which facts alone make and end; Runner decides what becomes of a lease; Stands suspends and resumes it for its
// host's memory.
package leases

import (
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

// Leases holds the leases of one node.
type Leases struct {
	record    *record.Recorder
	inventory *inventory.Inventory
	index     index
	sum       uint64 // of their hashes
	counts    Counts
}

// Counts are what subjobs did for their host's memory, since the node came up.
type Counts struct {
	Standing             int // now
	Suspended, Recovered int64
}

// New returns the leases of a node: none.
func New(r *record.Recorder, i *inventory.Inventory) *Leases {
	return &Leases{record: r, inventory: i, index: newIndex()}
}

// Of is the lease of a token, nil if there is none.
func (b *Leases) Of(t job.Token) *Lease { return b.index.all[t] }

// Ordered are all of them, in order of token.
func (b *Leases) Ordered() []*Lease { return slices.SortedFunc(maps.Values(b.index.all), compare) }

// On are the leases on a slice that have not ended, in order of token.
func (b *Leases) On(s *inventory.Slice) (list []*Lease) {
	for _, r := range s.Sold() {
		if r.Kind == protocol.ForLease {
			list = append(list, b.Of(r.Token))
		}
	}
	slices.SortFunc(list, compare)
	return list
}

// Outlived reports whether there is a lease here for a later life of a job.
func (b *Leases) Outlived(id job.ID, g job.Generation) bool { return b.index.outlived(id, g) }

// Peak is what is counted for a token against the host's memory.
func (b *Leases) Peak(t job.Token) (trp.Peak, bool) {
	if l := b.Of(t); l != nil {
		return l.Peak(), true
	}
	return trp.Peak{}, false
}

// Residence is the number of the program that what was sold under a token can go on in; 0: none.
func (b *Leases) Residence(t job.Token) (number uint64, known bool) {
	if l := b.Of(t); l != nil {
		return l.terms.Plan.Residence, true
	}
	return 0, false
}

// AnyRuns says whether the executor has anything.
func (b *Leases) AnyRuns() bool {
	for _, l := range b.index.all { //sluice:sorted it only says whether there is one
		if l.Issued() && !l.Vacated() {
			return true
		}
	}
	return false
}

// Remaining is how many leases there are, those among them whose result is not settled.
func (b *Leases) Remaining() int { return len(b.index.all) }

// Counts see Counts.
func (b *Leases) Counts() Counts { return b.counts }

// Sum is their part of the digest.
func (b *Leases) Sum() uint64 { return b.sum }

// Facts appends those that fold to them. Vacated ones come first: the time they had may have been sold again.
func (b *Leases) Facts(out []protocol.Fact) []protocol.Fact {
	list := b.Ordered()
	for _, vacated := range [2]bool{true, false} {
		for _, l := range list {
			if l.Vacated() == vacated {
				out = l.facts(b.inventory, out)
			}
		}
	}
	return out
}

// Apply applies a fact about a lease.
func (b *Leases) Apply(f *protocol.Fact) {
	if f.Kind == protocol.LeaseMade {
		b.applyMade(f)
		return
	}
	l := b.Of(f.Token)
	if l == nil {
		invariant.Check(false, "node: fact %d: kind %d names lease %v, which doesn't exist", b.record.Applied(), f.Kind, f.Token)
	}
	if f.Kind == protocol.LeaseGone {
		b.sum -= l.sum
		b.change(l, onGone)
		b.index.remove(l)
		return
	}
	b.apply(l, f)
	b.resum(l)
	b.index.stir(l)
}

// ApplyStuck records that a slice was quarantined for processes of a lease, if it is one of those here.
func (b *Leases) ApplyStuck(t job.Token) {
	if l := b.Of(t); l != nil && !l.Vacated() {
		b.change(l, onStuck)
		b.resum(l)
		b.index.stir(l)
	}
}

func (b *Leases) applyMade(f *protocol.Fact) {
	if b.Of(f.Token) != nil {
		invariant.Check(false, "node: fact %d: token %v is redeemed twice", b.record.Applied(), f.Token)
	}
	t := f.Body.(*protocol.Terms)
	l := &Lease{terms: Terms{Token: f.Token, Job: f.Job, Epoch: f.Epoch, Generation: f.Generation.Number(), Terms: *t}}
	b.index.add(l)
	b.resum(l)
	b.each(l, func(s *inventory.Slice) { s.Sell(protocol.ForLease, f.Job, f.Token, t.Start, t.End) })
}

func (b *Leases) apply(l *Lease, f *protocol.Fact) {
	if f.Kind != protocol.ResultSettled && l.Ended() {
		invariant.Check(false, "node: fact %d: kind %d names lease %v, which has ended", b.record.Applied(), f.Kind, f.Token)
	}
	t := &l.terms
	switch f.Kind {
	case protocol.LeaseExtended:
		to := f.Body.(*protocol.Extent)
		b.each(l, func(s *inventory.Slice) { s.Extend(t.Token, to.End) })
		t.Range, t.End, t.Text = to.Range, to.End, ""
		if to.Peak != (trp.Peak{}) {
			t.Peak = to.Peak
		}
	case protocol.Truncated:
		c := f.Body.(*protocol.Truncation)
		b.each(l, func(s *inventory.Slice) { s.Truncate(t.Token, c.End) })
		t.End, t.Text = c.End, c.Text
	case protocol.SubjobStarted:
		b.change(l, onStarted)
		l.at = f.At
	case protocol.SubjobVacated:
		b.free(l)
		b.change(l, onVacated)
	case protocol.SubjobEnded:
		if !l.Vacated() {
			b.free(l)
		}
		b.change(l, onEnded)
		end := f.Body.(*protocol.SubjobEnd)
		l.result, l.bare = end.Result, end.Bare
	case protocol.ResultSettled:
		b.change(l, onSettled)
		l.settling = f.Body.(*protocol.Acknowledgement).Range
	default: // no other fact is about a lease
	}
}

// free gives back the time of a lease whose process tree is gone.
func (b *Leases) free(l *Lease) {
	b.each(l, func(s *inventory.Slice) { s.Return(l.terms.Token) })
}

func (b *Leases) each(l *Lease, f func(*inventory.Slice)) {
	b.inventory.Each(l.terms.Slice, l.terms.Also, f)
}

// resum takes a lease into the digest as it is now.
func (b *Leases) resum(l *Lease) {
	sum := l.hash()
	b.sum += sum - l.sum
	l.sum = sum
}

// change has an event change a lease's phase. An illegal one is a bug, or facts that are not this node's.
func (b *Leases) change(l *Lease, e event) {
	next := transitions[l.phase][e]
	if next == never {
		invariant.Check(false, "node: fact %d: lease %v is %v, which can't become of it (%s)", b.record.Applied(), l.terms.Token, l.phase,
			eventNames[e])
		return
	}
	switch {
	case next.Still() && !l.phase.Still():
		b.counts.Standing++
	case l.phase.Still() && !next.Still():
		b.counts.Standing--
	}
	if next == Suspended {
		b.counts.Suspended++
	}
	if l.phase == Suspended && next == Resuming {
		b.counts.Recovered++
	}
	l.phase = next
}

// Stir has the alarm of a lease set again: what it waits for has changed.
func (b *Leases) Stir(l *Lease) { b.index.stir(l) }
