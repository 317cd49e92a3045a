package zone

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/market/score"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// negotiate is a round of the market as the definition says: every window is looked at and every job asked, nothing is
// remembered of what it answered, every window is cleared by itself anew and held against all plans there could be, and what
// a queue has pledged is added up from its asks. Verifying, scoring and telling are the zone's own: they look at one variant.
func (p *plain) negotiate(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z := p.z
	clear(z.open)
	for _, s := range z.slices {
		if s.stands = s.standing(now); s.stands {
			z.open.Put(s.at)
		}
	}
	z.relaxed = z.uncontended()
	for {
		i := slices.IndexFunc(z.rounds, func(r *round) bool { return r.waiting == 0 || r.closes <= now })
		if i < 0 {
			break
		}
		r := z.rounds[i]
		z.rounds = slices.Delete(z.rounds, i, i+1)
		p.conclude(now, r, out)
	}
	lots, wake := p.lots(now)
	if n := len(lots); n > 0 {
		if lots = z.repack(now, lots, out); len(lots) < n {
			for _, s := range z.busy {
				z.stir(s)
			}
			z.rearm()
			wake = min(wake, z.leases.Next())
		}
	}
	z.loud = p.live() // whoever attends is asked by what it could use
	z.fresh = slices.DeleteFunc(p.live(), func(s *state) bool { return s.generation <= z.seen })
	if asked := z.callees(now, lots); len(asked) > 0 {
		lots = z.announceTo(now, lots, asked, out)
	}
	p.clear(now, lots, nil, out)
	for _, r := range z.rounds {
		wake = min(wake, r.closes)
	}
	for _, s := range z.slices {
		for i := range s.windows {
			if w := &s.windows[i]; w.start > now {
				wake = min(wake, w.start)
			} else if w.planned > now {
				wake = min(wake, w.planned)
			}
		}
	}
	z.seen = z.generation
	return min(wake, z.resting.Next())
}

// lots are the windows to be offered: to everybody, or to those who changed.
func (p *plain) lots(now quantity.Instant) (lots []lot, again quantity.Instant) {
	z, again := p.z, quantity.Never
	news := slices.ContainsFunc(p.live(), func(s *state) bool { return s.generation > z.seen }) || z.generation != z.seen
	order := slices.Clone(z.slices)
	if z.uncontended() {
		slices.SortStableFunc(order, func(a, b *slice) int { return cmp.Compare(b.class.pace, a.class.pace) })
	}
	for _, s := range order {
		if s.moved {
			continue
		}
		for i := range s.windows {
			w := &s.windows[i]
			full := !w.offered || w.planned != 0 && w.planned <= now
			if w.start > now || w.round != 0 || !full && !news || z.generation == 0 {
				continue
			}
			if full && !s.another(now, z.cfg.Market.Rounds) {
				again = now.Add(tick)
				break
			}
			lots = append(lots, lot{s, w.id, full})
		}
	}
	return lots, again
}

func (p *plain) conclude(now quantity.Instant, r *round, out *protocol.Out) {
	z, late := p.z, r.generation != p.z.generation
	var windows []uint64
	for i := range r.lots {
		windows = append(windows, r.lots[i].window)
		if w := r.lots[i].find(); w != nil {
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
		for j := range c.variants {
			if !slices.Contains(windows, c.variants[j].Window) {
				z.deny(c, &c.variants[j], "no such window is in this round")
			}
		}
	}
	p.clear(now, r.lots, r, out)
	for i := range r.lots {
		if w := r.lots[i].find(); w != nil && late {
			w.offered = false
		}
	}
	for i := range r.asked {
		c := &r.asked[i]
		if c.won {
			c.job.agent.vain = 0
		} else {
			z.callAgain(now, c.job)
		}
		if len(c.notices) > 0 {
			slices.SortStableFunc(c.notices, func(a, b protocol.Notice) int { return cmp.Compare(a.Variant, b.Variant) })
			z.tell(c, protocol.Message{Kind: protocol.Told, Round: r.id, Notices: c.notices}, out)
		}
	}
}

func (p *plain) clear(now quantity.Instant, lots []lot, r *round, out *protocol.Out) {
	z := p.z
	node := func(l lot) job.NodeID { return l.slice.view.Node }
	if z.cfg.Market.Joint {
		slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(node(a), node(b)) })
	}
	for len(lots) > 0 {
		n := 1
		for z.cfg.Market.Joint && n < len(lots) && node(lots[n]) == node(lots[0]) {
			n++
		}
		p.clearTogether(now, lots[:n], r, out)
		lots = lots[n:]
	}
}

