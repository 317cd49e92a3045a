package zone

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// negotiation is what the market keeps of JASDA's rounds (arXiv 2510.14599). All of it is soft: a round that a crash
// forgets is announced again.
type negotiation struct {
	// rounds are open: they wait for agents. In order of their ids.
	rounds []*round
	// lots is room for the windows of a round.
	lots []lot
	// What follows is made anew for every window: who is asked, what is proposed, what of it stands, and how it is cleared.
	audience               []*state
	variants               []protocol.Variant
	tenders                []tender
	winners                []*tender
	order, starving, first []int32
	// soonest and used are the best tender of a lot that begins soon, and whether anything is sold there now.
	soonest []int32
	used    []bool
	tables  [][]clearing.Bid
	clearer clearing.Clearer
	// won are the winners of the latest clearing of one window, joint the latest plan for several; good until the next.
	won   []int32
	joint clearing.Plan
	// relaxed: there is a window for every job that runs nowhere.
	relaxed bool
	// lotAt is the lot that bids are collected for.
	lotAt int32
	stats status.Negotiation
}

// lot is a window in a round. Of one that has been offered before, only jobs that changed since are asked.
type lot struct {
	slice  *slice
	window uint64
	full   bool
}

// round is announced to agents and waits for their answers.
type round struct {
	id     uint64
	lots   []lot
	closes quantity.Instant
	asked  []caller
	// waiting are the prompt agents that have not answered.
	waiting int
	// generation of the zone when it was opened: who has come since was not asked.
	generation uint64
}

// caller is an external job that was asked, with its answer.
type caller struct {
	job      *state
	session  uint64
	asked    quantity.Instant
	prompt   bool
	answered bool
	// won: something of what it answered is sold or planned.
	won      bool
	variants []protocol.Variant
	// notices are what it is told of its variants.
	notices []protocol.Notice
}

// of are the caller's variants for a window, once they are sorted.
func (c *caller) of(window uint64) []protocol.Variant {
	from, _ := slices.BinarySearchFunc(c.variants, window, func(v protocol.Variant, id uint64) int { return cmp.Compare(v.Window, id) })
	to := from
	for to < len(c.variants) && c.variants[to].Window == window {
		to++
	}
	return c.variants[from:to]
}

// agent is what is known of an external job's agent.
type agent struct {
	// session, 0 if none attends; missed closings in a row, and rounds in a row in which it won nothing.
	session uint64
	missed  int
	vain    int
	// round that was cleared without waiting for it, and when that would have closed: it may still show that it is prompt.
	round  uint64
	closes quantity.Instant
}

// patience is how many closings an agent may miss in a row before rounds no longer wait for it.
const patience = 3

// mostPatience is how often the pause doubles after which an agent that won nothing is called again.
const mostPatience = 5

// negotiate announces the windows in turn, clears the rounds that nobody outside has to be waited for, and those that are
// complete or over. It returns when the next one closes.
func (z *Zone) negotiate(now quantity.Instant, news bool, out *protocol.Out) quantity.Instant {
	z.relaxed = z.uncontended()
	for len(z.rounds) > 0 {
		i := slices.IndexFunc(z.rounds, func(r *round) bool { return r.waiting == 0 || r.closes <= now })
		if i < 0 {
			break
		}
		r := z.rounds[i]
		z.rounds = slices.Delete(z.rounds, i, i+1)
		z.conclude(now, r, out)
	}
	lots, wake := z.inTurn(now, news, z.lots[:0])
	if n := len(lots); n > 0 {
		if lots = z.repack(now, lots, out); len(lots) < n { // what was withdrawn is withdrawn again until it is
			z.rearm()
			wake = min(wake, z.leases.Next())
		}
	}
	if asked := z.callees(now, lots); len(asked) > 0 {
		lots = z.announceTo(now, lots, asked, out)
	}
	z.clear(now, lots, nil, out)
	clear(lots)
	z.lots = lots[:0]
	for _, r := range z.rounds {
		wake = min(wake, r.closes)
	}
	return min(wake, z.resting.Next()) // who won nothing is called again
}

