package market

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Mechanism sja with agents: a window that an external job could use waits for its agent's signal, up to Close. Then all who signal,
// by message or through their atomizers, are in one order; the first in it is asked for its piece, again up to Close where an agent
// cuts it. Nothing is held for a job meanwhile but the window itself.

const (
	// mostAsks is how many agents are asked for their piece of one window, one after another. Each may take Close, in which the window
	// stands idle: with the signals that is four times Close, 0.8 s by default, less than the least rest of who declined. Then whoever
	// answers at once has it, and if nobody does the signals are stale: it is announced anew, to all but those who rest.
	mostAsks = 3
	// mostPieces an agent may name for a window: the first that fits counts.
	mostPieces = 4
)

// calling are the agents that are told of windows in one pass, and the round that is opened for it.
type calling struct {
	asked []caller
	calls []*protocol.Call
	round *round
}

// turn is one window whose jobs are asked in order until one cuts a piece that fits.
type turn struct {
	signals []signal
	// asks of agents so far.
	asks int
	// since is the generation of the floor when the signals were asked for: who has come since was not.
	since uint64
	// second is who comes next in order, as when the first was asked, where the order depends on the piece; without a job if nobody
	// does, or the piece decides nothing. first is what the policy saw of the one that was asked.
	first, second policy.Candidate
}

// signal is an agent's interest in a window.
type signal struct {
	job            *Job
	session, round uint64
	variant        uint32
	// piece is what it would use, for a policy that orders by that.
	piece atomizer.Piece
	// asked: its agent has been, for the piece.
	asked bool
}

// beginCalls notes whose agents may be told of windows in this pass.
func (f *Floor) beginCalls(now quantity.Instant) {
	f.calling = calling{asked: f.calling.asked[:0], calls: f.calling.calls[:0]}
	if f.attending == 0 {
		return
	}
	for _, j := range f.unindexed {
		if j.Spec().External && j.active > 0 && j.Attended() && j.agent.cutting == 0 && j.Ineligible(now) == Eligible {
			f.calling.asked = append(f.calling.asked, caller{job: j, session: j.agent.session, asked: now, prompt: j.agent.missed < patience})
		}
	}
	slices.SortFunc(f.calling.asked, func(a, b caller) int { return byName(a.job, b.job) })
	f.calling.calls = slices.Grow(f.calling.calls, len(f.calling.asked))[:len(f.calling.asked)]
	clear(f.calling.calls)
}

// callFor tells the agents of a window that could use it, of one that was announced before those whose jobs have changed since. It says
// whether the window waits for their signals.
func (f *Floor) callFor(now quantity.Instant, s *Slice, w *window, changed func(*Job) bool) bool {
	c := &f.calling
	o, waits := offer{slice: s, window: w.id}, false
	for i := range c.asked {
		j := c.asked[i].job
		if w.offered && !changed(j) || !f.suits(now, j, &o) {
			continue
		}
		if c.round == nil {
			f.nextRound++
			c.round = &round{id: f.nextRound, closes: now.Add(f.cfg.Close), most: mostPieces, generation: f.generation, signals: true}
		}
		if c.calls[i] == nil {
			c.calls[i] = f.call(j, c.round)
			c.calls[i].Wanted = protocol.Interest
		}
		c.calls[i].Windows = append(c.calls[i].Windows, f.advert(j, s, w, now))
		waits = waits || c.asked[i].prompt
	}
	if waits {
		w.round = c.round.id
		c.round.offers = append(c.round.offers, o)
	}
	return waits
}

// endCalls sends what the agents are told, and opens the round that waits for them.
func (f *Floor) endCalls(now quantity.Instant, out *protocol.Out) {
	c := &f.calling
	r := c.round
	if r == nil {
		return
	}
	for i := range c.asked {
		if c.calls[i] == nil {
			continue
		}
		a := c.asked[i]
		f.stats.Calls++
		f.tell(&a, protocol.Message{Kind: protocol.Announce, Body: c.calls[i]}, out)
		if len(r.offers) == 0 { // nobody answers in time: the windows were offered to others, and who does is waited for again
			a.job.agent.round, a.job.agent.closes = r.id, r.closes
			f.callAgain(now, a.job)
			continue
		}
		r.asked = append(r.asked, a)
		if a.prompt {
			r.waiting++
		}
	}
	if len(r.offers) > 0 {
		f.rounds = append(f.rounds, r)
	}
}

// concludeSignals ends the rounds that are complete or over, and says when the next one closes.
func (f *Floor) concludeSignals(now quantity.Instant, out *protocol.Out) {
	for {
		i := slices.IndexFunc(f.rounds, func(r *round) bool { return r.waiting == 0 || r.closes <= now })
		if i < 0 {
			return
		}
		r := f.rounds[i]
		f.rounds = slices.Delete(f.rounds, i, i+1)
		for k := range r.offers {
			s := r.offers[k].slice
			s.class.quiet.Drop(s.at) // it is looked at again with the next change
		}
		if r.signals {
			f.collected(now, r, out)
		} else {
			f.cut(now, r, out)
		}
	}
}

