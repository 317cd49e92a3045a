// Package lend keeps places in a zone for parts of gangs that other zones are home to, or that are too large for the zone's own slices
// (docs/adr/0045). A place is kept for as long as the gang's home renews it: a silent home's lapses after a while. The latest message of a
// home counts.
package lend

import (
	"cmp"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/loan"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostGuests bounds those that are known at once.
const mostGuests = 64

// Zone is what guests ask of theirs.
type Zone interface {
	// Asking says whether the nodes are asked for what a gang of the zone's own wants.
	Asking(id job.ID) bool
	// Lent tells a gang of the zone's own what it could have here, Send tells another zone.
	Lent(now quantity.Instant, id job.ID, l *protocol.Lending, out *protocol.Out)
	Send(out *protocol.Out, m protocol.Message)
}

// Guests are the parts of gangs that a zone was asked to lend to. Soft.
type Guests struct {
	self    protocol.Address
	zone    Zone
	planner *backfill.Planner
	of      map[job.ID]*guest
	// ends are when those are forgotten that nobody speaks of any more. owed are to be answered in this step.
	ends alarm.Heap[*guest]
	owed []*guest
	// leaving are given back, and forgotten when the planner has seen that.
	leaving []*guest
}

// New has no guest.
func New(self protocol.Address, zone Zone, planner *backfill.Planner) *Guests {
	return &Guests{self: self, zone: zone, planner: planner, of: map[job.ID]*guest{}}
}

// guest is the part of one gang that this zone is to lend, as its home said last.
type guest struct {
	protocol.Loan
	in    *Guests
	name  job.ID
	home  protocol.Address
	epoch uint32
	// spec of the part: its number of slices in this zone, for its time.
	spec  job.Spec
	rigid backfill.Job
	slot  int
	owed  bool
	// left: it was given back; gone: and the planner has seen that.
	left, gone bool
}

func (g *guest) Name() job.ID                                    { return g.name }
func (g *guest) Spec() *job.Spec                                 { return &g.spec }
func (g *guest) Submitted() quantity.Instant                     { return g.Loan.Submitted }
func (g *guest) Active() bool                                    { return !g.left || g.Taken && !g.gone }
func (g *guest) Waiting() bool                                   { return g.Keep && !g.left }
func (g *guest) Waits(quantity.Instant) explain.Reason           { return explain.Eligible }
func (g *guest) CountRefusal(atomizer.Refusal, quantity.Instant) {}

// Asking: the nodes are asked for what is kept, as far as that is known here.
func (g *guest) Asking() bool {
	return g.home == g.in.self && g.in.zone.Asking(g.name)
}

func (g *guest) View() atomizer.View {
	learned := g.Learned
	if learned == nil {
		learned = &protocol.Learned{}
	}
	return atomizer.View{Spec: &g.spec, Learned: learned}
}

func (g *guest) Avoids(s *backfill.Slice) bool {
	return slices.Contains(g.Loan.Avoids, s.Name()) || s.Class().SpeedOf(g.Loan.Spec) == 0
}

// alike says whether a loan is one of as many slices for as long, in the same place in line.
func (g *guest) alike(l *protocol.Loan) bool {
	return g.Slices == l.Slices && g.Length == l.Length && g.Loan.Submitted == l.Submitted && g.Loan.Spec.Priority == l.Spec.Priority
}

// partOf is a loan as the planner sees it: a gang of the zone. Its run time is given, whatever slices it gets.
func partOf(l *protocol.Loan) job.Spec {
	s := *l.Spec
	s.Slices, s.Topology, s.Speeds, s.Launch = l.Slices, job.SameZone, nil, job.Launch{}
	if s.Walltime = l.Length; l.Length == protocol.NoEnd {
		s.Walltime = 0
	}
	return s
}

// Find is the guest that a job of this name is here; nil if it is none.
func (z *Guests) Find(id job.ID) *backfill.Job {
	if z == nil {
		return nil
	}
	if g := z.of[id]; g != nil && !g.left {
		return &g.rigid
	}
	return nil
}

// All are the guests by name.
func (z *Guests) All() (all []*backfill.Job) {
	if z == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(z.of)) {
		all = append(all, &z.of[name].rigid)
	}
	return all
}