// inTurn lists the windows that have begun and are to be offered: where there are as many as jobs to fill them those of fast
// slices first, otherwise those of small ones. Those of slices that have had their rounds in this instant wait for the next
// one, which is returned.
func (z *Zone) inTurn(now quantity.Instant, news bool, lots []lot) (_ []lot, again quantity.Instant) {
	again = quantity.Never
	add := func(pace int64) {
		for i := z.turn.Next(0); i >= 0; i = z.turn.Next(i + 1) {
			s := z.slices[i]
			if pace != anyPace && s.class.pace != pace {
				continue
			}
			z.turn.Drop(i)
			if s.moved {
				continue // a round that has just closed sold some of it: what is left is offered in the next step
			}
			for j := range s.windows {
				w := &s.windows[j]
				full := !w.offered || w.planned != 0 && w.planned <= now
				if w.start > now || w.round != 0 || !full && !news || z.generation == 0 {
					continue
				}
				if full && !s.another(now, z.cfg.Market.Rounds) {
					again = now.Add(tick)
					z.reopen(s)
					break
				}
				lots = append(lots, lot{s, w.id, full})
			}
		}
	}
	if z.uncontended() {
		for _, pace := range z.paces {
			add(pace)
		}
	}
	add(anyPace)
	return lots, again
}

// another counts a round of the slice in this instant, unless it has had as many as there may be.
func (s *slice) another(now quantity.Instant, most int) bool {
	if s.instant != now {
		s.instant, s.rounds = now, 0
	}
	s.rounds++
	return s.rounds <= most
}

// find is the window of a lot as it is now; nil if it is gone or was cut.
func (l *lot) find() *window {
	for i := range l.slice.windows {
		if w := &l.slice.windows[i]; w.id == l.window {
			return w
		}
	}
	return nil
}

// callees are the external jobs with an agent that could use one of the lots, by id.
func (z *Zone) callees(now quantity.Instant, lots []lot) (asked []caller) {
	if z.attending == 0 {
		return nil
	}
	full := slices.ContainsFunc(lots, func(l lot) bool { return l.full })
	list := z.fresh
	if full {
		list = z.loud
	}
	for _, st := range list {
		if !st.Spec.External || st.alive == 0 || z.deafness(now, st) != interested {
			continue
		}
		if st.agent.session == 0 {
			st.counts.add(unattended, now)
			continue
		}
		if slices.ContainsFunc(lots, func(l lot) bool { return z.suits(now, st, &l) }) {
			asked = append(asked, caller{job: st, session: st.agent.session, asked: now, prompt: st.agent.missed < patience})
		}
	}
	slices.SortFunc(asked, func(a, b caller) int { return cmp.Compare(a.job.Job, b.job.Job) })
	return asked
}

// suits says whether an external job could run its next unit in a window, which is all that can be said without its agent.
func (z *Zone) suits(now quantity.Instant, st *state, l *lot) bool {
	w, c := l.find(), l.slice.class
	if w == nil || st.avoids(l.slice) || c.speed(st.Spec) == 0 || w.end.Sub(now) < st.Spec.Launch.Grace {
		return false
	}
	v := st.view()
	if v.Running >= st.Spec.Parallelism {
		return false
	}
	for free := job.NextFree(0, st.Spec.Total, v.Committed, v.Claimed); !free.Empty(); free = job.NextFree(free.To, st.Spec.Total, v.Committed, v.Claimed) {
		if least := v.Needs(job.Range{From: free.From, To: free.From + 1}); least <= c.capacity[trp.Memory] {
			return true
		}
		if st.Spec.Kind == job.Steps {
			break
		}
	}
	return false
}

