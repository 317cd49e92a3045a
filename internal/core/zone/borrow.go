package zone

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/federation/loan"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The zone as a borrower: gangs that are at home here and for which its slices are too few (docs/adr/0045).

// borrowers are the gangs that may lie in several zones. All of it is soft.
type borrowers struct {
	alarms alarm.Heap[*borrower]
	stale  dirty.Set[*borrower]
}

// borrower is one of them.
type borrower struct {
	of    *entry
	loans *loan.Gang
	mark  dirty.Mark
	slot  int
	// now and out of the step that it is part of.
	now quantity.Instant
	out *protocol.Out
}

// within has something done for it as a part of a step.
func (b *borrower) within(now quantity.Instant, out *protocol.Out, do func()) {
	b.now, b.out = now, out
	do()
	b.out = nil
}

// another is how often it is looked whether a gang that has a place to come in its own zone still has one.
const another = 10 * time.Second

// spans says whether a job may lie in several zones.
func spans(spec *job.Spec) bool {
	return spec != nil && spec.Kind == job.Rigid && spec.Topology == job.SameCluster && spec.Slices > 1
}

// stirLoans notes that a job may need slices of other zones, or no more.
func (z *Zone) stirLoans(j *home.Job) {
	e := entryOf(j)
	if e.borrows == nil {
		if !spans(j.Spec) || !j.Active() {
			return
		}
		e.borrows = &borrower{of: e, loans: loan.New(z.cfg.ID, j.Width(), z.cfg.Retry)}
	}
	z.borrowers.stale.Add(&e.borrows.mark, e.borrows)
}

// borrow has the gangs that are too large for this zone go on.
func (z *Zone) borrow(now quantity.Instant, out *protocol.Out) {
	for b, ok := z.borrowers.alarms.Due(now); ok; b, ok = z.borrowers.alarms.Due(now) {
		z.borrowers.stale.Add(&b.mark, b)
	}
	list := slices.Clone(z.borrowers.stale.List())
	z.borrowers.stale.Clear()
	slices.SortFunc(list, func(a, b *borrower) int { return cmp.Compare(a.of.job.ID, b.of.job.ID) })
	for _, b := range list {
		b.within(now, out, func() { b.proceed(now) })
	}
}

// proceed does what is due for one gang.
func (b *borrower) proceed(now quantity.Instant) {
	z, j := b.of.zone, &b.of.job
	wants := j.Active() && spans(j.Spec) && len(j.Claims()) == 0 && j.Asking() == 0 && z.waits(now, j) == market.Eligible
	state := b.loans.State()
	switch {
	case state == loan.Begun && j.Asking() > 0:
		b.loans.Tick(now, b)
	case state == loan.Begun:
		b.loans.Ended(now, len(j.Claims()) > 0, b)
	case state != loan.Idle && (!wants || z.alone(now, b)):
		b.loans.Drop(now, b)
	case wants:
		b.loans.Tick(now, b)
		if b.loans.State() == loan.Idle && !z.alone(now, b) {
			b.loans.Seek(now, b)
		}
	}
	next := b.loans.Next()
	if wants && b.loans.State() == loan.Idle {
		next = now.Add(another)
	}
	z.borrowers.alarms.Set(&b.slot, b, next)
}

// alone says whether the gang's own zone has enough slices for it, however late these are free.
func (z *Zone) alone(now quantity.Instant, b *borrower) bool {
	return z.planner.Could(now, b.of.rigid) >= b.of.job.Width()
}

// named takes in whom a gang may borrow of. As long as the gate knows of slices here that have not been offered, they are waited for.
func (z *Zone) named(now quantity.Instant, id job.ID, l *protocol.LenderList, out *protocol.Out) {
	if b := z.borrowerOf(id); b != nil && !z.alone(now, b) {
		own := slices.IndexFunc(l.Zones, func(x protocol.Lender) bool { return x.Zone == z.cfg.ID })
		if own < 0 || l.Zones[own].Slices < b.of.job.Width() || z.planner.Reach(now, b.of.rigid) >= b.of.job.Width() {
			b.within(now, out, func() { b.loans.Named(now, l, b) })
		}
		z.borrowers.stale.Add(&b.mark, b)
	}
}

