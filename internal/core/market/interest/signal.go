package interest

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/variant"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// With agents a window that an external job could use waits for its agent's signal, up to Close. Then all who signal,
// by message or through their atomizers, are in one order; the first in it is asked for its piece, again up to Close where an agent
// cuts it. Nothing is held for a job meanwhile but the window itself.

// beginCalls notes the agents that may be called in this pass.
func (x *Interest) beginCalls(now quantity.Instant) {
	c := &x.calling
	*c = calling{asked: c.asked[:0], calls: c.calls[:0]}
	if x.relay.Attending() == 0 {
		return
	}
	for _, j := range x.index.Unindexed() {
		if j.Spec().External && j.Active() && x.relay.Attended(j) && !x.relay.Cutting(j) && j.Ineligible(now) == explain.Eligible {
			c.asked = append(c.asked, x.relay.Callee(now, j))
		}
	}
	slices.SortFunc(c.asked, func(a, b agents.Callee) int { return index.ByName(a.Job(), b.Job()) })
	c.calls = slices.Grow(c.calls, len(c.asked))[:len(c.asked)]
	clear(c.calls)
}

// enrol adds a window to the calls of the agents that could use it, one that was announced before only to calls of those whose jobs have
// changed since. endCalls sends them. It says whether the window waits for their signals: then it is in the round of this pass.
func (x *Interest) enrol(now quantity.Instant, s *window.Slice, w *window.Window, changed func(*index.Job) bool) bool {
	c := &x.calling
	o, waits := agents.Offer{Slice: s, ID: w.ID()}, false
	for i := range c.asked {
		j := c.asked[i].Job()
		if w.Offered() && !changed(j) || !agents.Suits(now, j, &o) {
			continue
		}
		if c.round == nil {
			x.rounds++
			c.round = x.relay.NewRound(now, x.rounds, mostPieces, quantity.Never)
		}
		if c.calls[i] == nil {
			c.calls[i] = x.relay.Call(j, c.round)
			c.calls[i].Wanted = protocol.Interest
		}
		c.calls[i].Windows = append(c.calls[i].Windows, x.relay.Advert(now, j, s, w))
		waits = waits || c.asked[i].Prompt()
	}
	if waits {
		w.Await(c.round.ID())
		c.round.AddOffer(o)
	}
	return waits
}

// endCalls sends the agents' calls, and opens the round that waits for them.
func (x *Interest) endCalls(now quantity.Instant, out *protocol.Out) {
	c := &x.calling
	r := c.round
	if r == nil {
		return
	}
	for i := range c.asked {
		if c.calls[i] == nil {
			continue
		}
		x.relay.Send(r, c.asked[i], c.calls[i], out)
		if len(r.Offers()) == 0 { // nobody answers in time: the windows were offered to others, and late answers are waited for again
			x.relay.PassOver(now, r, c.asked[i].Job())
		}
	}
	if len(r.Offers()) > 0 {
		x.relay.Open(r)
	}
}

// conclude ends the rounds that are complete or over.
func (x *Interest) conclude(now quantity.Instant, out *protocol.Out) {
	for r := x.relay.Over(now); r != nil; r = x.relay.Over(now) {
		for i := range r.Offers() {
			x.board.Stir(r.Offers()[i].Slice) // it is looked at again with the next change
		}
		x.relay.TakeIn(now, r)
		if t := x.askings[r.ID()]; t != nil {
			delete(x.askings, r.ID())
			x.cut(now, r, t, out)
		} else {
			x.collected(now, r, out)
		}
	}
}

// collected has the windows of a round of signals asked for, one after another.
func (x *Interest) collected(now quantity.Instant, r *agents.Round, out *protocol.Out) {
	for i := range r.Offers() {
		o := &r.Offers()[i]
		w := o.Find()
		if w == nil {
			x.relay.Gone(o, r)
			continue
		}
		w.Await(0)
		t := &asking{since: r.Generation()}
		for k := range r.Asked() {
			c := &r.Asked()[k]
			if variants := c.Of(o.ID); len(variants) > 0 {
				v := &variants[0]
				t.signals = append(t.signals, signal{
					job: c.Job(), session: c.Session(), round: r.ID(), variant: v.ID, piece: x.declared(now, c.Job(), o, w, v),
				})
			}
		}
		x.askOn(now, o, w, t, out)
	}
	for i := range r.Asked() {
		c := &r.Asked()[i]
		if !x.relay.Cutting(c.Job()) {
			x.relay.CallAgain(now, c.Job())
		}
		x.relay.TellNotices(r, c, out)
	}
}

// declared is what an agent says that its piece would use of a window, as far as that can be: at least the memory of the least piece,
// and no more than there is.
func (x *Interest) declared(
	now quantity.Instant, j *index.Job, o *agents.Offer, w *window.Window, v *protocol.Variant,
) (p atomizer.Piece) {
	c := o.Slice.Class()
	offered := x.est.Window(j, c, now, w.End())
	p.Wall = min(max(v.Wall, v.Run, 0), max(0, offered.End.Sub(offered.Start)))
	p.Demand = c.Capacity
	p.Demand[trp.Memory] = min(p.Demand[trp.Memory], max(v.Demand[trp.Memory], 0))
	return p
}