// Lend records what a home wants of this zone for a gang. The latest message counts, and an answer is due at the end of the step.
func (z *Guests) Lend(now quantity.Instant, from protocol.Address, name job.ID, epoch uint32, l *protocol.Loan) {
	g := z.of[name]
	switch {
	case g != nil && (epoch < g.epoch || epoch == g.epoch && (from != g.home || l.Seq <= g.Seq)):
		return
	case l.Slices <= 0:
		if g != nil && !g.left {
			g.Seq, g.Taken = l.Seq, l.Taken
			z.leave(g)
		}
		return
	case !job.ValidID(name) || l.Spec == nil || l.Spec.Kind != job.Rigid || l.Length <= 0:
		return
	case g != nil && !g.alike(l): // to the planner it is another gang
		if !g.left {
			z.leave(g)
		}
		g = &guest{in: z}
		z.of[name] = g
	case g == nil && len(z.of) >= mostGuests:
		g = &guest{in: z} // it is told so, and not kept
	case g == nil:
		g = &guest{in: z}
		z.of[name] = g
	}
	if g.rigid.Demand == nil {
		g.rigid.Demand, g.rigid.Guest = g, &backfill.Guest{}
	}
	anew := g.left || l.NotBefore != g.NotBefore || l.Keep != g.Keep || !slices.Equal(l.Avoids, g.Loan.Avoids)
	g.Loan, g.name, g.home, g.epoch, g.left, g.gone = *l, name, from, epoch, false, false
	g.spec, g.rigid.Guest.NotBefore = partOf(l), l.NotBefore
	if !g.owed {
		g.owed = true
		z.owed = append(z.owed, g)
	}
	if z.of[name] != g {
		return
	}
	z.ends.Set(&g.slot, g, now.Add(loan.Stands))
	if anew {
		g.rigid.InvalidatePlacement()
		z.planner.InvalidateJob(&g.rigid)
	}
}

// leave ends that a guest's place is kept.
func (z *Guests) leave(g *guest) {
	if g.Taken {
		z.planner.Took(&g.rigid)
	}
	g.left = true
	z.ends.Set(&g.slot, g, quantity.Never)
	z.planner.InvalidateJob(&g.rigid)
	z.leaving = append(z.leaving, g)
}

// Expire ends the places of those whose homes are silent.
func (z *Guests) Expire(now quantity.Instant) {
	if z == nil {
		return
	}
	for g := range z.ends.Past(now) {
		z.leave(g)
	}
}

// Owes reports whether Answer has something to send or to forget.
func (z *Guests) Owes() bool { return z != nil && len(z.owed)+len(z.leaving) > 0 }

// Next is when Expire ends something.
func (z *Guests) Next() quantity.Instant {
	if z == nil {
		return quantity.Never
	}
	return z.ends.Next()
}

// Answer says to homes what their gangs could have here, or have, and forgets those that have left. It follows a plan.
func (z *Guests) Answer(now quantity.Instant, out *protocol.Out) {
	for _, g := range z.leaving {
		if !g.left { // it came again
			continue
		}
		if g.gone = true; g.Taken {
			z.planner.InvalidateJob(&g.rigid)
		}
		if z.of[g.name] == g {
			delete(z.of, g.name)
		}
	}
	z.leaving = z.leaving[:0]
	owed := z.owed
	z.owed = nil
	for _, g := range owed {
		g.owed = false
		if g.left {
			continue
		}
		l := z.lending(now, g)
		if g.home == z.self {
			z.zone.Lent(now, g.name, l, out)
		} else {
			z.zone.Send(out, protocol.Message{Kind: protocol.Lent, To: g.home, Job: g.name, Body: l})
		}
	}
}

// lending is what a guest could have, or has.
func (z *Guests) lending(now quantity.Instant, g *guest) *protocol.Lending {
	l := &protocol.Lending{Seq: g.Seq}
	if z.of[g.name] != g {
		l.Why = "it lends to as many gangs as it may"
		return l
	}
	if l.Could = z.planner.Could(now, &g.rigid); l.Could < g.Slices {
		l.Why = "it has no more that could run it"
		return l
	}
	first, worthy, found := z.planner.GuestPlace(now, now, &g.rigid)
	if found {
		l.Earliest = first.Start
	}
	place, kept := g.rigid.Placement()
	switch {
	case g.Keep && kept:
		l.Kept = true
	case !found:
		l.Why = "so many of its slices are not free together for so long"
		return l
	case !worthy:
		l.Why = "its slices are worth more to others until the gang is late"
		return l
	default:
		place = first
		if g.Keep {
			l.Why = "others are served before it"
		}
	}
	l.Start, l.End = place.Start, place.End
	for _, s := range place.Slices {
		if x := s.Class().SpeedOf(g.Loan.Spec); l.Speed == 0 || x < l.Speed {
			l.Speed = x
		}
		if l.Kept {
			l.Slices = append(l.Slices, protocol.LentSlice{ID: s.Name(), Node: s.Node(), Capacity: s.Class().Capacity})
		}
	}
	slices.SortStableFunc(l.Slices, func(a, b protocol.LentSlice) int { return cmp.Compare(a.Node, b.Node) })
	return l
}
