package market

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Plainly has a floor do after every input what the definition says and nothing less: every slice and every job is looked at, and
// nothing is remembered of what was answered. It is the oracle of what looks only at changes, for tests of whoever embeds a
// floor; it costs too much for anything else.
func (f *Floor) Plainly() { f.plain = &plain{f: f, seen: map[uint64]uint64{}} }

type plain struct {
	f *Floor
	// seen is by window the generation of the floor in which all were asked (mechanism sja).
	seen map[uint64]uint64
}

// begun is how many slices had a window that had begun when they were last offered.
func (p *plain) begun() (n int) {
	for _, s := range p.f.slices {
		if s.stands {
			n++
		}
	}
	return n
}

// live are the jobs by name.
func (p *plain) live() []*Job { return slices.SortedFunc(slices.Values(p.f.jobs), byName) }

// sell is Floor.Sell.
func (p *plain) sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	f := p.f
	f.recall(now)
	f.wakeDecliners(now)
	for _, s := range f.slices {
		s.dirty = true
		f.announce(s, now)
		s.stands = s.standing(now)
	}
	offer := p.signal
	if f.cfg.Market != nil {
		offer = p.negotiate
	}
	wake := offer(now, waiting, out)
	f.stale.Clear()
	f.fresh.Clear()
	f.seen = f.generation
	return min(wake, f.recalls.Next(), f.resting.Next())
}

// signal offers every window to everybody (mechanism sja).
func (p *plain) signal(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	f, wake := p.f, quantity.Never
	f.unindexed = p.live() // whoever attends is asked by what it could use
	f.concludeSignals(now, out)
	f.beginCalls(now)
	for _, s := range p.order(waiting) {
		for i := range s.windows {
			w := &s.windows[i]
			switch {
			case w.start > now:
				wake = min(wake, w.start)
			case f.generation == 0 || w.offered && p.seen[w.id] == f.generation || w.round != 0 || w.sold(s):
			case !f.callFor(now, s, w, func(j *Job) bool { return j.generation > p.seen[w.id] }):
				p.ask(now, s, w, nil, out)
			}
		}
	}
	f.endCalls(now, out)
	return min(wake, f.nextClose())
}

// order is that of the slices: the fast ones first where nobody waits for them, else the small ones.
func (p *plain) order(waiting int) []*Slice {
	order := slices.Clone(p.f.slices)
	if waiting <= p.begun() {
		slices.SortStableFunc(order, func(a, b *Slice) int { return cmp.Compare(b.class.Speed, a.class.Speed) })
	}
	return order
}

// ask is Floor.ask.
func (p *plain) ask(now quantity.Instant, s *Slice, w *window, t *turn, out *protocol.Out) {
	f, full := p.f, !w.offered
	f.nextRound++
	var losers []*Job
	for _, j := range p.live() {
		if !full && t == nil && j.generation <= p.seen[w.id] || !full && t != nil {
			continue // it has counted this window
		}
		piece, refusal := f.Fit(j, s.class, now, w.end)
		switch why := j.Ineligible(now); {
		case j.Spec().External:
			if !j.Attended() {
				j.counts.add(Unattended, now)
			}
		case why != Eligible:
			j.counts.add(why, now)
		case j.Avoids(s):
			j.counts.add(TurnedDown, now)
		case refusal.Why != atomizer.Interested:
			j.counts.refusal(refusal, now)
		case !piece.Range.Empty():
			losers = append(losers, j)
		}
	}
	var best candidate
	var cut atomizer.Piece
	for {
		p.firstOf(now, s, w, full, t, nil, best.none())
		if best.job == nil || best.job.Spec().External {
			break
		}
		var refusal atomizer.Refusal
		if cut, refusal = f.carve(best.job, s, now, w.end); refusal.Why == atomizer.Interested {
			break
		}
		f.decline(now, best.job, refusal, "")
		losers = slices.DeleteFunc(losers, func(j *Job) bool { return j == best.job })
	}
	w.offered = true
	j := best.job
	late, cost := f.entitled(now, firstLate(now, p.able(now, s, w, !full && t == nil)), j, s.class, w)
	if late != nil {
		j = late
		cut, _ = f.Fit(j, s.class, now, w.end)
	}
	p.seen[w.id] = f.generation
	if j == nil {
		return
	}
	for _, loser := range losers {
		if loser != j {
			loser.counts.add(LostToPolicy, now)
		}
	}
	if j.Spec().External {
		f.askAgent(now, s, w, t, &best, out)
		return
	}
	end := now.Add(cut.Length)
	if cut.Length == time.Duration(math.MaxInt64) || j.Spec().Kind == job.Rigid && j.Spec().Walltime == 0 {
		end = quantity.Never
	}
	f.Spend(cost)
	f.accepts(j)
	f.sale.Ask(now, j, s, Piece{Piece: cut, Start: now, End: end, Speed: s.class.SpeedOf(j.Spec()), Window: w.id, Round: f.nextRound, Late: cost}, out)
	w.offered, w.won = false, true
	f.tellLosers(now, t, w, j, out)
}

