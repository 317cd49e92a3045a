// Package borrow gets slices of other zones for gangs that are at home in one zone and for which its slices are too few (docs/adr/0045). A
// gang borrows while it waits and may run, and its own zone could never hold it alone; it gives back what it has as soon as that is no
// longer so.
package borrow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/federation/loan"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Zone is what borrowers ask of theirs.
type Zone interface {
	// Waits is why a job is not asked at all, Rigid what the planner keeps of it, Gang what Stir made of the job of this name.
	Waits(now quantity.Instant, j *home.Job) explain.Reason
	Rigid(j *home.Job) *backfill.Job
	Gang(id job.ID) *Gang
	// Lend asks the zone itself to lend, Ask the nodes of all zones for what is lent.
	Lend(now quantity.Instant, name job.ID, epoch uint32, l *protocol.Loan)
	Ask(now quantity.Instant, a *home.Ask, reservation uint64, out *protocol.Out)
	// Version of the view of a slice that is the zone's own; of others it learns the memory.
	Version(id job.SliceID, memory quantity.Amount) (version uint64, own bool)
	// Refused notes why nothing of a job fits.
	Refused(now quantity.Instant, j *home.Job, why atomizer.Refusal)
	Send(out *protocol.Out, m protocol.Message)
}

// Config of a zone's borrowers.
type Config struct {
	ID    job.ZoneID
	Gates protocol.Gates
	Retry time.Duration
}

// Borrowers are the gangs of a zone that may span several. Soft.
type Borrowers struct {
	cfg     Config
	zone    Zone
	planner *backfill.Planner
	alarms  alarm.Heap[*Gang]
	stale   dirty.Set[*Gang]
}

// New knows of no gang.
func New(cfg Config, zone Zone, planner *backfill.Planner) *Borrowers {
	return &Borrowers{cfg: cfg, zone: zone, planner: planner}
}

// Gang is one of them (loan.Office).
type Gang struct {
	in    *Borrowers
	job   *home.Job
	loans *loan.Gang
	mark  dirty.Mark
	slot  int
	// now and out of the step that it is part of.
	now quantity.Instant
	out *protocol.Out
}

// within has something done for it as a part of a step.
func (b *Gang) within(now quantity.Instant, out *protocol.Out, do func()) {
	b.now, b.out = now, out
	do()
	b.out = nil
}

// another is how often a gang with a placement in its own zone is checked for still having it.
const another = 10 * time.Second

// spans says whether a job may span several zones.
func spans(spec *job.Spec) bool {
	return spec != nil && spec.Kind == job.Rigid && spec.Topology == job.SameCluster && spec.Slices > 1
}

// Stir notes that a job's need of other zones' slices may have changed. is holds its Gang, made at first need.
func (z *Borrowers) Stir(j *home.Job, is **Gang) {
	if z == nil {
		return
	}
	if *is == nil {
		if !spans(j.Spec) || !j.Active() {
			return
		}
		*is = &Gang{in: z, job: j, loans: loan.New(z.cfg.ID, j.Width(), z.cfg.Retry)}
	}
	z.stale.Add(&(*is).mark, *is)
}

// Borrow advances the gangs that are too large for this zone.
func (z *Borrowers) Borrow(now quantity.Instant, out *protocol.Out) {
	if z == nil {
		return
	}
	for b := range z.alarms.Past(now) {
		z.stale.Add(&b.mark, b)
	}
	list := slices.Clone(z.stale.List())
	z.stale.Clear()
	slices.SortFunc(list, func(a, b *Gang) int { return cmp.Compare(a.job.ID, b.job.ID) })
	for _, b := range list {
		b.within(now, out, func() { b.proceed(now) })
	}
}