// announceTo opens a round for the lots that one of those asked could use, and returns the lots that none could.
func (z *Zone) announceTo(now quantity.Instant, lots []lot, asked []caller, out *protocol.Out) (rest []lot) {
	z.nextRnd++
	r := &round{id: z.nextRnd, closes: now.Add(z.cfg.Market.Close), asked: asked, generation: z.generation}
	calls := make([]*protocol.Call, len(asked))
	for _, l := range lots {
		w, wanted := l.find(), false
		for i := range asked {
			if st := asked[i].job; z.suits(now, st, &l) {
				if calls[i] == nil {
					calls[i] = z.call(st, r)
				}
				offered := z.window(st, l.slice.class, now, w.end)
				calls[i].Windows = append(calls[i].Windows, protocol.Advert{
					Window: w.id, Slice: l.slice.id, Profile: l.slice.class.profile, Speed: offered.Speed, Capacity: offered.Capacity,
					Start: offered.Start, End: offered.End, Open: offered.Open,
				})
				wanted = true
			}
		}
		if !wanted {
			rest = append(rest, l)
			continue
		}
		w.round = r.id
		r.lots = append(r.lots, lot{l.slice, l.window, true})
	}
	for i := range asked {
		if asked[i].prompt {
			r.waiting++
		}
		z.stats.Calls++
		z.tell(&asked[i], protocol.Message{Kind: protocol.Announce, Call: calls[i]}, out)
	}
	if r.waiting > 0 {
		z.rounds = append(z.rounds, r)
		return rest
	}
	// None of them answers in time: the windows are cleared now, and who does is waited for again.
	for i := range r.lots {
		r.lots[i].find().round = 0
	}
	for i := range asked {
		asked[i].job.agent.round, asked[i].job.agent.closes = r.id, r.closes
		z.callAgain(now, asked[i].job)
	}
	return lots
}

// callAgain asks a job whose agent won nothing once more, though nothing else may happen: a message may have been lost, the agent
// may have been busy or made a mistake, or see things otherwise later. Each round in vain doubles the pause.
func (z *Zone) callAgain(now quantity.Instant, st *state) {
	if st.agent.session == 0 {
		return
	}
	pause := z.cfg.Retry << min(st.agent.vain, mostPatience)
	st.agent.vain++
	if st.notBefore <= now { // otherwise it is asked when it has rested
		z.resting.Set(&st.slots.resting, st, now.Add(pause))
	}
}

// call is what a job is told of a round.
func (z *Zone) call(st *state, r *round) *protocol.Call {
	v := st.view()
	c := &protocol.Call{
		Round: r.id, Closes: r.closes, Most: z.cfg.Market.Variants, First: st.Resume.Zero(),
		Left:   v.Left(),
		Memory: max(trp.Unscaled, v.Learned.MemoryScale), Pace: z.pace(st),
	}
	for free := job.NextFree(0, st.Spec.Total, v.Committed, v.Claimed); !free.Empty() && len(c.Free) < protocol.MaxFree; free = job.NextFree(free.To, st.Spec.Total, v.Committed, v.Claimed) {
		c.Free = append(c.Free, free)
	}
	return c
}

// tell sends something to the agent that was asked.
func (z *Zone) tell(c *caller, m protocol.Message, out *protocol.Out) {
	m.To, m.Job, m.Session = protocol.Address{Role: protocol.Bidder, ID: string(c.job.Job)}, c.job.Job, c.session
	z.send(out, m)
}

// attend: an agent has come or gone. The latest session counts; one that has gone is not waited for.
func (z *Zone) attend(in *protocol.Message) {
	s := z.jobs[in.Job]
	if s == nil || z.cfg.Market == nil || !s.Spec.External || s.alive == 0 {
		return
	}
	switch {
	case in.Session != 0 && in.Flag && in.Session == s.agent.session: // said again, in case it was lost
	case in.Flag && in.Session != 0:
		if s.agent.session == 0 {
			z.attending++
		}
		z.hangUp(s)
		s.agent = agent{session: in.Session}
		z.changed(s)
	case !in.Flag && in.Session == s.agent.session && in.Session != 0:
		z.hangUp(s)
		z.attending--
		s.agent = agent{}
		z.touch(s)
	}
}