// firstOf is Floor.firstOf.
func (p *plain) firstOf(now quantity.Instant, s *Slice, w *window, full bool, t *turn, but *Job, best *candidate) {
	f := p.f
	for _, j := range p.live() {
		if j == but || j.Spec().External || j.Ineligible(now) != Eligible || j.Avoids(s) || !full && t == nil && j.generation <= p.seen[w.id] {
			continue
		}
		if piece, refusal := f.Fit(j, s.class, now, w.end); refusal.Why == atomizer.Interested {
			if c := f.candidate(now, j, s.class, w.end, &piece); best.job == nil || f.cfg.Policy.Compare(&c, &best.Candidate) < 0 {
				*best = candidate{c, j}
			}
		}
	}
	f.considerSignals(now, s, w, t, but, best)
}

// displaces is Floor.Displaces.
func (p *plain) displaces(now quantity.Instant, j *Job, s *Slice, c *protocol.Claim, end quantity.Instant, piece *atomizer.Piece) *Job {
	f := p.f
	if f.cfg.Market != nil {
		return p.outbidder(now, j, s, c, end, piece)
	}
	mine := f.candidate(now, j, s.class, end, piece)
	var able []*Job
	for _, other := range p.live() {
		if _, refusal := f.Fit(other, s.class, max(c.End, now), end); !other.Spec().External && other.Ineligible(now) == Eligible && !other.Avoids(s) && refusal.Why == atomizer.Interested {
			able = append(able, other)
		}
	}
	if late, _ := f.entitled(now, firstLate(now, able), j, s.class, &window{start: c.End, end: end}); late != nil {
		return late
	}
	for _, other := range able {
		if other == j {
			continue
		}
		theirs, refusal := f.Fit(other, s.class, max(c.End, now), end)
		if refusal.Why != atomizer.Interested {
			continue
		}
		if rival := f.candidate(now, other, s.class, end, &theirs); f.cfg.Policy.Compare(&rival, &mine) < 0 {
			return other
		}
	}
	return nil
}

// able are the jobs with an atomizer that could have a window, those alone that changed since it was offered if it is said so.
func (p *plain) able(now quantity.Instant, s *Slice, w *window, changed bool) (able []*Job) {
	for _, j := range p.live() {
		if j.Spec().External || j.Ineligible(now) != Eligible || j.Avoids(s) || changed && j.generation <= p.seen[w.id] {
			continue
		}
		if _, refusal := p.f.Fit(j, s.class, now, w.end); refusal.Why == atomizer.Interested {
			able = append(able, j)
		}
	}
	return able
}

// firstLate is the first of some jobs that are late; nil if none is.
func firstLate(now quantity.Instant, list []*Job) (late *Job) {
	for _, j := range list {
		if j.isLate(now) && (late == nil || byTurn(j, late) < 0) {
			late = j
		}
	}
	return late
}

// elsewhere is Floor.Elsewhere. What stands idle is what the last sale left: a window that begins now is sold first.
func (p *plain) elsewhere(now quantity.Instant, waiting int, j *Job, c *protocol.Claim) bool {
	if waiting > p.begun() {
		return false
	}
	for _, s := range p.f.slices {
		for i := range s.windows {
			if s.stands && p.f.sooner(now, j, c, s, &s.windows[i]) {
				return true
			}
		}
	}
	return false
}

