// Package quarantine is which slices of a node are not sold although they are there. A slice is quarantined while processes live on it that
// should be gone; that ends when the executor reports the last of them gone, or at a boot that does not find them any more, and a person
// may lift it earlier. A slice whose GPU fails is not sold until core/health decides that this is over: claims there that have not begun
// are withdrawn, and subjobs that have lost their GPU are ended, which counts as the machine's failure.
//
// All of it is durable: a restart must not sell a GPU that is to be reset first.
package quarantine

import (
	"slices"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Quarantine holds the quarantined slices of one node.
type Quarantine struct {
	record    *record.Recorder
	inventory *inventory.Inventory
	leases    *leases.Leases
	runner    *leases.Runner
	sum       uint64 // of the conditions' hashes
	holders   int    // slices that are quarantined for somebody's processes
	strays    []stray
	looks     map[job.SliceID]*looked
}

// stray is a subjob found alive at boot that no lease stands for.
type stray struct {
	token job.Token
	job   job.ID
	slice job.SliceID
}

// looked is what is soft of a slice's GPU.
type looked struct {
	waived string // a state that a person has looked at, and sells the slice all the same
	// relapses is how often the slice was sold again after a fault although nothing shows that its GPU was reset.
	relapses int
}

// New returns the quarantine of a node: no slice is in it.
func New(r *record.Recorder, i *inventory.Inventory, l *leases.Leases, u *leases.Runner) *Quarantine {
	return &Quarantine{record: r, inventory: i, leases: l, runner: u, looks: map[job.SliceID]*looked{}}
}

// Sum is its part of the digest.
func (q *Quarantine) Sum() uint64 { return q.sum }

// Facts appends those that fold to a slice's condition.
func Facts(s *inventory.Slice, out []protocol.Fact) []protocol.Fact {
	c := s.Condition()
	if c.Quarantined {
		out = append(out, protocol.Fact{Kind: protocol.Quarantined, Slice: s.ID(), Token: c.Holder, At: c.Since,
			Body: &protocol.Reason{Text: c.Why}})
	}
	if c.Fault != nil {
		out = append(out, protocol.Fact{Kind: protocol.SliceFailed, Slice: s.ID(), Body: c.Fault})
	}
	return out
}

// Apply applies a fact about a slice's condition.
func (q *Quarantine) Apply(f *protocol.Fact) {
	s := q.inventory.Record(f.Slice)
	c := *s.Condition()
	q.sum -= c.Hash(s.ID())
	if !c.Holder.Zero() {
		q.holders--
	}
	switch f.Kind {
	case protocol.Quarantined:
		c.Quarantined, c.Why, c.Since, c.Holder = true, f.Body.(*protocol.Reason).Text, f.At, f.Token
	case protocol.QuarantineLifted:
		c.Quarantined, c.Why, c.Since, c.Holder = false, "", 0, job.Token{}
	default: // SliceFailed, SliceMended
		c.Fault, _ = f.Body.(*health.Fault)
	}
	if !c.Holder.Zero() {
		q.holders++
	}
	s.SetCondition(c)
	q.sum += c.Hash(s.ID())
}

// Stuck: processes of a subjob remain that can't be ended.
func (q *Quarantine) Stuck(now quantity.Instant, t job.Token, text string, out *protocol.Out) {
	l := q.leases.Of(t)
	if l == nil || l.Stuck() || !l.Issued() || l.Vacated() {
		return
	}
	why := remaining(l)
	if text != "" {
		why += ": " + text
	}
	q.lease(now, l, why, out)
	q.runner.SendDue(now, l, out)
}

// FoundStuck: so they do since before the restart.
func (q *Quarantine) FoundStuck(now quantity.Instant, l *leases.Lease, out *protocol.Out) {
	q.lease(now, l, remaining(l)+" from before the restart", out)
}

// lease quarantines every slice of a lease whose processes can't be ended. The lease stands until they are gone or a person releases the
// slice.
func (q *Quarantine) lease(now quantity.Instant, l *leases.Lease, why string, out *protocol.Out) {
	t := l.Terms()
	q.inventory.Each(t.Slice, t.Also, func(s *inventory.Slice) { q.slice(now, s, t.Token, why, out) })
}

// slice takes a slice off the market because processes of a subjob are there. What was sold there and has not begun is withdrawn; holds
// lapse by themselves and are not redeemed until then.
func (q *Quarantine) slice(now quantity.Instant, s *inventory.Slice, t job.Token, why string, out *protocol.Out) {
	if c := s.Condition(); c.Quarantined && c.Holder == t { // a restart finds it again
		return
	}
	q.record.Fact(out, protocol.Fact{Kind: protocol.Quarantined, Slice: s.ID(), Token: t, At: now, Body: &protocol.Reason{Text: why}})
	q.runner.Withdraw(now, s, "withdrawn: "+string(s.ID())+" was quarantined: "+why, out)
}

// remaining is why a slice is quarantined on which a lease's processes can't be ended.
func remaining(l *leases.Lease) string {
	return "processes of subjob " + l.Token().String() + " of job " + string(l.Job()) + " remain"
}

// strayed is why a slice is quarantined on which a subjob runs without a lease.
func strayed(t job.Token) string {
	return "subjob " + t.String() + " runs there and no lease stands for it"
}

// Stray deals with a run directory that no lease stands for. What lives there quarantines its slice; what is dead is put away.
func (q *Quarantine) Stray(now quantity.Instant, f *protocol.Found, out *protocol.Out) {
	if !f.Alive && !f.Stuck {
		q.discard(f.Token, f.Job, out)
		return
	}
	q.strays = append(q.strays, stray{f.Token, f.Job, f.Slice})
	if f.Slice != "" {
		q.slice(now, q.inventory.Record(f.Slice), f.Token, strayed(f.Token), out)
	}
	q.record.Send(out, protocol.Message{
		Kind: protocol.Stop, To: q.record.Executor(), Token: f.Token, Job: f.Job, Body: &protocol.Halt{Text: leases.Stray},
	})
}

// StrayGone puts away a subjob that no lease stands for, which has ended.
func (q *Quarantine) StrayGone(t job.Token, out *protocol.Out) {
	if i := slices.IndexFunc(q.strays, func(s stray) bool { return s.token == t }); i >= 0 {
		q.discard(t, q.strays[i].job, out)
		q.strays = slices.Delete(q.strays, i, i+1)
	}
}

// discard lets the executor put away the directories of a subjob that counts for nothing.
func (q *Quarantine) discard(t job.Token, id job.ID, out *protocol.Out) {
	q.record.Send(out, protocol.Message{Kind: protocol.Settle, To: q.record.Executor(), Token: t, Job: id, Body: &protocol.Settlement{}})
}

// Gone lifts the quarantine of every slice that had a subjob's processes for its reason: the last of them is gone.
func (q *Quarantine) Gone(now quantity.Instant, t job.Token, out *protocol.Out) {
	if q.holders == 0 {
		return
	}
	for _, s := range q.inventory.All() {
		if s.Condition().Holder == t {
			q.lift(now, s, out)
		}
	}
}

// Booted lifts the quarantine of a slice if the last of those processes has ended while nobody looked.
func (q *Quarantine) Booted(now quantity.Instant, s *inventory.Slice, out *protocol.Out) {
	holder := s.Condition().Holder
	if l := q.leases.Of(holder); l != nil && !l.Vacated() ||
		slices.ContainsFunc(q.strays, func(s stray) bool { return s.token == holder }) {
		return
	}
	q.lift(now, s, out)
}

// lift ends the quarantine of a slice whose reason is gone, unless another subjob's processes are there.
func (q *Quarantine) lift(now quantity.Instant, s *inventory.Slice, out *protocol.Out) {
	if s.Condition().Holder.Zero() {
		return
	}
	for _, t := range q.strays {
		if t.slice == s.ID() {
			q.slice(now, s, t.token, strayed(t.token), out)
			return
		}
	}
	for _, l := range q.leases.On(s) {
		if l.Stuck() {
			q.slice(now, s, l.Token(), remaining(l), out)
			return
		}
	}
	q.record.Fact(out, protocol.Fact{Kind: protocol.QuarantineLifted, Slice: s.ID()})
}

// Unquarantine lifts a quarantine, and a fault, after a person has looked. A subjob that was stuck there counts as gone from then on. It
// says what it did.
func (q *Quarantine) Unquarantine(now quantity.Instant, s *inventory.Slice, out *protocol.Out) string {
	c := s.Condition()
	if c.Healthy() {
		return string(s.ID()) + " is not quarantined, nothing changed"
	}
	if c.Fault != nil { // a state that is still said does not bring it back; another one does
		if c.Fault.Cause != health.ByXid {
			q.looked(s).waived = c.Fault.Text
		}
		q.mend(s, "a person has released it", out)
	}
	if !c.Quarantined {
		return string(s.ID()) + " is released"
	}
	for _, l := range q.leases.On(s) {
		if l.Stuck() {
			q.runner.End(now, l, l.OwnResult(now, job.Lost, "its processes could not be ended; a person released "+string(s.ID())), false,
				out)
		}
	}
	q.record.Fact(out, protocol.Fact{Kind: protocol.QuarantineLifted, Slice: s.ID()})
	return string(s.ID()) + " is unquarantined"
}

// mend has a slice sold again.
func (q *Quarantine) mend(s *inventory.Slice, why string, out *protocol.Out) {
	q.record.Fact(out, protocol.Fact{Kind: protocol.SliceMended, Slice: s.ID(), Body: &protocol.Reason{Text: why}})
}

// Forget drops what is known of the GPU of a slice that is gone.
func (q *Quarantine) Forget(s *inventory.Slice) { delete(q.looks, s.ID()) }

func (q *Quarantine) looked(s *inventory.Slice) *looked {
	x := q.looks[s.ID()]
	if x == nil {
		x = &looked{}
		q.looks[s.ID()] = x
	}
	return x
}
