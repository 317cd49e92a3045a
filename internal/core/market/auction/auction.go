package auction

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/variant"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/status"
)

// Parts are the parts of the market that the mechanism uses.
type Parts struct {
	MinWindow time.Duration
	Board     *window.Board
	Index     *index.Index
	Est       *index.Estimator
	Relay     *agents.Relay
	Late      *lateness.Allowance
	Seller    award.Seller
	Stats     *status.Negotiation
}

// Auction sells windows to those whose bids are worth most. Invariant: between two passes every window that has begun was cleared with the
// bids of everybody who is in its audience, and since then of every job that changed, unless it is in a round that waits for agents.
type Auction struct {
	parts    Parts
	quoter   quoter
	audience audience
	plan     plan
	settler  settler
	sieve    sieve
	skips    skips
	// rounds counts them.
	rounds uint64
	// offers is room for a pass.
	offers []agents.Offer
}

// New is a mechanism that has sold nothing.
func New(cfg Config, p Parts) *Auction {
	x := &Auction{parts: p}
	a := appraiser{cfg: &cfg, est: p.Est, minWindow: p.MinWindow}
	x.quoter = quoter{appraiser: a, purses: purses{seller: p.Seller, free: cfg.Payment == Free}, board: p.Board,
		accounts: map[string]*account{}}
	x.audience = audience{appraiser: a, purses: &x.quoter.purses, index: p.Index, late: p.Late, byIndex: cfg.ByIndex(p.Est)}
	x.plan = plan{cfg: &cfg, est: p.Est, late: p.Late, purses: &x.quoter.purses, stats: p.Stats}
	x.settler = settler{
		cfg: &cfg, board: p.Board, index: p.Index, late: p.Late, seller: p.Seller, stats: p.Stats, plan: &x.plan, sieve: &x.sieve,
	}
	x.skips.index = p.Index
	p.Index.Keep(x)
	return x
}

// Forget says that a job may answer otherwise now.
func (x *Auction) Forget(j *index.Job) { x.quoter.book.forget(j) }

// Retire has nothing to forget of a job that is over.
func (x *Auction) Retire(*index.Job) {}

// Remove has nothing to forget of a slice that is there no more: bids are for windows.
func (x *Auction) Remove(*window.Slice) {}

// Declining is nothing: a job that bids declines no window (interest).
func (x *Auction) Declining(*index.Job) (refusal atomizer.Refusal, text string) { return refusal, "" }

// Missed is none: what a job bid for and lost is among its losses.
func (x *Auction) Missed(quantity.Instant, *index.Job) (at *window.Slice, latest status.Given) {
	return nil, latest
}

// Sell is one pass: it announces the windows in turn, clears the rounds that nobody outside has to be waited for, and those that are
// complete or over, and asks nodes for what is won (award.Seller). Waiting is how many jobs run nowhere. It returns when to look again.
func (x *Auction) Sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	x.parts.Index.Refresh(now)
	x.parts.Board.Advertise(now)
	news := x.parts.Index.News()
	if news {
		x.parts.Board.AllInTurn()
	}
	uncontended := waiting <= x.parts.Board.Open()
	for r := x.parts.Relay.Over(now); r != nil; r = x.parts.Relay.Over(now) {
		x.conclude(now, r, uncontended, out)
	}
	offers, wake := x.inTurn(now, uncontended, news, x.offers[:0])
	offers = x.withdraw(now, offers, out)
	if asked := x.parts.Relay.Callees(now, x.callable(offers), offers); len(asked) > 0 {
		x.rounds++
		offers = x.parts.Relay.Announce(now, x.parts.Relay.NewRound(now, x.rounds, x.quoter.cfg.Variants, quantity.Never), offers, asked,
			out)
	}
	x.clearOffers(now, offers, nil, uncontended, out)
	clear(offers)
	x.offers = offers[:0]
	return min(wake, x.parts.Relay.Next(), x.parts.Board.Wake())
}

// callable are the jobs whose agents may be called for some offers: all, or those that changed.
func (x *Auction) callable(offers []agents.Offer) []*index.Job {
	if slices.ContainsFunc(offers, func(o agents.Offer) bool { return o.Full }) {
		return x.parts.Index.Unindexed()
	}
	return x.parts.Index.Fresh()
}

