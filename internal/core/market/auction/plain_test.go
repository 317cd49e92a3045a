package auction

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/variant"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Plain is the mechanism as the definition says: every window is looked at and every job asked, nothing is
// remembered of what it answered, and every window is cleared by itself anew and held against all plans there could be.
// Verifying, weighing and telling are the mechanism's own: they look at one variant. It is an oracle for tests.
type Plain struct{ *Auction }

// NewPlain is one that has sold nothing.
func NewPlain(cfg Config, p Parts) *Plain { return &Plain{New(cfg, p)} }

// live are the jobs by name.
func (p *Plain) live() []*index.Job {
	return slices.SortedFunc(slices.Values(p.parts.Index.Jobs()), index.ByName)
}

// Sell is Auction.Sell.
func (p *Plain) Sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	board, relay := p.parts.Board, p.parts.Relay
	p.parts.Index.Refresh(now)
	for _, s := range board.Slices() {
		board.Invalidate(s)
	}
	board.Advertise(now)
	uncontended := waiting <= board.Open()
	for r := relay.Over(now); r != nil; r = relay.Over(now) {
		p.conclude(now, r, uncontended, out)
	}
	offers, wake := p.offers(now, waiting)
	offers = p.withdraw(now, offers, out)
	if asked := relay.Callees(now, p.callable(offers), offers); len(asked) > 0 {
		p.rounds++
		offers = relay.Announce(now, relay.NewRound(now, p.rounds, p.quoter.cfg.Variants, quantity.Never), offers, asked, out)
	}
	p.clear(now, offers, nil, uncontended, out)
	for _, s := range board.Slices() {
		for i := range s.Windows() {
			if w := &s.Windows()[i]; w.Start() > now {
				wake = min(wake, w.Start())
			} else if w.Planned() > now {
				wake = min(wake, w.Planned())
			}
		}
	}
	return min(wake, relay.Next())
}

// offers are the windows to be offered: to everybody, or to those who changed.
func (p *Plain) offers(now quantity.Instant, waiting int) (offers []agents.Offer, again quantity.Instant) {
	again = quantity.Never
	order := slices.Clone(p.parts.Board.Slices())
	if waiting <= p.parts.Board.Open() {
		slices.SortStableFunc(order, func(a, b *window.Slice) int { return cmp.Compare(b.Class().Speed, a.Class().Speed) })
	}
	for _, s := range order {
		if s.Dirty() {
			continue
		}
		for i := range s.Windows() {
			w := &s.Windows()[i]
			full := w.Due(now)
			if w.Start() > now || w.Round() != 0 || !full && !p.parts.Index.News() || p.parts.Index.Generation() == 0 {
				continue
			}
			if full && !s.Another(now, p.quoter.cfg.Rounds) {
				again = now.Add(variant.Tick)
				break
			}
			offers = append(offers, agents.Offer{Slice: s, ID: w.ID(), Full: full})
		}
	}
	return offers, again
}

func (p *Plain) conclude(now quantity.Instant, r *agents.Round, uncontended bool, out *protocol.Out) {
	late := r.Generation() != p.parts.Index.Generation()
	for i := range r.Offers() {
		if w := r.Offers()[i].Find(); w != nil {
			w.Await(0)
		}
	}
	p.parts.Relay.TakeIn(now, r)
	p.clear(now, r.Offers(), r, uncontended, out)
	for i := range r.Offers() {
		if w := r.Offers()[i].Find(); w != nil && late {
			w.Reopen()
		}
	}
	p.parts.Relay.Conclude(now, r, out)
}

func (p *Plain) clear(now quantity.Instant, offers []agents.Offer, r *agents.Round, uncontended bool, out *protocol.Out) {
	by := func(a, b agents.Offer) int { return cmp.Compare(a.Slice.Node(), b.Slice.Node()) }
	if p.quoter.cfg.Joint {
		slices.SortStableFunc(offers, by)
	}
	for len(offers) > 0 {
		n := 1
		for p.quoter.cfg.Joint && n < len(offers) && by(offers[n], offers[0]) == 0 {
			n++
		}
		p.clearTogether(now, offers[:n], r, uncontended, out)
		offers = offers[n:]
	}
}

func (p *Plain) clearTogether(now quantity.Instant, offers []agents.Offer, r *agents.Round, uncontended bool, out *protocol.Out) {
	if r == nil {
		p.rounds++
	}
	p.plan.bids, p.plan.clearer = nil, clearing.Clearer{}
	for i := range offers {
		o := &offers[i]
		if w := o.Find(); w != nil {
			p.gather(now, int32(i), o, w, uncontended)
			p.enterAnswers(now, int32(i), o, w, r, uncontended)
		} else if r != nil {
			p.parts.Relay.Gone(o, r)
		}
	}
	p.pickAndSettle(now, offers, r, out)
	p.judge(now, offers)
}

// gather has all propose who are asked for a window.
func (p *Plain) gather(now quantity.Instant, at int32, o *agents.Offer, w *window.Window, uncontended bool) {
	from := len(p.plan.bids)
	purses := &p.quoter.purses
	asked, beyond := p.invite(now, now, o, w)
	for _, j := range asked {
		p.enterRival(now, at, j, o, w, uncontended)
	}
	best := func() (best int64) {
		for i := from; i < len(p.plan.bids); i++ {
			t := &p.plan.bids[i]
			best = max(best, scaled(t.rate, purses.fullness(now, t.Job)))
		}
		return best
	}
	for _, j := range beyond {
		x := p.parts.Est.Index(j, o.Slice.Class())
		if p.audience.mostRate(x, index.Precedence(j.Spec().Priority), purses.fullness(now, j)) > best() {
			p.enterRival(now, at, j, o, w, uncontended)
		}
	}
	for i := from; i < len(p.plan.bids); i++ {
		t := &p.plan.bids[i]
		t.weight = scaled(t.weight, purses.fullness(now, t.Job))
	}
}