// lent takes in what a zone lends.
func (z *Zone) lent(now quantity.Instant, from protocol.Address, id job.ID, l *protocol.Lending, out *protocol.Out) {
	if b := z.borrowerOf(id); b != nil {
		b.within(now, out, func() { b.loans.Lent(now, job.ZoneID(from.ID), l, b) })
		z.borrowers.stale.Add(&b.mark, b)
	}
}

func (z *Zone) borrowerOf(id job.ID) *borrower {
	if j := z.home.Job(id); j != nil {
		return entryOf(j).borrows
	}
	return nil
}

// AskGate implements loan.Office, as all of the following.
func (b *borrower) AskGate(seq uint64, without []job.ZoneID) {
	z := b.of.zone
	z.home.Send(b.out, protocol.Message{Kind: protocol.Lenders, To: z.cfg.Gates.Of(b.of.job.ID), Job: b.of.job.ID, Body: &protocol.LenderList{Seq: seq, Without: without}})
}

// Borrow asks this zone without a message.
func (b *borrower) Borrow(zone job.ZoneID, l protocol.Loan) {
	z := b.of.zone
	if l.Slices > 0 {
		l.Spec, l.Submitted, l.Learned, l.Avoids = b.of.job.Spec, b.of.job.Submitted, b.of.job.Learned(), b.of.job.Backoff().Avoided()
	}
	if zone == z.cfg.ID {
		z.lend(b.now, z.self, b.of.job.ID, b.of.job.Epoch, &l)
		return
	}
	z.home.Send(b.out, protocol.Message{Kind: protocol.Borrow, To: protocol.Address{Role: protocol.Zone, ID: string(zone)}, Job: b.of.job.ID, Epoch: b.of.job.Epoch, Body: &l})
}

// Need is how long it runs, with all that its lease holds.
func (b *borrower) Need(speed int64) time.Duration {
	if b.of.job.Spec.Walltime == 0 {
		return protocol.NoEnd
	}
	return atomizer.RigidLength(b.of.job.Spec, speed)
}

// Begin asks the nodes of all zones, in order of their ids.
func (b *borrower) Begin(now quantity.Instant, parts []*protocol.Lending, length time.Duration, speed int64) {
	z, j := b.of.zone, &b.of.job
	var on []protocol.LentSlice
	for _, p := range parts {
		on = append(on, p.Slices...)
	}
	slices.SortStableFunc(on, func(a, c protocol.LentSlice) int { return cmp.Compare(a.Node, c.Node) })
	if len(on) != j.Width() {
		return // a zone that has said something else since: it comes again after a rest
	}
	smallest := slices.MinFunc(on, func(a, c protocol.LentSlice) int { return cmp.Compare(a.Capacity[0], c.Capacity[0]) })
	end := quantity.Never
	if length != protocol.NoEnd {
		end = now.Add(length)
	}
	view := j.View()
	p, r := atomizer.Fit(&view, atomizer.Window{Capacity: smallest.Capacity, Speed: speed, Start: now, End: end})
	if r.Why != atomizer.Interested {
		entryOf(j).floor.CountRefusal(r, now) // what is asked for is never empty: it comes again after a rest
		return
	}
	a := &home.Ask{
		Job: j, Slice: on[0].ID, Node: on[0].Node, Range: p.Range, Start: now, End: end, Speed: speed, Demand: p.Demand, Plan: protocol.Plan{Run: p.Run, Wall: p.Wall},
	}
	var members []protocol.Member
	var places []home.Place
	for i, s := range on {
		if i > 0 {
			a.Also = append(a.Also, s.ID)
		}
		if last := len(members) - 1; last < 0 || members[last].Node != s.Node {
			members, places = append(members, protocol.Member{Node: s.Node}), append(places, home.Place{Reservation: protocol.OwnPlace})
		}
		last := len(members) - 1
		members[last].Slices++
		if own := z.site(s.ID); own.view != nil {
			places[last].Version = own.view.Version
		} else {
			own.memory = s.Capacity[0]
		}
	}
	if len(members) > 1 {
		a.Gang(members, places)
	}
	z.send(now, a, places[0].Reservation, b.out)
}

// lends is what people are told of a gang's loans.
type lends Zone

// Waits implements view.Loans.
func (z *lends) Waits(now quantity.Instant, j *home.Job) (string, bool) {
	b := entryOf(j).borrows
	if b == nil || b.loans.State() == loan.Idle {
		return "", false
	}
	return fmt.Sprintf("(Resources) its zone has too few slices for all %d of it; %s", j.Width(), b.loans.Sentence(now)), true
}