// nextClose is when the first round closes.
func (f *Floor) nextClose() quantity.Instant {
	next := quantity.Never
	for _, r := range f.rounds {
		next = min(next, r.closes)
	}
	return next
}

// collected has the windows of a round of signals asked for, one after another.
func (f *Floor) collected(now quantity.Instant, r *round, out *protocol.Out) {
	f.takeIn(now, r)
	for i := range r.offers {
		o := &r.offers[i]
		w := o.find()
		if w == nil {
			f.gone(o, r)
			continue
		}
		w.round = 0
		t := &turn{since: r.generation}
		for k := range r.asked {
			c := &r.asked[k]
			if variants := c.of(o.window); len(variants) > 0 {
				v := &variants[0]
				t.signals = append(t.signals, signal{job: c.job, session: c.session, round: r.id, variant: v.ID, piece: f.declared(now, c.job, o, w, v)})
			}
		}
		f.offerOn(now, o, w, t, out)
	}
	for i := range r.asked {
		c := &r.asked[i]
		if c.job.agent.cutting == 0 {
			f.callAgain(now, c.job)
		}
		f.tellNotices(r, c, out)
	}
}

// declared is what an agent says that its piece would use of a window, as far as that can be: at least the memory of the least piece,
// and no more than there is.
func (f *Floor) declared(now quantity.Instant, j *Job, o *offer, w *window, v *protocol.Variant) (p atomizer.Piece) {
	offered := f.Window(j, o.slice.class, now, w.end)
	p.Wall = min(max(v.Wall, v.Run, 0), max(0, offered.End.Sub(offered.Start)))
	p.Demand = o.slice.class.Capacity
	p.Demand[trp.Memory] = min(p.Demand[trp.Memory], max(v.Demand[trp.Memory], 0))
	return p
}

// offerOn asks for a window in order, and announces it anew where somebody has not been heard: who came while it waited, and who
// signalled when as many agents as may be had been asked.
func (f *Floor) offerOn(now quantity.Instant, o *offer, w *window, t *turn, out *protocol.Out) {
	s := o.slice
	f.ask(now, s, w, t, out)
	if w.round != 0 || w.won && !w.offered {
		return
	}
	anew := t.asks == mostAsks && slices.ContainsFunc(t.signals, func(g signal) bool { return f.cuts(now, &g, s, w) })
	for _, j := range f.unindexed {
		anew = anew || j.Spec().External && j.Attended() && j.generation > t.since
	}
	if anew {
		w.offered = false
		f.turn.Put(s.at)
	}
}

// considerSignals adds the agents that have signalled to those of whom the first in order is asked, but for one that is not meant.
func (f *Floor) considerSignals(now quantity.Instant, s *Slice, w *window, t *turn, but *Job, pick *candidate) {
	if t == nil || t.asks == mostAsks {
		return
	}
	for i := range t.signals {
		if g := &t.signals[i]; g.job != but && f.cuts(now, g, s, w) {
			f.consider(now, g.job, s.class, w.end, &g.piece, pick)
		}
	}
}

// cuts says whether who has signalled may be asked for a piece now. One job cuts one piece at a time: it could not tell two apart.
func (f *Floor) cuts(now quantity.Instant, g *signal, s *Slice, w *window) bool {
	j := g.job
	return j.active > 0 && j.Attended() && j.agent.session == g.session && j.agent.cutting == 0 && j.Ineligible(now) == Eligible &&
		f.suits(now, j, &offer{slice: s, window: w.id})
}

// askAgent asks the first in order for its piece.
func (f *Floor) askAgent(now quantity.Instant, s *Slice, w *window, t *turn, pick *candidate, out *protocol.Out) {
	j := pick.job
	t.first, t.second = pick.Candidate, policy.Candidate{}
	if !f.cfg.Policy.Motion().Kept() {
		var second candidate
		f.firstOf(now, s, w, true, t, j, &second)
		t.second = second.Candidate
	}
	t.asks++
	for i := range t.signals {
		t.signals[i].asked = t.signals[i].asked || t.signals[i].job == j
	}
	f.nextRound++
	r := &round{
		id: f.nextRound, closes: min(now.Add(f.cfg.Close), w.end), most: mostPieces, generation: f.generation, turn: t, waiting: 1,
		asked: []caller{{job: j, session: j.agent.session, asked: now, prompt: true}}, offers: []offer{{slice: s, window: w.id}},
	}
	w.round, j.agent.cutting = r.id, r.id
	f.rounds = append(f.rounds, r)
	c := f.call(j, r)
	c.Wanted = protocol.Subjob
	a := f.advert(j, s, w, now)
	a.Start = r.closes // what is cut for the time behind that fits, however late within the round it comes
	c.Windows = []protocol.Advert{a}
	f.stats.Calls++
	f.tell(&r.asked[0], protocol.Message{Kind: protocol.Announce, Body: c}, out)
}