func (p *plain) clearTogether(now quantity.Instant, lots []lot, r *round, out *protocol.Out) {
	z := p.z
	if r == nil {
		z.nextRnd++
	}
	z.tenders = nil
	for i := range lots {
		z.lotAt = int32(i)
		if w := lots[i].find(); w != nil {
			p.gather(now, &lots[i], w, r)
		} else {
			z.gone(&lots[i], r)
		}
	}
	slices.SortFunc(z.tenders, func(a, b tender) int {
		return cmp.Or(cmp.Compare(a.lot, b.lot), cmp.Compare(a.job.Job, b.job.Job), cmp.Compare(a.ID, b.ID))
	})
	p.pledge()
	for i := range z.tenders {
		p.weigh(&z.tenders[i], lots)
	}
	z.clearer = clearing.Clearer{}
	z.pickWinners(now, len(lots))
	p.judge(now, len(lots))
	id := z.nextRnd
	if r != nil {
		id = r.id
	}
	for i := range lots {
		if w := lots[i].find(); w != nil {
			p.pledge()
			z.settleLot(now, &lots[i], w, int32(i), id, out)
		}
	}
}

// pledge adds up what every queue's asks will take.
func (p *plain) pledge() {
	for _, q := range p.z.queues { //sluice:sorted each queue by itself
		q.pledged = 0
	}
	for _, a := range p.z.asks {
		if a.piece.bid != nil {
			a.job.q.pledged += a.piece.bid.Price
		}
	}
}

// weigh holds the weight of a bid against its score, its time and its job's priority: a hundred points double it, and between
// the hundreds it grows evenly.
func (p *plain) weigh(t *tender, lots []lot) {
	z := p.z
	end := z.window(t.job, lots[t.lot].slice.class, t.Start, lots[t.lot].find().end).End
	points := max(-mostPrecedence, min(mostPrecedence, float64(t.job.Spec.Priority)))
	hundreds := math.Floor(points / 100)
	want := math.Exp2(hundreds) * (1 + points/100 - hundreds) * float64(score.Weight(t.total, t.length(end), z.cfg.Market.PerTime))
	if got := float64(t.weight); end != quantity.Never && math.Abs(got-want) > want/50+2 {
		panic(fmt.Sprintf("job %s of priority %d bids %v, want %v", t.job.Job, t.job.Spec.Priority, got, want))
	}
}

