package zone

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Plain makes a zone do after every input what the definition says and nothing less: every slice, every claim and every
// waiting job is looked at. It is the oracle of what looks only at changes.
func Plain(z *Zone) {
	p := &plain{z: z, windows: map[job.SliceID][]plainWindow{}, rested: map[*state]quantity.Instant{}}
	z.pass = p.pass
}

type plain struct {
	z       *Zone
	windows map[job.SliceID][]plainWindow
	// begun is how many slices have a window that has begun.
	begun  int
	rested map[*state]quantity.Instant
}

type plainWindow struct {
	window
	generation uint64
}

func (p *plain) live() []*state {
	return slices.SortedFunc(slices.Values(p.z.live), func(a, b *state) int { return cmp.Compare(a.Job, b.Job) })
}

func (p *plain) pass(now quantity.Instant, out *protocol.Out) {
	z := p.z
	wake := p.overdue(now, out)
	wake = min(wake, p.continuations(now, out))
	wake = min(wake, p.market(now, out), p.refusals(now))
	for _, s := range z.touched {
		s.touched = false
	}
	z.touched, z.fresh = z.touched[:0], z.fresh[:0]
	z.wakeAt(now, wake, out)
}

func (p *plain) overdue(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, s := range p.live() {
		if s.deadline() > now {
			wake = min(wake, s.deadline())
		} else if s.dropping.State == job.Waiting {
			z.end(now, s, job.Verdict{State: job.Expired, Reason: "its deadline passed before it finished"}, out)
		}
	}
	for _, s := range slices.Clone(z.busy) {
		z.repeat(now, s, out)
		for i := range s.leases {
			l := &s.leases[i]
			wake = min(wake, z.givenUp(&s.Claims[s.claim(l.token)]))
			if !l.settled(s) {
				wake = min(wake, l.sent.Add(z.cfg.Retry))
			}
		}
	}
	for _, s := range z.all() {
		if !s.Verdict.State.Final() || s.acked {
			continue
		}
		if s.closedAt.Add(z.cfg.Retry) <= now {
			s.closedAt = now
			z.send(out, protocol.Message{Kind: protocol.Closed, To: protocol.Address{Role: protocol.Gate}, Job: s.Job, Epoch: s.Epoch, Generation: s.Generation, Verdict: s.Verdict, At: s.Ended})
		}
		wake = min(wake, s.closedAt.Add(z.cfg.Retry))
	}
	for _, s := range z.all() {
		if len(s.Unpublished) == 0 {
			continue
		}
		if s.publishAsked.Add(z.cfg.Retry) <= now {
			z.askPublications(now, s, out)
		}
		wake = min(wake, s.publishAsked.Add(z.cfg.Retry))
	}
	if z.cfg.Market != nil { // an agent that won nothing is called again too
		for _, s := range z.due(&z.resting, now) {
			z.changed(s)
		}
		wake = min(wake, z.resting.Next())
	} else {
		wake = min(wake, p.rest(now))
	}
	for _, s := range z.all() {
		if slices.ContainsFunc(s.backoff.avoided, func(a avoided) bool { return a.until <= now }) {
			z.forgive(now, s)
		}
	}
	return wake
}

// rest has the jobs whose pause is over answer again, and returns when the next one's is.
func (p *plain) rest(now quantity.Instant) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, s := range z.all() {
		switch {
		case s.notBefore == p.rested[s]:
		case s.notBefore <= now:
			p.rested[s] = s.notBefore
			z.changed(s)
		default:
			wake = min(wake, s.notBefore)
		}
	}
	return wake
}

// refusals is when what the market's own step has noted of refusals is to be looked at.
func (p *plain) refusals(now quantity.Instant) quantity.Instant {
	wake := quantity.Never
	for _, s := range p.live() {
		if s.notBefore > now {
			wake = min(wake, s.notBefore)
		}
		for _, a := range s.backoff.avoided {
			wake = min(wake, a.until)
		}
	}
	return wake
}

func (p *plain) continuations(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, st := range z.busy {
		for i := range st.leases {
			l := &st.leases[i]
			c := &st.Claims[st.claim(l.token)]
			at := st.bidsAt(c, l)
			if at > now {
				wake = min(wake, at)
				continue
			}
			l.tried = c.End
			p.stirSlices()
			if s, g := z.following(now, c); s != nil && st.extends() {
				z.overrun(now, st, c, l, out)
			} else if s != nil {
				p.continueInto(now, st, c, l, s, g, out)
			}
			if l.ask != 0 {
				wake = min(wake, now.Add(z.cfg.Retry))
			}
		}
	}
	return wake
}

func (p *plain) continueInto(now quantity.Instant, st *state, c *protocol.Claim, l *lease, s *slice, g protocol.Gap, out *protocol.Out) {
	z, v := p.z, st.view()
	v.Continues, v.Running = c.Range, v.Running-1
	mine, r := atomizer.Fit(&v, z.window(st, s.class, c.End, g.End))
	if r.Why != atomizer.Interested {
		return
	}
	if len(z.live)-len(z.busy) <= p.begun {
		for _, s := range z.slices {
			for i := range p.windows[s.id] {
				if z.sooner(now, st, c, s, &p.windows[s.id][i].window) {
					return
				}
			}
		}
	}
	if z.cfg.Market != nil {
		if p.outbidder(now, st, s, c, g.End, &mine) == nil {
			z.extend(now, st, c, l, job.Range{From: c.Range.From, To: mine.Range.To}, c.End.Add(mine.Wall), out)
		}
		return
	}
	cand := z.candidate(now, st, s.class, g.End, &mine)
	for _, other := range p.live() {
		if other == st || z.deafness(now, other) != interested || other.avoids(s) {
			continue
		}
		theirs, refusal := z.fit(other, s.class, max(c.End, now), g.End)
		if refusal.Why != atomizer.Interested {
			continue
		}
		if rival := z.candidate(now, other, s.class, g.End, &theirs); z.cfg.Policy.Compare(&rival, &cand) < 0 {
			return
		}
	}
	z.extend(now, st, c, l, job.Range{From: c.Range.From, To: mine.Range.To}, c.End.Add(mine.Wall), out)
}