// proceed does what is due for one gang.
func (b *Gang) proceed(now quantity.Instant) {
	z, j := b.in, b.job
	wants := j.Active() && spans(j.Spec) && len(j.Claims()) == 0 && j.Progress().Asking() == 0 && z.zone.Waits(now, j) == explain.Eligible
	state := b.loans.State()
	switch {
	case state == loan.Begun && j.Progress().Asking() > 0:
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
	z.alarms.Set(&b.slot, b, next)
}

// alone says whether the gang's own zone has enough slices for it, however late these are free.
func (z *Borrowers) alone(now quantity.Instant, b *Gang) bool {
	return z.planner.Could(now, z.zone.Rigid(b.job)) >= b.job.Width()
}

// Named records the zones that the gate named as lenders for a gang. It ignores the answer while the gate counts enough slices for the gang
// in this zone but the planner can't place it on those offered so far: it waits for the rest to be offered.
func (z *Borrowers) Named(now quantity.Instant, id job.ID, l *protocol.LenderList, out *protocol.Out) {
	if b := z.zone.Gang(id); b != nil && !z.alone(now, b) {
		own := slices.IndexFunc(l.Zones, func(x protocol.Lender) bool { return x.Zone == z.cfg.ID })
		if own < 0 || l.Zones[own].Slices < b.job.Width() || z.planner.Reach(now, z.zone.Rigid(b.job)) >= b.job.Width() {
			b.within(now, out, func() { b.loans.Named(now, l, b) })
		}
		z.stale.Add(&b.mark, b)
	}
}

// Lent handles what a zone lends.
func (z *Borrowers) Lent(now quantity.Instant, from job.ZoneID, id job.ID, l *protocol.Lending, out *protocol.Out) {
	if b := z.zone.Gang(id); b != nil {
		b.within(now, out, func() { b.loans.Lent(now, from, l, b) })
		z.stale.Add(&b.mark, b)
	}
}

// AskGate implements loan.Office, as all of the following.
func (b *Gang) AskGate(seq uint64, without []job.ZoneID) {
	z := b.in
	z.zone.Send(b.out, protocol.Message{Kind: protocol.Lenders, To: z.cfg.Gates.Of(b.job.ID), Job: b.job.ID,
		Body: &protocol.LenderList{Seq: seq, Without: without}})
}

// Borrow asks this zone without a message.
func (b *Gang) Borrow(zone job.ZoneID, l protocol.Loan) {
	z := b.in
	if l.Slices > 0 {
		l.Spec, l.Submitted, l.Learned, l.Avoids = b.job.Spec, b.job.Submitted, b.job.Learned(), b.job.Backoff().Avoided()
	}
	if zone == z.cfg.ID {
		z.zone.Lend(b.now, b.job.ID, b.job.Epoch, &l)
		return
	}
	z.zone.Send(b.out, protocol.Message{Kind: protocol.Borrow, To: protocol.Address{Role: protocol.Zone, ID: string(zone)}, Job: b.job.ID,
		Epoch: b.job.Epoch, Body: &l})
}

// Need is how long it runs, with all that its lease holds.
func (b *Gang) Need(speed int64) time.Duration {
	if b.job.Spec.Walltime == 0 {
		return protocol.NoEnd
	}
	return atomizer.RigidLength(b.job.Spec, speed)
}

// Begin asks the nodes of all zones, in order of their ids.
func (b *Gang) Begin(now quantity.Instant, parts []*protocol.Lending, length time.Duration, speed int64) {
	z, j := b.in, b.job
	var on []protocol.LentSlice
	for _, p := range parts {
		on = append(on, p.Slices...)
	}
	slices.SortStableFunc(on, func(a, c protocol.LentSlice) int { return cmp.Compare(a.Node, c.Node) })
	if len(on) != j.Width() {
		return // a zone that has changed its offer since: it is asked again after a rest
	}
	smallest := slices.MinFunc(on, func(a, c protocol.LentSlice) int { return cmp.Compare(a.Capacity[0], c.Capacity[0]) })
	end := quantity.Never
	if length != protocol.NoEnd {
		end = now.Add(length)
	}
	view := j.View()
	p, r := atomizer.Fit(&view, atomizer.Window{Capacity: smallest.Capacity, Speed: speed, Start: now, End: end})
	if r.Why != atomizer.Interested {
		z.zone.Refused(now, j, r) // what is asked for is never empty: it comes again after a rest
		return
	}
	a := &home.Ask{Job: j, Sale: protocol.Sale{Node: on[0].Node, Placement: protocol.Placement{Slice: on[0].ID, Range: p.Range, Start: now,
		End: end, Demand: p.Demand, Plan: protocol.Plan{Run: p.Run, Wall: p.Wall}}, Speed: speed}}
	var members []protocol.Member
	var places []home.Basis
	for i, s := range on {
		if i > 0 {
			a.Also = append(a.Also, s.ID)
		}
		if last := len(members) - 1; last < 0 || members[last].Node != s.Node {
			members, places = append(members, protocol.Member{Node: s.Node}), append(places, home.Basis{Reservation: protocol.OwnPlace})
		}
		last := len(members) - 1
		members[last].Slices++
		if version, own := z.zone.Version(s.ID, s.Capacity[0]); own {
			places[last].Version = version
		}
	}
	if len(members) > 1 {
		a.Gang(members, places)
	}
	z.zone.Ask(now, a, places[0].Reservation, b.out)
}

// Next is when Borrow is to be called again.
func (z *Borrowers) Next() quantity.Instant {
	if z == nil {
		return quantity.Never
	}
	return z.alarms.Next()
}

// Waits says why a gang waits for slices of other zones; empty if it does not.
func (b *Gang) Waits(now quantity.Instant) string {
	if b == nil || b.loans.State() == loan.Idle {
		return ""
	}
	return fmt.Sprintf("(Resources) its zone has too few slices for all %d of it; %s", b.job.Width(), b.loans.Sentence(now))
}