// askOn asks for a window in order, and announces it anew if some job was not asked: one that came while it waited, or one that signalled
// after the limit of agents was reached.
func (x *Interest) askOn(now quantity.Instant, o *agents.Offer, w *window.Window, t *asking, out *protocol.Out) {
	s := o.Slice
	x.offers.offer(now, s, w, t, out)
	if w.Round() != 0 || w.Won() && !w.Offered() {
		return
	}
	anew := t.asks == mostAsks && slices.ContainsFunc(t.signals, func(g signal) bool { return x.cuts(now, &g, s, w) })
	for _, j := range x.index.Unindexed() {
		anew = anew || j.Spec().External && x.relay.Attended(j) && j.Generation() > t.since
	}
	if anew {
		w.Reopen()
		x.board.PutInTurn(s)
	}
}

// cut takes the piece of the one that was asked for it: the first that fits is sold. Otherwise it has declined, and the next in order
// is asked.
func (x *Interest) cut(now quantity.Instant, r *agents.Round, t *asking, out *protocol.Out) {
	c, o := &r.Asked()[0], &r.Offers()[0]
	j, w := c.Job(), o.Find()
	x.relay.EndCutting(j, r)
	if w == nil {
		x.relay.Gone(o, r)
		x.relay.CallAgain(now, j)
		x.relay.TellNotices(r, c, out)
		return
	}
	w.Await(0)
	waits := agents.Meanwhile(now, j)
	if waits != "" {
		x.relay.TellNotices(r, c, out)
		x.askOn(now, o, w, t, out)
		return
	}
	b, why := x.fitting(now, r, c, o, w, t)
	if why != "" {
		until := x.backoff.add(now, j, atomizer.Refusal{}, why)
		rests := fmt.Sprintf("%s: the next in order is asked, and this job again in %v", why, until.Sub(now).Round(time.Millisecond))
		c.Note(protocol.Notice{Kind: protocol.Denied, Window: w.ID(), Text: rests})
		x.relay.TellNotices(r, c, out)
		x.askOn(now, o, w, t, out)
		return
	}
	x.relay.Won(j)
	x.stats.Awards++
	x.give(now, j, o.Slice, w, award.Piece{
		Piece: atomizer.Piece{Range: b.Range, Run: b.Run, Wall: b.Wall, Length: b.End.Sub(b.Start), Demand: b.Demand},
		Start: b.Start, End: b.End, Speed: b.Speed, Window: w.ID(), Round: r.ID(), Option: b.Option,
	}, out)
	c.Note(protocol.Notice{Kind: protocol.Awarded, Window: w.ID(), Variant: b.ID, Text: "its node is asked", Range: b.Range})
	x.relay.TellNotices(r, c, out)
	x.tellLosers(now, t, w, j, out)
	if v := j.View(); v.Running < v.Parallelism() {
		x.index.Changed(j) // it may want more, in windows that nobody took while it was asked
	}
}

// fitting is the first piece of an answer that fits, or what is wrong with the answer.
func (x *Interest) fitting(
	now quantity.Instant, r *agents.Round, c *agents.Callee, o *agents.Offer, w *window.Window, t *asking,
) (b variant.Verified, why string) {
	j := c.Job()
	variants := c.Of(o.ID)
	switch {
	case c.Session() != x.relay.Session(j):
		return b, "its agent went away when it was asked for its piece"
	case !c.Said(): // nothing has come
		return b, "its agent did not cut the piece in time"
	case len(variants) == 0:
		return b, "its agent cut no piece"
	}
	view := j.View()
	for i := range variants {
		b = variant.Verified{Variant: variants[i], Job: j}
		if b.Start <= r.Closes() {
			b.Start = now // a piece begins when it is cut
		}
		wrong := b.Verify(now, x.est, &view, o.Slice, w)
		if wrong == "" && b.Start > now {
			wrong = "it begins later than the window: under sja a piece begins at once"
		}
		if wrong == "" {
			wrong = x.lessThanSignalled(t, &b)
		}
		if wrong == "" {
			return b, ""
		}
		x.stats.Denied++
		if why == "" {
			why = "the piece that its agent cut does not fit: " + wrong
		}
	}
	return b, why
}

// lessThanSignalled compares the piece with the signal that the job was picked for, where the policy orders by what pieces use: with the
// piece in place of the signal it must still come before the next.
func (x *Interest) lessThanSignalled(t *asking, b *variant.Verified) string {
	if t.second.Job == "" {
		return ""
	}
	is := t.first
	is.Used = policy.MiB(b.Demand) * b.Wall.Milliseconds()
	if x.policy.Compare(&t.second, &is) >= 0 {
		return ""
	}
	return "it uses less of the window than was signalled, and another comes first by that"
}