// hangUp ends the waiting for an agent's answers: it has gone, or another has come in its place.
func (z *Zone) hangUp(s *state) {
	for _, r := range z.rounds {
		if i := slices.IndexFunc(r.asked, func(c caller) bool { return c.job == s }); i >= 0 && !r.asked[i].answered {
			if r.asked[i].prompt {
				r.waiting--
			}
			r.asked[i].answered = true // with nothing
		}
	}
}

// answered takes in an agent's answer. The first one to a round counts, and only what Most allows of it.
func (z *Zone) answered(now quantity.Instant, in *protocol.Message) {
	s := z.jobs[in.Job]
	if s == nil || in.Session == 0 || in.Session != s.agent.session {
		return
	}
	i := slices.IndexFunc(z.rounds, func(r *round) bool { return r.id == in.Round })
	if i < 0 { // closed
		if in.Round == s.agent.round && now < s.agent.closes {
			s.agent.missed, s.agent.round = 0, 0
			z.changed(s)
		}
		return
	}
	r := z.rounds[i]
	j := slices.IndexFunc(r.asked, func(c caller) bool { return c.job == s && c.session == in.Session })
	if j < 0 || r.asked[j].answered {
		return
	}
	c := &r.asked[j]
	c.answered, c.variants = true, in.Variants
	if most := z.cfg.Market.Variants * len(r.lots); len(c.variants) > most {
		z.stats.Denied += int64(len(c.variants) - most)
		c.variants = c.variants[:most]
	}
	if c.prompt {
		r.waiting--
	}
	z.stats.Answers++
	s.agent.missed = 0
}

// conclude clears a round that has waited for agents and tells each what became of its variants.
func (z *Zone) conclude(now quantity.Instant, r *round, out *protocol.Out) {
	late := r.generation != z.generation
	windows := make([]uint64, len(r.lots))
	for i := range r.lots {
		windows[i] = r.lots[i].window
		if w := r.lots[i].find(); w != nil {
			w.round = 0
		}
	}
	slices.Sort(windows)
	for i := range r.asked {
		c := &r.asked[i]
		if !c.answered {
			c.job.agent.missed++
			z.stats.Missed++
			c.job.counts.add(unanswered, now)
		}
		// The order in which an agent writes its variants is nobody's advantage.
		c.variants = slices.Clone(c.variants)
		slices.SortFunc(c.variants, func(a, b protocol.Variant) int {
			return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.ID, b.ID))
		})
		for j := range c.variants {
			if _, announced := slices.BinarySearch(windows, c.variants[j].Window); !announced {
				z.deny(c, &c.variants[j], "no such window is in this round")
			}
		}
	}
	z.clear(now, r.lots, r, out)
	for i := range r.lots {
		if w := r.lots[i].find(); w != nil && late { // what is left is for those too that came while it was open
			w.offered = false
			z.turn.Put(r.lots[i].slice.at)
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

// horizonOf is how soon a subjob must begin to be sold now.
func (z *Zone) horizonOf(now quantity.Instant) quantity.Instant {
	if z.cfg.Market.Repack == market.Rolling {
		return now.Add(z.cfg.Market.Freeze)
	}
	return quantity.Never
}

// waited is how long a job has gone without being served.
func (s *state) waited(now quantity.Instant) time.Duration {
	return max(0, now.Sub(max(s.Submitted, s.Served)))
}

// tellEnd tells an external job's agent how a subjob ended, so that it can learn.
func (z *Zone) tellEnd(s *state, c *protocol.Claim, r *job.Result, done job.Range, out *protocol.Out) {
	if s.agent.session == 0 {
		return
	}
	z.tell(&caller{job: s, session: s.agent.session}, protocol.Message{Kind: protocol.Told, Round: c.Plan.Round, Notices: []protocol.Notice{{
		Kind: protocol.Concluded, Window: c.Plan.Window, Text: r.Detail, Token: c.Token, Range: done, Outcome: r.Outcome, Ran: r.Ran(), Peak: r.Peak,
	}}}, out)
}