// inTurn lists the windows that have begun and are to be offered: where there are as many as jobs to fill them those of fast
// slices first, otherwise those of small ones. Those of slices that have had their rounds in this instant wait for the next
// one, which is returned.
func (x *Auction) inTurn(now quantity.Instant, uncontended, news bool, offers []agents.Offer) (_ []agents.Offer, again quantity.Instant) {
	const anySpeed = -1
	again = quantity.Never
	add := func(speed int64) {
		for i := x.parts.Board.InTurn(0); i >= 0; i = x.parts.Board.InTurn(i + 1) {
			s := x.parts.Board.Slices()[i]
			if speed != anySpeed && s.Class().Speed != speed {
				continue
			}
			x.parts.Board.Done(s)
			if s.Dirty() {
				continue // a round that has just closed sold some of it: what is left is offered in the next step
			}
			for k := range s.Windows() {
				w := &s.Windows()[k]
				if w.Start() > now || w.Round() != 0 || !w.Due(now) && !news || x.parts.Index.Generation() == 0 {
					continue
				}
				if w.Due(now) && !s.Another(now, x.quoter.cfg.Rounds) {
					again = now.Add(variant.Tick)
					x.parts.Board.Invalidate(s)
					break
				}
				offers = append(offers, agents.Offer{Slice: s, ID: w.ID(), Full: w.Due(now)})
			}
		}
	}
	if uncontended {
		for _, speed := range x.parts.Board.Speeds() {
			add(speed)
		}
	}
	add(anySpeed)
	return offers, again
}

// withdraw takes back what was sold ahead on slices where a subjob has ended before its time, so that the window that opened
// and what was sold behind it are cleared as one; beyond the freeze, and never what has begun: the node gives up a lease only
// if it has not. Windows whose slice is about to grow are not cleared before that. It returns the others.
func (x *Auction) withdraw(now quantity.Instant, offers []agents.Offer, out *protocol.Out) []agents.Offer {
	cfg := x.quoter.cfg
	if cfg.Repack != Withdraw {
		return offers
	}
	return slices.DeleteFunc(offers, func(o agents.Offer) bool {
		if !o.Full || !o.Slice.TakeEarly() {
			return false
		}
		n := x.parts.Seller.Withdraw(now, now.Add(cfg.Freeze), o.Slice, out)
		x.parts.Stats.Withdrawn += int64(n)
		return n > 0
	})
}

// conclude clears a round that has waited for agents and tells each what became of its variants.
func (x *Auction) conclude(now quantity.Instant, r *agents.Round, uncontended bool, out *protocol.Out) {
	late := r.Generation() != x.parts.Index.Generation()
	for i := range r.Offers() {
		if w := r.Offers()[i].Find(); w != nil {
			w.Await(0)
		}
	}
	x.parts.Relay.TakeIn(now, r)
	x.clearOffers(now, r.Offers(), r, uncontended, out)
	for i := range r.Offers() {
		o := &r.Offers()[i]
		if w := o.Find(); w != nil && late { // what is left is for those too that came while it was open
			w.Reopen()
			x.parts.Board.PutInTurn(o.Slice)
		}
	}
	x.parts.Relay.Conclude(now, r, out)
}

// clearOffers clears offers, one after another or those of a node together, and asks nodes for what is won.
func (x *Auction) clearOffers(now quantity.Instant, offers []agents.Offer, r *agents.Round, uncontended bool, out *protocol.Out) {
	joint, classes := x.quoter.cfg.Joint, len(x.parts.Board.Classes())
	if joint {
		slices.SortStableFunc(offers, func(a, b agents.Offer) int { return cmp.Compare(a.Slice.Node(), b.Slice.Node()) })
	}
	x.parts.Index.Refresh(now)
	x.skips.reset(classes)
	for len(offers) > 0 {
		n := 1
		if o := &offers[0]; r == nil && !joint && !o.Full && x.skips.add(now, o.Slice.Class(), o.Find()) {
			x.rounds++
			x.parts.Stats.Rounds++
			offers = offers[1:]
			continue
		}
		for joint && n < len(offers) && offers[n].Slice.Node() == offers[0].Slice.Node() {
			n++
		}
		x.skips.count(now)
		x.clearTogether(now, offers[:n], r, uncontended, out)
		x.parts.Index.Refresh(now)
		x.skips.reset(classes)
		offers = offers[n:]
	}
	x.skips.count(now)
}