// judge holds what won against all plans there could be, where these are not too many: it is the best, or the best with the
// heaviest bid that begins now, where otherwise nothing would be sold now.
func (p *plain) judge(now quantity.Instant, lots int) {
	z := p.z
	if lots != 1 || z.cfg.Market.Exclusive || len(z.tenders) > 12 {
		return // what Exclusive and Joint find has bounds, which are held in package clearing
	}
	bids := z.tables[0]
	won, value, soonest, heaviest := 0, int64(0), 0, int64(0)
	for i := range z.tenders {
		t := &z.tenders[i]
		if t.Start <= z.horizonOf(now) && t.weight > heaviest {
			soonest, heaviest = 1<<i, t.weight
		}
		if t.won {
			won |= 1 << i
			value += t.weight
		}
	}
	apart := func(plan int) bool {
		for i := range bids {
			for j := range i {
				if plan>>i&1 == 1 && plan>>j&1 == 1 && bids[i].Start < bids[j].End && bids[j].Start < bids[i].End {
					return false
				}
			}
		}
		return true
	}
	if !apart(won) {
		panic(fmt.Sprintf("winners overlap: %b of %+v", won, bids))
	}
	if slices.ContainsFunc(z.tenders, func(t tender) bool { return t.free }) {
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
	if value != best && (won&soonest == 0 || value != kept) {
		panic(fmt.Sprintf("the winners are worth %d, the best plan %d, with what begins now %d: %+v", value, best, kept, bids))
	}
}

func (p *plain) gather(now quantity.Instant, l *lot, w *window, r *round) {
	z := p.z
	for _, st := range p.hearers(now, l, w) {
		z.propose(now, st, l, w)
	}
	if r == nil {
		return
	}
	for i := range r.asked {
		c := &r.asked[i]
		from, variants := len(z.tenders), c.of(l.window)
		waits := ""
		if len(variants) > 0 {
			if waits = z.meanwhile(now, c.job); waits == "" && c.job.avoids(l.slice) {
				waits = z.sentence(c.job, cause{reason: turnedDown})
			}
		}
		for j := range variants {
			v := &variants[j]
			if j >= z.cfg.Market.Variants {
				z.deny(c, v, "more variants for one window than the call allows")
			} else if waits != "" {
				z.deny(c, v, waits)
			} else if why := z.enter(now, c.job, l, w, v, c, from); why != "" {
				z.deny(c, v, why)
			}
		}
	}
}

// hearers are, by id, the jobs with an atomizer that answer for a window: of those that run nowhere and whose answers do not
// move by themselves no more than the audience holds, the first of the policy and those that have waited longest.
func (p *plain) hearers(now quantity.Instant, l *lot, w *window) (asked []*state) {
	z, c := p.z, l.slice.class
	var crowd []*state
	for _, st := range p.live() {
		if st.Spec.External || z.deafness(now, st) != interested || st.avoids(l.slice) || !l.full && st.generation <= z.seen {
			continue
		}
		if l.full && !p.loud(st) {
			if _, r := z.fit(st, c, now, w.end); r.Why == atomizer.Interested {
				crowd = append(crowd, st)
			}
			continue
		}
		asked = append(asked, st)
	}
	if most := z.cfg.Market.Audience; len(crowd) > most {
		slices.SortFunc(crowd, func(a, b *state) int {
			return policy.ByAge(
				&policy.Candidate{Job: a.Job, Priority: a.Spec.Priority, Submitted: a.Submitted},
				&policy.Candidate{Job: b.Job, Priority: b.Spec.Priority, Submitted: b.Submitted})
		})
		slices.SortStableFunc(crowd[most/2:], func(a, b *state) int {
			return cmp.Or(cmp.Compare(b.waited(now), a.waited(now)), cmp.Compare(a.Job, b.Job))
		})
		crowd = crowd[:most]
	}
	asked = append(asked, crowd...)
	slices.SortFunc(asked, func(a, b *state) int { return cmp.Compare(a.Job, b.Job) })
	return asked
}

// loud says whether a job is asked each time, whatever the audience holds: its answers are not simple, or it runs already.
func (p *plain) loud(s *state) bool {
	z := p.z
	if s.Spec.External || s.q.Cap > 0 || s.q.kept != nil || len(s.backoff.avoided) > 0 {
		return true
	}
	for _, c := range z.classes {
		if a, simple := z.answer(s, c); !simple || a.need != never && len(s.Claims)+s.asking > 0 {
			return true
		}
	}
	return false
}

// outbidder is a job that wants the time behind a running subjob more than that one does.
func (p *plain) outbidder(now quantity.Instant, st *state, s *slice, c *protocol.Claim, end quantity.Instant, piece *atomizer.Piece) *state {
	z, at := p.z, c.End
	v := st.view()
	more := job.Range{From: c.Range.To, To: piece.Range.To}
	mine := tender{job: st, end: at.Add(piece.Wall), speed: c.Speed, Variant: protocol.Variant{
		Range: more, Start: at, Run: piece.Run, Wall: piece.Wall, Demand: piece.Demand,
		Score: score.Job{
			Progress: score.Progress(more.Len(), max(1, v.Left())), Laxity: score.Laxity(st.finish(at, s.class), st.deadline()), Overhead: score.One,
		}.Of(st.Spec.Worth),
	}}
	l, w := lot{slice: s, full: true}, window{start: at, end: end}
	z.relaxed, z.lotAt = false, 0
	z.value(at, &mine, &l, &w)
	for _, other := range p.hearers(at, &l, &w) {
		if other == st || other.notBefore > now {
			continue
		}
		z.tenders = nil
		z.propose(at, other, &l, &w)
		starves := z.cfg.Market.Starve >= 0 && other.waited(at) > z.cfg.Market.Starve
		if slices.ContainsFunc(z.tenders, func(t tender) bool { return starves || t.weight > mine.weight }) {
			return other
		}
	}
	return nil
}
