package interest

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// offer offers one window: signals of interest from every waiting job, an order by policy, and only then the piece. A window that was
// announced before is offered only to the jobs that have changed since: between changes nobody becomes eligible, since the window only
// shrinks. The first in order is asked for its piece, and may decline; then the next is. Where agents have signalled (t) all who signal are
// in one order with them.
func (x *Interest) offer(now quantity.Instant, s *window.Slice, w *window.Window, t *asking, out *protocol.Out) {
	x.index.Refresh(now)
	x.rounds++
	length, full := w.Length(now), !w.Offered()
	pick := x.noPick()
	list := x.index.Fresh()
	if full || t != nil {
		list = x.index.Unindexed()
		x.best(now, s.Class(), w, nil, pick)
	}
	for _, j := range list {
		switch {
		case !full && t == nil && j.Generation() <= w.Heard():
			recordOf(j).interested = false
		case full || t == nil:
			x.signal(now, j, s, w, length, pick)
		default:
			x.reconsider(now, j, nil, s, w, pick) // it has counted this window when it was announced
		}
	}
	x.considerSignals(now, s, w, t, nil, pick)
	var p atomizer.Piece
	for pick.job != nil && !pick.job.Spec().External {
		// The first in order, and nobody else, cuts its piece now, with its progress as it is now.
		var refusal atomizer.Refusal
		if p, refusal = x.est.Cut(pick.job, s, now, w.End()); refusal.Why == atomizer.Interested {
			break
		}
		x.backoff.add(now, pick.job, refusal, "")
		x.index.Refresh(now) // jobs that have declined rest, and are in no order
		*pick = candidate{}  // then the next in order is asked
		x.findFirst(now, s, w, full, t, nil, pick)
	}
	j := pick.job
	if full && t == nil {
		if kin, cut := x.kin(now, j, s, w); kin != nil {
			j, p = kin, cut
		}
	}
	late, cost := x.lateFor(now, j, s, w, list, full || t != nil)
	if late != nil {
		j = late
		p, _ = x.est.Cut(j, s, now, w.End())
		cost = min(cost, s.Class().Cost(p.Length)) // of a gap that may end sooner it takes less than it may have
	}
	if full {
		if j != nil && j.Entry().Indexed() {
			x.index.Settle(j) // the winner has not lost this round
		}
		x.index.NoteRound(s.Class().At(), length, now)
		if j != nil && j.Entry().Indexed() {
			x.index.Skip(j)
		}
	}
	w.MarkOffered()
	if t != nil {
		w.Hear(x.index.Generation())
	}
	if j == nil {
		return
	}
	if full || t == nil {
		for _, other := range list {
			if other != j && recordOf(other).interested {
				other.Counts().Add(explain.LostToPolicy, now)
			}
		}
	}
	if j.Spec().External {
		x.askAgent(now, s, w, t, pick, out)
		return
	}
	x.late.Spend(cost)
	x.give(now, j, s, w, award.Piece{
		Piece: p, Start: now, End: endOf(now, j, &p), Speed: s.Class().SpeedOf(j.Spec()), Window: w.ID(), Round: x.rounds, Late: cost,
	}, out)
	x.tellLosers(now, t, w, j, out)
}

// endOf is when the lease of a piece that begins now ends.
func endOf(now quantity.Instant, j *index.Job, p *atomizer.Piece) quantity.Instant {
	if p.Length == time.Duration(math.MaxInt64) || j.Spec().Kind == job.Rigid && j.Spec().Walltime == 0 {
		return quantity.Never
	}
	return now.Add(p.Length)
}

// give asks the slice's node for a piece that a job has cut of a window.
func (x *Interest) give(now quantity.Instant, j *index.Job, s *window.Slice, w *window.Window, p award.Piece, out *protocol.Out) {
	length := w.Length(now)
	x.backoff.reset(j)
	x.seller.Ask(now, j, s, p, out)
	queue, _ := j.Queue()
	for len(x.given) <= s.Class().At() {
		x.given = append(x.given, gifts{})
	}
	x.given[s.Class().At()].add(given{slice: s, length: length, at: now, job: j.Name(), queue: queue})
	w.Take() // the rest of it is announced again
}

// findFirst looks among all who signal, or among those that changed, and counts nothing.
func (x *Interest) findFirst(
	now quantity.Instant, s *window.Slice, w *window.Window, full bool, t *asking, but *index.Job, pick *candidate,
) {
	list := x.index.Fresh()
	if full || t != nil {
		list = x.index.Unindexed()
		x.best(now, s.Class(), w, but, pick)
	}
	for _, j := range list {
		if full || t != nil || j.Generation() > w.Heard() {
			x.reconsider(now, j, but, s, w, pick)
		}
	}
	x.considerSignals(now, s, w, t, but, pick)
}