// clearTogether collects the bids for some offers, picks the winners and settles.
func (x *Auction) clearTogether(now quantity.Instant, offers []agents.Offer, r *agents.Round, uncontended bool, out *protocol.Out) {
	if r == nil {
		x.rounds++
	}
	x.parts.Index.Refresh(now)
	x.quoter.begin()
	x.plan.bids, x.sieve.heard = x.plan.bids[:0], x.sieve.heard[:0]
	for i := range offers {
		o := &offers[i]
		if w := o.Find(); w != nil {
			x.gather(now, int32(i), o, w)
			x.enterAnswers(now, int32(i), o, w, r, uncontended)
		} else if r != nil {
			x.parts.Relay.Gone(o, r)
		}
	}
	x.plan.bids = x.sieve.sift(now, &x.quoter, offers, uncontended, x.plan.bids)
	x.pickAndSettle(now, offers, r, out)
	x.quoter.end()
	clear(x.sieve.heard)
}

// pickAndSettle picks the winners among the bids for some offers and asks nodes for their places. Nothing is durable yet: the seller claims
// once a node has granted.
func (x *Auction) pickAndSettle(now quantity.Instant, offers []agents.Offer, r *agents.Round, out *protocol.Out) {
	x.plan.sort()
	x.plan.pick(now, offers)
	id := x.rounds
	if r != nil {
		id = r.ID()
	}
	for i := range offers {
		if w := offers[i].Find(); w != nil {
			x.settler.settle(now, &offers[i], w, int32(i), id, out)
		}
	}
}

// gather collects the quotes of built-in kinds for one window.
func (x *Auction) gather(now quantity.Instant, at int32, o *agents.Offer, w *window.Window) {
	from, best := len(x.sieve.heard), int64(0)
	for _, j := range x.audience.invite(now, now, o, w) {
		x.hear(now, at, j, o, w)
	}
	if !o.Full || !x.audience.byIndex || len(x.audience.heads) == 0 {
		return
	}
	for i := from; i < len(x.sieve.heard) && best < x.audience.heads[0].bound; i++ {
		best = max(best, x.quoter.rateOf(now, x.sieve.heard[i].quote, o))
	}
	x.audience.beyond(now, o, w, best, func(j *index.Job) (best int64) {
		if q := x.hear(now, at, j, o, w); len(q.terms) > 0 {
			best = x.quoter.rateOf(now, q, o)
		}
		return best
	})
}

// hear has a job of a built-in kind quote for a window.
func (x *Auction) hear(now quantity.Instant, at int32, j *index.Job, o *agents.Offer, w *window.Window) *quote {
	q := x.quoter.quote(now, j, o, w)
	x.parts.Stats.Variants += q.variants
	x.parts.Stats.Denied += q.denied
	if q.denied > 0 {
		j.Counts().Several(explain.Denied, q.denied, now)
	}
	if q.refusal.Why != atomizer.Interested && !j.Entry().Indexed() {
		j.Counts().Refuse(q.refusal, now)
	}
	if len(q.terms) > 0 {
		x.quoter.read(now, q)
		x.sieve.heard = append(x.sieve.heard, heard{quote: q, offer: at})
	}
	return q
}

// enterAnswers turns agents' answers for one window into bids.
func (x *Auction) enterAnswers(now quantity.Instant, at int32, o *agents.Offer, w *window.Window, r *agents.Round, uncontended bool) {
	if r == nil {
		return
	}
	for i := range r.Asked() {
		c := &r.Asked()[i]
		from, j := len(x.plan.bids), c.Job()
		variants := c.Of(o.ID)
		if len(variants) == 0 {
			continue
		}
		waits := agents.Meanwhile(now, j)
		if waits == "" && j.Avoids(o.Slice) {
			waits = j.Sentence(explain.TurnedDown)
		}
		for k := range variants {
			v := &variants[k]
			switch {
			case k >= x.quoter.cfg.Variants:
				x.parts.Relay.Deny(c, v, "more variants for one window than the call allows")
				continue
			case waits != "":
				x.parts.Relay.Deny(c, v, waits)
				continue
			}
			if why := x.enter(now, at, j, o, w, v, c, from, uncontended); why != "" {
				x.parts.Relay.Deny(c, v, why)
				j.Counts().Add(explain.Denied, now)
			}
		}
		for i := range x.plan.bids[from:] {
			t := &x.plan.bids[from+i]
			t.weight = scaled(t.weight, x.quoter.purses.fullness(now, j))
		}
	}
}