// cut takes the piece of the one that was asked for it: the first that fits is sold. Otherwise it has declined, and the next in order
// is asked.
func (f *Floor) cut(now quantity.Instant, r *round, out *protocol.Out) {
	f.takeIn(now, r)
	c, o, t := &r.asked[0], &r.offers[0], r.turn
	j, w := c.job, o.find()
	if j.agent.cutting == r.id {
		j.agent.cutting = 0
	}
	if w == nil {
		f.gone(o, r)
		f.callAgain(now, j)
		f.tellNotices(r, c, out)
		return
	}
	w.round = 0
	s := o.slice
	waits := f.meanwhile(now, j)
	if waits == "" {
		b, why := f.fitting(now, r, c, o, w)
		if why == "" {
			j.agent.unsuccessful = 0
			f.stats.Awards++
			f.give(now, j, s, w, Piece{
				Piece: atomizer.Piece{Range: b.Range, Run: b.Run, Wall: b.Wall, Length: b.end.Sub(b.Start), Demand: b.Demand},
				Start: b.Start, End: b.end, Speed: b.speed, Window: w.id, Round: r.id, Option: b.Option,
			}, out)
			c.notices = append(c.notices, protocol.Notice{Kind: protocol.Awarded, Window: w.id, Variant: b.ID, Text: "its node is asked", Range: b.Range})
			f.tellNotices(r, c, out)
			f.tellLosers(now, t, w, j, out)
			if v := j.View(); v.Running < j.Spec().Parallelism {
				f.Changed(j) // it may want more, in windows that nobody took while it was asked
			}
			return
		}
		f.decline(now, j, atomizer.Refusal{}, why)
		rests := fmt.Sprintf("%s: the next in order is asked, and this job again in %v", why, j.declines.until.Sub(now).Round(time.Millisecond))
		c.notices = append(c.notices, protocol.Notice{Kind: protocol.Denied, Window: w.id, Text: rests})
	}
	f.tellNotices(r, c, out)
	f.offerOn(now, o, w, t, out)
}

// fitting is the first piece of an answer that fits, or what is wrong with the answer.
func (f *Floor) fitting(now quantity.Instant, r *round, c *caller, o *offer, w *window) (b bid, why string) {
	j := c.job
	variants := c.of(o.window)
	switch {
	case c.session != j.agent.session:
		return b, "its agent went away when it was asked for its piece"
	case !c.said: // nothing has come
		return b, "its agent did not cut the piece in time"
	case len(variants) == 0:
		return b, "its agent cut no piece"
	}
	view := j.View()
	for i := range variants {
		b = bid{Variant: variants[i], job: j}
		if b.Start <= r.closes {
			b.Start = now // a piece begins when it is cut
		}
		wrong := f.verify(now, &b, &view, o, w)
		if wrong == "" && b.Start > now {
			wrong = "it begins later than the window: under sja a piece begins at once"
		}
		if wrong == "" {
			wrong = f.lessThanSignalled(r.turn, &b)
		}
		if wrong == "" {
			return b, ""
		}
		f.stats.Denied++
		if why == "" {
			why = "the piece that its agent cut does not fit: " + wrong
		}
	}
	return b, why
}

// lessThanSignalled holds the piece against what the job was picked for, where the policy orders by what pieces use: with the piece in
// place of the signal it must still come before who was next.
func (f *Floor) lessThanSignalled(t *turn, b *bid) string {
	if t.second.Job == "" {
		return ""
	}
	is := t.first
	is.Used = policy.MiB(b.Demand) * b.Wall.Milliseconds()
	if f.cfg.Policy.Compare(&t.second, &is) >= 0 {
		return ""
	}
	return "it uses less of the window than was signalled, and another comes first by that"
}

// tellLosers tells the others who signalled for a window that it is another's.
func (f *Floor) tellLosers(now quantity.Instant, t *turn, w *window, winner *Job, out *protocol.Out) {
	if t == nil {
		return
	}
	for i := range t.signals {
		g := &t.signals[i]
		if g.job == winner || g.asked || !g.job.Attended() || g.job.agent.session != g.session {
			continue
		}
		g.job.counts.add(LostToPolicy, now)
		f.tell(&caller{job: g.job, session: g.session}, protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: g.round, Notices: []protocol.Notice{{
			Kind: protocol.Lost, Window: w.id, Variant: g.variant, Text: "policy " + f.cfg.Policy.Name() + " asked another first, which took it",
		}}}}, out)
	}
}