// stirSlices has every slice's free time computed anew, from all claims, asks and plans there are.
func (p *plain) stirSlices() {
	z := p.z
	for _, s := range z.slices {
		s.moved, s.sold, s.asks, s.plans = true, nil, nil, nil
		for _, st := range z.busy {
			for i := range st.Claims {
				if c := &st.Claims[i]; c.Slice == s.id || slices.Contains(c.Also, s.id) {
					s.sold = append(s.sold, sale{c.Token, st, c.Start, c.End})
				}
			}
		}
		for _, a := range z.asks {
			if a.slice == s || slices.Contains(a.also, s.id) {
				s.asks = append(s.asks, a)
			}
		}
		for _, q := range z.plans {
			if q.slice == s {
				s.plans = append(s.plans, q)
			}
		}
	}
}

func (p *plain) market(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z := p.z
	z.lapse(now)
	stale := false
	for _, s := range z.slices {
		stale = stale || s.stale > now
	}
	z.line, z.gangs = ranking.List[*state]{}, nil
	for _, s := range p.live() {
		s.lined = false
		if s.Spec.Kind == job.Rigid {
			z.queueUp(s)
		}
	}
	z.replan, z.strange = true, true
	z.keepCaps(now)
	p.stirSlices()
	wake := quantity.Never
	if !stale {
		wake = z.plan(now, out)
	}
	p.stirSlices()
	p.begun = 0
	for _, s := range z.slices {
		if z.cfg.Market == nil {
			p.announce(s, now)
		} else {
			z.announce(s, now)
			p.windows[s.id] = nil
			for _, w := range s.windows {
				p.windows[s.id] = append(p.windows[s.id], plainWindow{window: w})
			}
		}
		if slices.ContainsFunc(p.windows[s.id], func(w plainWindow) bool { return w.start <= now }) {
			p.begun++
		}
	}
	if z.cfg.Market != nil {
		wake = min(wake, p.negotiate(now, out))
		return min(wake, p.unanswered(now))
	}
	order := slices.Clone(z.slices)
	if len(z.live)-len(z.busy) <= p.begun {
		slices.SortStableFunc(order, func(a, b *slice) int { return cmp.Compare(b.class.pace, a.class.pace) })
	}
	for _, s := range order {
		ws := p.windows[s.id]
		for i := range ws {
			switch w := &ws[i]; {
			case w.start > now:
				wake = min(wake, w.start)
			case w.generation != z.generation:
				p.round(now, s, w, out)
			}
		}
	}
	return min(wake, p.unanswered(now))
}

// unanswered is when the first message that nobody has answered is to be looked at again.
func (p *plain) unanswered(now quantity.Instant) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, a := range z.asks {
		wake = min(wake, a.expires)
	}
	for _, q := range z.plans {
		wake = min(wake, q.expires)
	}
	for _, w := range z.withdrawals {
		wake = min(wake, w.again)
	}
	for _, s := range z.slices {
		if s.stale > now {
			wake = min(wake, s.stale)
		}
	}
	return wake
}

func (p *plain) announce(s *slice, now quantity.Instant) {
	z, old := p.z, p.windows[s.id]
	var next []plainWindow
	for _, g := range z.free(s, now, anyone, nil) {
		if g.End.Sub(g.Start) < z.cfg.MinWindow {
			continue
		}
		w := plainWindow{window: window{start: g.Start, end: g.End, until: g.Until}}
		i := slices.IndexFunc(old, func(o plainWindow) bool {
			return o.end == g.End && o.until == g.Until && (o.start == g.Start || o.start <= now && g.Start <= now)
		})
		if i >= 0 {
			w = old[i]
			w.start = g.Start
		} else {
			z.nextWindow++
			w.id = z.nextWindow
		}
		next = append(next, w)
	}
	p.windows[s.id] = next
}

func (p *plain) round(now quantity.Instant, s *slice, w *plainWindow, out *protocol.Out) {
	z, full := p.z, w.generation == 0
	z.nextRnd++
	var best candidate
	var losers []*state
	for _, st := range p.live() {
		if !full && st.generation <= w.generation {
			continue
		}
		if why := z.deafness(now, st); why != interested {
			st.counts.add(why, now)
			continue
		}
		if st.avoids(s) {
			st.counts.add(turnedDown, now)
			continue
		}
		piece, refusal := z.fit(st, s.class, now, w.end)
		if refusal.Why != atomizer.Interested {
			st.counts.refusal(refusal, now)
			continue
		}
		losers = append(losers, st)
		if c := z.candidate(now, st, s.class, w.end, &piece); best.job == nil || z.cfg.Policy.Compare(&c, &best.Candidate) < 0 {
			best = candidate{c, st}
		}
	}
	w.generation = z.generation
	st := best.job
	if st == nil {
		return
	}
	for _, loser := range losers {
		if loser != st {
			loser.counts.add(lostToPolicy, now)
		}
	}
	cut, _ := z.fit(st, s.class, now, w.end)
	end := now.Add(cut.Length)
	if cut.Length == time.Duration(math.MaxInt64) || st.Spec.Kind == job.Rigid && st.Spec.Walltime == 0 {
		end = quantity.Never
	}
	z.ask(now, st, s, nil, piece{Piece: cut, start: now, end: end, speed: s.speed(st.Spec), window: w.id, round: z.nextRnd}, 0, out)
	w.generation = 0
}