// lateFor is the late job that is given a window instead of one that the order gives it, with what that costs; nil if there is none. all:
// everybody is looked at, else those of some that bid.
func (x *Interest) lateFor(
	now quantity.Instant, pick *index.Job, s *window.Slice, w *window.Window, some []*index.Job, all bool,
) (late *index.Job, cost int64) {
	if x.late.Credit() <= 0 {
		return nil, 0
	}
	if all {
		late = x.late.FirstFor(now, s, w)
	} else {
		for _, j := range some {
			if recordOf(j).interested && !j.Spec().External && j.IsLate(now) && (late == nil || lateness.ByTurn(j, late) < 0) {
				late = j
			}
		}
	}
	return x.late.Entitled(now, late, pick, s.Class(), w)
}

// Displaces is the job that the policy would ask first for the window behind a running subjob, which ends as the claim says, rather than
// that the subjob goes on there with a piece of its job, or that has waited too long; nil if there is none.
func (x *Interest) Displaces(
	now quantity.Instant, j *index.Job, s *window.Slice, c *protocol.Claim, end quantity.Instant, p *atomizer.Piece,
) *index.Job {
	w := window.Of(0, c.End, end)
	if x.late.Credit() > 0 {
		if late, _ := x.late.Entitled(now, x.late.FirstFor(now, s, w), j, s.Class(), w); late != nil {
			return late
		}
	}
	if pick := x.behind(now, j, s, w); pick.job != nil {
		mine := x.est.Candidate(now, j, s.Class(), end, p)
		if x.policy.Compare(&pick.Candidate, &mine) < 0 {
			return pick.job
		}
	}
	return nil
}

// considerSignals adds the agents that have signalled to those of whom the first in order is asked, but for one that is not meant.
func (x *Interest) considerSignals(now quantity.Instant, s *window.Slice, w *window.Window, t *asking, but *index.Job, pick *candidate) {
	if t == nil || t.asks == mostAsks {
		return
	}
	for i := range t.signals {
		if g := &t.signals[i]; g.job != but && x.cuts(now, g, s, w) {
			x.consider(now, g.job, s.Class(), w.End(), &g.piece, pick)
		}
	}
}

// cuts reports whether a job that has signalled may be asked for a piece now. One job cuts one piece at a time: it could not tell two
// apart.
func (x *Interest) cuts(now quantity.Instant, g *signal, s *window.Slice, w *window.Window) bool {
	j := g.job
	return j.Active() && g.session != 0 && x.relay.Session(j) == g.session && !x.relay.Cutting(j) &&
		j.Ineligible(now) == explain.Eligible &&
		agents.Suits(now, j, &agents.Offer{Slice: s, ID: w.ID()})
}

// tellLosers tells the others who signalled for a window that it is another's.
func (x *Interest) tellLosers(now quantity.Instant, t *asking, w *window.Window, winner *index.Job, out *protocol.Out) {
	if t == nil {
		return
	}
	for i := range t.signals {
		g := &t.signals[i]
		if g.job == winner || g.asked || g.session == 0 || x.relay.Session(g.job) != g.session {
			continue
		}
		g.job.Counts().Add(explain.LostToPolicy, now)
		x.relay.Tell(g.job, g.session, g.round, protocol.Notice{
			Kind: protocol.Lost, Window: w.ID(), Variant: g.variant, Text: "policy " + x.policy.Name() +
				" asked another first, which took it",
		}, out)
	}
}

const (
	// mostAsks is how many agents are asked for their piece of one window, one after another. Each may take Close, in which the window is
	// idle: with the signals that is four times Close, 0.8 s by default, less than the shortest rest after a decline. Then the first to
	// answer at once has it, and if nobody does the signals are stale: it is announced anew, to all but those that rest.
	mostAsks = 3
	// mostPieces an agent may name for a window: the first that fits counts.
	mostPieces = 4
)

// askAgent asks the first in order for its piece.
func (x *Interest) askAgent(now quantity.Instant, s *window.Slice, w *window.Window, t *asking, pick *candidate, out *protocol.Out) {
	j := pick.job
	t.first, t.second = pick.Candidate, policy.Candidate{}
	if !x.policy.Motion().Kept() {
		var second candidate
		x.offers.findFirst(now, s, w, true, t, j, &second)
		t.second = second.Candidate
	}
	t.asks++
	for i := range t.signals {
		t.signals[i].asked = t.signals[i].asked || t.signals[i].job == j
	}
	x.rounds++
	r := x.relay.NewRound(now, x.rounds, mostPieces, w.End())
	r.AddOffer(agents.Offer{Slice: s, ID: w.ID()})
	x.askings[r.ID()] = t
	w.Await(r.ID())
	x.relay.StartCutting(j, r)
	c := x.relay.Call(j, r)
	c.Wanted = protocol.Subjob
	a := x.relay.Advert(now, j, s, w)
	a.Start = r.Closes() // what is cut for the time behind that fits, however late within the round it comes
	c.Windows = []protocol.Advert{a}
	x.relay.Send(r, x.relay.Callee(now, j).Awaited(), c, out)
	x.relay.Open(r)
}
