package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// newAsk is for a piece of a job, on a slice and on others with it.
func newAsk(j *home.Job, s *sites.Slice, also []job.SliceID, p award.Piece) *home.Ask {
	at := protocol.Placement{
		Slice: s.Name(), Also: also, Range: p.Range, Start: p.Start, End: p.End, Demand: p.Demand,
		Peak: peakOn(&s.View().Slice, j, p.Range, p.Demand, p.Option),
		Plan: protocol.Plan{Run: p.Run, Wall: p.Wall, Window: p.Window, Round: p.Round, Option: p.Option,
			Residence: entryOf(j).floor.Residence(), Resident: p.Resident},
	}
	return &home.Ask{
		Job: j, Sale: protocol.Sale{Placement: at, Speed: p.Speed, Bid: p.Bid}, Version: s.Version(), Late: p.Late,
	}
}

// peakOn is the probable peak of a piece of a job on a slice whose host's memory is counted; of one whose is not nobody needs it.
func peakOn(s *protocol.Slice, j *home.Job, r job.Range, demand trp.Vector, option string) trp.Peak {
	if s.Host <= 0 {
		return trp.Peak{}
	}
	v := j.View()
	if i := slices.IndexFunc(j.Spec.Options, func(o job.Option) bool { return o.Name == option }); i >= 0 {
		v.Option = &j.Spec.Options[i]
	}
	return v.Peak(r, demand)
}

// ask makes the ledger ask, and keeps the time on the slices for it until that is answered.
func (z *Zone) ask(now quantity.Instant, a *home.Ask, reservation uint64, out *protocol.Out) {
	z.sites.Ask(a)
	entryOf(a.Job).floor.Losses().Clear()
	z.bets.Ask(z.sites.Make(a.Slice).Book(), a)
	z.home.Claims().Ask(now, a, reservation, out)
}

// take takes an ask out of the ledger and off its slices; nil if nobody waits for it any more.
func (z *Zone) take(id uint64) *home.Ask {
	a := z.home.Claims().TakeAsk(id)
	if a != nil {
		z.sites.Answered(a)
	}
	return a
}

// granted hands a node's grant on to the ledger.
func (z *Zone) granted(now quantity.Instant, in *protocol.Message, g *protocol.Grant, out *protocol.Out) {
	if z.home.Claims().Prepared(in, g, now, out) { // one node of a gang holds, and the next is asked
		return
	}
	if a := z.take(g.Ask); a != nil {
		z.sites.Make(a.Slice).Book().Won(a, in.Token)
		if !z.home.Claims().Granted(now, a, in, g, out) { // what was asked for is for sale again
			z.floor.Late().Spend(-a.Late)
		}
		if a.Job.ClaimSet().State(in.Token) == nil {
			z.sites.Make(a.Slice).Book().Drop(in.Token)
		}
	}
}

// refused: the view was stale, a fresh Offer follows; or an extension was not to be had.
func (z *Zone) refused(now quantity.Instant, in *protocol.Message, r *protocol.Refusal, out *protocol.Out) {
	if a := z.take(r.Ask); a != nil {
		entryOf(a.Job).rigid.Refused(now)
		z.forgo(a, out)
		if r.Ends && a.Job.Active() {
			z.home.Claims().Delays.Await(now, a.Job, r.Slice)
			return
		}
		z.home.Claims().BackOff(now, a.Job, z.sites.Present(a.Version, a.Slices()), a.ID(), r.Text)
		return
	}
	if id, sl, version, ok := z.planner.Refuse(r.Ask); ok {
		if j := z.home.Book().Job(id); j != nil && j.Active() {
			z.home.Claims().BackOff(now, j, z.sites.Present(version, []job.SliceID{sl.Name()}), r.Ask, r.Text)
		}
		return
	}
	z.home.Claims().NotExtended(in, r, out)
}

// forgo gives back what an ask that was taken out comes to nothing with.
func (z *Zone) forgo(a *home.Ask, out *protocol.Out) {
	z.home.Claims().Abort(a, out)
	z.sites.Make(a.Slice).Book().Forgo(a)
	z.floor.Late().Spend(-a.Late)
}

// remove lets go of a node that was removed, with all that is kept for it. What it was asked for comes to nothing, so that a late answer is
// to nobody's question; its claims stand until they are settled or run out, and are what is kept of it till then (sites.Sites.Remove). No
// fact says so: a restart knows nothing else either.
func (z *Zone) remove(now quantity.Instant, node job.NodeID, out *protocol.Out) {
	for _, a := range slices.Clone(z.home.Claims().Asks()) {
		if asked, _ := z.home.Claims().Asked(a.ID()); a.Concerns(node, asked) {
			z.take(a.ID())
			z.forgo(a, out)
			z.home.Book().Changed(a.Job)
		}
	}
	z.sites.Remove(now, node)
	z.reach.Settled(node)
	if z.seek != nil {
		z.seek.Ground().Forget(node)
	}
}

// lapse forgets what nobody answered in time.
func (z *Zone) lapse(now quantity.Instant, out *protocol.Out) {
	for id := z.home.Claims().Lapsed(now); id != 0; id = z.home.Claims().Lapsed(now) {
		a := z.take(id)
		z.forgo(a, out)
		z.home.Claims().BackOff(now, a.Job, a.Slices(), id, home.Silent)
	}
	z.planner.Lapse(now)
}