// enter verifies a variant, whoever it is from, and appraises it; from is where those of the same job begin. It returns why the variant is
// denied, empty if it is a bid now.
func (x *Auction) enter(
	now quantity.Instant, at int32, j *index.Job, o *agents.Offer, w *window.Window, v *protocol.Variant, c *agents.Callee, from int,
	uncontended bool,
) string {
	x.parts.Stats.Variants++
	t := bid{callee: c, offer: at}
	t.Variant, t.Job = *v, j
	if t.Start < now && c != nil && t.Start >= c.At() {
		t.Start = now // its round took as long
	}
	view := j.View()
	why := x.quoter.denial(now, &t, &view, o, w, x.plan.bids[from:])
	if why == "" {
		x.quoter.appraise(now, &t, o.Slice, w, uncontended)
		x.plan.bids = append(x.plan.bids, t)
	}
	return why
}

// enterRival enters what a job's atomizer answers for the window behind another's running subjob as bids: only for Displaces. Rounds use
// gather, whose quotes have the same variants.
func (x *Auction) enterRival(now quantity.Instant, at int32, j *index.Job, o *agents.Offer, w *window.Window, uncontended bool) {
	if refusal := x.quoter.propose(now, j, o, w); refusal.Why != atomizer.Interested && !j.Entry().Indexed() {
		j.Counts().Refuse(refusal, now)
	}
	from := len(x.plan.bids)
	for i := range x.quoter.variants {
		v := &x.quoter.variants[i]
		v.Window = w.ID()
		if why := x.enter(now, at, j, o, w, v, nil, from, uncontended); why != "" {
			x.parts.Stats.Denied++
			j.Counts().Add(explain.Denied, now)
		}
	}
}

// Displaces is a job whose variant for the window behind a running subjob is worth more than that the subjob goes on, or that
// is late; nil if there is none. Who rests now is in no ranking, and not looked at. Agents are not asked: what
// their jobs may be worth is seen in the round of a window that is there.
func (x *Auction) Displaces(
	now quantity.Instant, j *index.Job, s *window.Slice, c *protocol.Claim, end quantity.Instant, p *atomizer.Piece,
) *index.Job {
	o, w := agents.Offer{Slice: s, Full: true}, window.Of(0, c.End, end)
	mine := x.continuation(j, s, c, w, p)
	x.parts.Index.Refresh(now)
	for _, other := range x.audience.invite(now, c.End, &o, w) {
		if x.outbids(now, other, j, &o, w, mine) {
			return other
		}
	}
	return nil
}

// outbids reports whether a variant of a job for the window behind another's running subjob is worth more than letting that one go on.
func (x *Auction) outbids(now quantity.Instant, other, j *index.Job, o *agents.Offer, w *window.Window, mine int64) bool {
	if other == j || other.RestsUntil() > now {
		return false
	}
	x.plan.bids = x.plan.bids[:0]
	x.enterRival(w.Start(), 0, other, o, w, false)
	return slices.ContainsFunc(x.plan.bids, func(t bid) bool {
		return t.weight > mine || x.parts.Late.Precedes(now, t.Job, t.cost(o.Slice.Class()))
	})
}

// continuation is the weight of letting a running subjob go on behind its claim.
func (x *Auction) continuation(j *index.Job, s *window.Slice, c *protocol.Claim, w *window.Window, p *atomizer.Piece) int64 {
	at, v := c.End, j.View()
	more := job.Range{From: c.Range.To, To: p.Range.To}
	mine := bid{ahead: v.RunTime(c.Range.Len(), s.Class().SpeedOf(j.Spec()))}
	mine.Job, mine.End, mine.Speed = j, at.Add(p.Wall), c.Speed
	mine.Variant = protocol.Variant{
		Range: more, Start: at, Run: p.Run, Wall: p.Wall, Demand: p.Demand,
		Score: score.Job{
			Progress: score.Progress(more.Len(), max(1, v.Left())), Laxity: score.Laxity(x.parts.Est.Finish(j, s.Class(), at),
				j.Deadline()), Overhead: score.One,
		}.Of(j.Spec().Worth),
	}
	x.quoter.appraise(at, &mine, s, w, false)
	return mine.weight
}