// negotiate is a round of the market as the definition says: every window is looked at and every job asked, nothing is
// remembered of what it answered, and every window is cleared by itself anew and held against all plans there could be.
// Verifying, scoring and telling are the floor's own: they look at one variant.
func (p *plain) negotiate(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	f := p.f
	f.open.Clear()
	for _, s := range f.slices {
		if s.stands = s.standing(now); s.stands {
			f.open.Put(s.at)
		}
	}
	uncontended := f.Uncontended(waiting)
	for {
		i := slices.IndexFunc(f.rounds, func(r *round) bool { return r.waiting == 0 || r.closes <= now })
		if i < 0 {
			break
		}
		r := f.rounds[i]
		f.rounds = slices.Delete(f.rounds, i, i+1)
		p.conclude(now, r, uncontended, out)
	}
	offers, wake := p.offers(now, waiting)
	offers = f.repack(now, offers, out)
	f.unindexed = p.live() // whoever attends is asked by what it could use
	f.fresh.Clear()
	for _, j := range p.live() {
		if j.generation > f.seen {
			f.fresh.Add(&j.fresh, j)
		}
	}
	if asked := f.callees(now, offers); len(asked) > 0 {
		offers = f.announceTo(now, offers, asked, out)
	}
	p.clear(now, offers, nil, uncontended, out)
	for _, r := range f.rounds {
		wake = min(wake, r.closes)
	}
	for _, s := range f.slices {
		for i := range s.windows {
			if w := &s.windows[i]; w.start > now {
				wake = min(wake, w.start)
			} else if w.planned > now {
				wake = min(wake, w.planned)
			}
		}
	}
	return wake
}

// offers are the windows to be offered: to everybody, or to those who changed.
func (p *plain) offers(now quantity.Instant, waiting int) (offers []offer, again quantity.Instant) {
	f, again := p.f, quantity.Never
	news := slices.ContainsFunc(p.live(), func(s *Job) bool { return s.generation > f.seen }) || f.generation != f.seen
	for _, s := range p.order(waiting) {
		if s.dirty {
			continue
		}
		for i := range s.windows {
			w := &s.windows[i]
			full := !w.offered || w.planned != 0 && w.planned <= now
			if w.start > now || w.round != 0 || !full && !news || f.generation == 0 {
				continue
			}
			if full && !s.another(now, f.cfg.Market.Rounds) {
				again = now.Add(tick)
				break
			}
			offers = append(offers, offer{s, w.id, full})
		}
	}
	return offers, again
}

func (p *plain) conclude(now quantity.Instant, r *round, uncontended bool, out *protocol.Out) {
	f, late := p.f, r.generation != p.f.generation
	var windows []uint64
	for i := range r.offers {
		windows = append(windows, r.offers[i].window)
		if w := r.offers[i].find(); w != nil {
			w.round = 0
		}
	}
	for i := range r.asked {
		c := &r.asked[i]
		if !c.answered {
			c.job.agent.missed++
		}
		c.variants = slices.Clone(c.variants)
		slices.SortFunc(c.variants, func(a, b protocol.Variant) int {
			return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.ID, b.ID))
		})
		for k := range c.variants {
			if !slices.Contains(windows, c.variants[k].Window) {
				f.deny(c, &c.variants[k], "no such window is in this round")
			}
		}
	}
	p.clear(now, r.offers, r, uncontended, out)
	for i := range r.offers {
		if w := r.offers[i].find(); w != nil && late {
			w.offered = false
		}
	}
	for i := range r.asked {
		c := &r.asked[i]
		if c.won {
			c.job.agent.unsuccessful = 0
		} else {
			f.callAgain(now, c.job)
		}
		if len(c.notices) > 0 {
			slices.SortStableFunc(c.notices, func(a, b protocol.Notice) int { return cmp.Compare(a.Variant, b.Variant) })
			f.tell(c, protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: r.id, Notices: c.notices}}, out)
		}
	}
}