// judge holds what won against all plans there could be, where these are not too many: it is the best, or the best with the
// heaviest bid that begins now, where otherwise nothing would be sold now.
func (p *Plain) judge(now quantity.Instant, offers []agents.Offer) {
	if len(offers) != 1 || p.quoter.cfg.Exclusive || len(p.plan.bids) > 12 {
		return // what Exclusive and Joint find has bounds, which are held in package clearing
	}
	bids := p.plan.tables[0]
	won, value, soonest, heaviest := 0, int64(0), 0, int64(0)
	for i := range p.plan.bids {
		t := &p.plan.bids[i]
		if t.Start <= p.quoter.cfg.soldUntil(now) && t.weight > heaviest {
			soonest, heaviest = 1<<i, t.weight
		}
		if slices.Contains(p.plan.won, t.row) {
			won |= 1 << i
			value += t.weight
		}
	}
	apart := func(plan int) bool {
		for i := range bids {
			for k := range i {
				if plan>>i&1 == 1 && plan>>k&1 == 1 && bids[i].Start < bids[k].End && bids[k].Start < bids[i].End {
					return false
				}
			}
		}
		return true
	}
	invariant.Check(apart(won), "winners overlap: %b of %+v", won, bids)
	if slices.ContainsFunc(p.plan.bids, func(t bid) bool { return t.late }) {
		return // who has waited too long goes first, whatever it is worth
	}
	best, kept := int64(0), int64(0)
	for plan := range 1 << len(bids) {
		if apart(plan) {
			sum := int64(0)
			for i := range bids {
				sum += int64(plan>>i&1) * bids[i].Weight
			}
			if best = max(best, sum); plan&soonest != 0 {
				kept = max(kept, sum)
			}
		}
	}
	invariant.Check(value == best || won&soonest != 0 && value == kept,
		"the winners are worth %d, the best plan %d, with what begins now %d: %+v", value, best, kept, bids)
}

// invite lists, by name, the jobs with an atomizer that answer for a window: of those whose answers do not move by
// themselves no more than the audience holds, the first of the policy, the first that is late, and those that have waited longest. Where
// bids go by the policy's index the first that is late comes to it, and the rest is returned too, in the policy's order.
func (p *Plain) invite(moment, now quantity.Instant, o *agents.Offer, w *window.Window) (asked, beyond []*index.Job) {
	c, est, purses := o.Slice.Class(), p.parts.Est, &p.quoter.purses
	var crowd []*index.Job
	for _, j := range p.live() {
		if j.Spec().External || j.Ineligible(now) != explain.Eligible || j.Avoids(o.Slice) || !o.Full && !j.Fresh() {
			continue
		}
		if o.Full && !j.Volatile() && p.parts.Index.Simple(j) {
			if _, r := est.Fit(j, c, now, w.End()); r.Why == atomizer.Interested {
				crowd = append(crowd, j)
			}
			continue
		}
		asked = append(asked, j)
	}
	if most := p.quoter.cfg.Audience; len(crowd) > most {
		key := func(j *index.Job) *policy.Candidate {
			own, _, _ := j.Use(now)
			return &policy.Candidate{
				Job: j.Name(), Priority: j.Spec().Priority, Submitted: j.Submitted(), Attained: own, Weight: 1, Laxity: est.Laxity(j, c, 0),
				Index: est.Index(j, c),
			}
		}
		slices.SortFunc(crowd, func(a, b *index.Job) int { return est.Policy().Compare(key(a), key(b)) })
		late := lateness.First(moment, crowd)
		if p.parts.Late.Credit() <= 0 {
			late = nil
		}
		if p.audience.byIndex {
			bound := func(j *index.Job) int64 {
				return p.audience.mostRate(est.Index(j, c), index.Precedence(index.MostPrecedence), purses.fullness(now, j))
			}
			slices.SortStableFunc(crowd, func(a, b *index.Job) int { return cmp.Compare(bound(b), bound(a)) })
			first, rest := crowd[:most:most], crowd[most:]
			for _, j := range rest {
				if j == late {
					first = append(first, j)
				} else {
					beyond = append(beyond, j)
				}
			}
			crowd = first
		} else {
			slices.SortStableFunc(crowd[most/2:], func(a, b *index.Job) int {
				return cmp.Or(cmp.Compare(b.Waited(now), a.Waited(now)), index.ByName(a, b))
			})
			if i := slices.Index(crowd, late); i >= most/2 {
				crowd = slices.Insert(slices.Delete(crowd, i, i+1), most/2, late)
			}
			crowd = crowd[:most]
		}
	}
	asked = append(asked, crowd...)
	slices.SortFunc(asked, index.ByName)
	return asked, beyond
}

// Displaces is Auction.Displaces.
func (p *Plain) Displaces(
	now quantity.Instant, j *index.Job, s *window.Slice, c *protocol.Claim, end quantity.Instant, piece *atomizer.Piece,
) *index.Job {
	o, w := agents.Offer{Slice: s, Full: true}, window.Of(0, c.End, end)
	mine := p.continuation(j, s, c, w, piece)
	asked, _ := p.invite(now, c.End, &o, w)
	for _, other := range asked {
		if p.outbids(now, other, j, &o, w, mine) {
			return other
		}
	}
	return nil
}