func (p *plain) clear(now quantity.Instant, offers []offer, r *round, uncontended bool, out *protocol.Out) {
	f := p.f
	node := func(o offer) job.NodeID { return o.slice.Node() }
	if f.cfg.Market.Joint {
		slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(node(a), node(b)) })
	}
	for len(offers) > 0 {
		n := 1
		for f.cfg.Market.Joint && n < len(offers) && node(offers[n]) == node(offers[0]) {
			n++
		}
		p.clearTogether(now, offers[:n], r, uncontended, out)
		offers = offers[n:]
	}
}

func (p *plain) clearTogether(now quantity.Instant, offers []offer, r *round, uncontended bool, out *protocol.Out) {
	f := p.f
	if r == nil {
		f.nextRound++
	}
	f.bids = nil
	for i := range offers {
		if w := offers[i].find(); w != nil {
			p.gather(now, int32(i), &offers[i], w, r, uncontended)
		} else {
			f.gone(&offers[i], r)
		}
	}
	slices.SortFunc(f.bids, func(a, b bid) int {
		return cmp.Or(cmp.Compare(a.offer, b.offer), byName(a.job, b.job), cmp.Compare(a.ID, b.ID))
	})
	f.clearer = clearing.Clearer{}
	f.scale(now, f.bids)
	f.pickWinners(now, offers)
	p.judge(now, len(offers))
	id := f.nextRound
	if r != nil {
		id = r.id
	}
	for i := range offers {
		if w := offers[i].find(); w != nil {
			f.settle(now, &offers[i], w, int32(i), id, out)
		}
	}
}

// judge holds what won against all plans there could be, where these are not too many: it is the best, or the best with the
// heaviest bid that begins now, where otherwise nothing would be sold now.
func (p *plain) judge(now quantity.Instant, offers int) {
	f := p.f
	if offers != 1 || f.cfg.Market.Exclusive || len(f.bids) > 12 {
		return // what Exclusive and Joint find has bounds, which are held in package clearing
	}
	bids := f.tables[0]
	won, value, soonest, heaviest := 0, int64(0), 0, int64(0)
	for i := range f.bids {
		t := &f.bids[i]
		if t.Start <= f.horizonOf(now) && t.weight > heaviest {
			soonest, heaviest = 1<<i, t.weight
		}
		if t.won {
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
	if slices.ContainsFunc(f.bids, func(t bid) bool { return t.free }) {
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
	invariant.Check(value == best || won&soonest != 0 && value == kept, "the winners are worth %d, the best plan %d, with what begins now %d: %+v", value, best, kept, bids)
}

func (p *plain) gather(now quantity.Instant, at int32, o *offer, w *window, r *round, uncontended bool) {
	f := p.f
	from := len(f.bids)
	asked, beyond := p.invite(now, now, o, w)
	for _, j := range asked {
		f.propose(now, at, j, o, w, uncontended)
	}
	best := func() (best int64) {
		for i := from; i < len(f.bids); i++ {
			t := &f.bids[i]
			best = max(best, scaled(t.rate, f.fullness(now, t.job)))
		}
		return best
	}
	for _, j := range beyond {
		if f.mostRate(f.index(j, o.slice.class), precedence(j.Spec().Priority), f.fullness(now, j)) > best() {
			f.propose(now, at, j, o, w, uncontended)
		}
	}
	if r == nil {
		return
	}
	for i := range r.asked {
		c := &r.asked[i]
		from, variants := len(f.bids), c.of(o.window)
		waits := ""
		if len(variants) > 0 {
			if waits = f.meanwhile(now, c.job); waits == "" && c.job.Avoids(o.slice) {
				waits = c.job.Sentence(TurnedDown)
			}
		}
		for k := range variants {
			v := &variants[k]
			if k >= f.cfg.Market.Variants {
				f.deny(c, v, "more variants for one window than the call allows")
			} else if waits != "" {
				f.deny(c, v, waits)
			} else if why := f.enter(now, at, c.job, o, w, v, c, from, uncontended); why != "" {
				f.deny(c, v, why)
			}
		}
	}
}
