package auction

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// settler asks nodes for what was won. Invariant: no work is asked for twice, and nothing that begins later than the freeze unless it is
// sold ahead.
type settler struct {
	cfg    *Config
	board  *window.Board
	index  *index.Index
	late   *lateness.Allowance
	seller award.Seller
	stats  *status.Negotiation
	plan   *plan
	sieve  *sieve
}

// settle asks for what was won of a window, as far as it is sold now, and reports what became of the rest.
func (s *settler) settle(now quantity.Instant, o *agents.Offer, w *window.Window, at int32, id uint64, out *protocol.Out) {
	s.stats.Rounds++
	sold := s.cfg.soldUntil(now)
	length := w.Length(now)
	bids := s.plan.of(at)
	refused := false
	for i := range bids {
		t := &bids[i]
		// What was sold since in another window is not sold again.
		if t.won && refuses(now, t) {
			t.won, refused = false, true
		}
		t.awarded = t.won && t.Start <= sold
		if o.Full && t.awarded && t.Job.Entry().Indexed() {
			s.index.Settle(t.Job) // the winner has not lost this round
		}
	}
	if o.Full {
		s.index.NoteRound(o.Slice.Class().At(), length, now)
	}
	w.MarkCleared()
	if o.Full {
		w.Plan(0) // otherwise what was planned with everybody asked stays so
	}
	// However soon a plan is to be looked at again: not sooner than an agent has time to answer, or one could be asked for ever.
	soonest := now.Add(s.cfg.Close)
	for i := range bids {
		t := &bids[i]
		switch {
		case t.awarded && !refuses(now, t):
			if o.Full && t.Job.Entry().Indexed() {
				s.index.Skip(t.Job)
			}
			s.award(now, t, o, w, id, out)
			w.Take() // the rest of it is announced again
		case t.won && !t.awarded:
			s.stats.Planned++
			if again := max(soonest, t.Start.Add(-s.cfg.Freeze)); w.Planned() == 0 || again < w.Planned() {
				w.Plan(again)
			}
		default:
			refused = refused || t.won
			t.won = false
		}
	}
	if refused && !w.Won() { // others could use it
		w.Plan(soonest)
	}
	if w.Planned() != 0 {
		s.board.Arm(o.Slice, now)
	}
	winners := s.plan.winnersOf(bids)
	s.losses(now, o, at, bids, winners)
	notify(bids, winners)
}

// refuses reports whether a job can no longer be sold what it won: some of it was sold in another window of the round, or as many subjobs
// as may run at once, or as many slices as its queue may hold.
func refuses(now quantity.Instant, t *bid) bool {
	if t.Job.Ineligible(now) != explain.Eligible {
		return true
	}
	v := t.Job.View()
	return v.Claimed.Overlaps(t.Range) || v.Running >= v.Parallelism()
}

// award asks the node for the place of a bid that has won.
func (s *settler) award(now quantity.Instant, t *bid, o *agents.Offer, w *window.Window, id uint64, out *protocol.Out) {
	s.stats.Awards++
	late := int64(0)
	if t.late {
		late = t.cost(o.Slice.Class())
		s.late.Spend(late)
	}
	s.seller.Ask(now, t.Job, o.Slice, award.Piece{
		Piece: atomizer.Piece{Range: t.Range, Run: t.Run, Wall: t.Wall, Length: t.End.Sub(t.Start), Demand: t.Demand},
		Start: t.Start, End: t.End, Speed: t.Speed, Window: w.ID(), Round: id, Option: t.Option, Late: late,
		Bid: &protocol.Bid{
			Score: t.Score, Calibrated: t.calibrated, Weight: t.weight, Left: t.left, Urgency: t.urgency, Price: s.plan.price(now, t),
			Option: t.Option,
			Since:  t.Job.Since(),
		},
	}, out)
}

// losses notes for every job that bid for a window what it was beaten by. The bids are those for the window that were cleared, by job,
// the winners those of them that are sold or planned. Of quotes that were asked for not all are among the bids.
func (s *settler) losses(now quantity.Instant, o *agents.Offer, at int32, bids []bid, winners []*bid) {
	if len(winners) == 0 {
		return
	}
	c := o.Slice.Class()
	of := &explain.Outcome{
		Class: c.At(), Label: c.Label(), Slice: o.Slice.Name(), At: now, Exclusive: s.cfg.Exclusive,
		Winners: make([]explain.Winner, len(winners)),
	}
	for i, t := range winners {
		queue, _ := t.Job.Queue()
		of.Winners[i] = explain.Winner{Job: t.Job.Name(), Queue: queue, Score: t.total, Weight: t.weight, Start: t.Start, End: t.End,
			Late: t.late}
	}
	for i := range s.sieve.heard {
		a := &s.sieve.heard[i]
		q := a.quote
		if a.offer != at || won(q.job, winners) {
			continue
		}
		n := explain.Loss{Latest: of, Score: a.score, Weight: a.weight}
		n.Start, n.End = q.terms[a.best].span(now)
		lose(q.job, &n)
	}
	for from := 0; from < len(bids); {
		best, to := &bids[from], from
		for ; to < len(bids) && bids[to].Job == bids[from].Job; to++ {
			if bids[to].weight > best.weight {
				best = &bids[to]
			}
		}
		if from = to; !best.quoted && !won(best.Job, winners) {
			lose(best.Job, &explain.Loss{Latest: of, Start: best.Start, End: best.End, Score: best.total, Weight: best.weight})
		}
	}
}

// won says whether a job has one of the winners.
func won(j *index.Job, winners []*bid) bool {
	return slices.ContainsFunc(winners, func(t *bid) bool { return t.Job == j })
}

// lose notes a loss. A job that has just won all that it may run in another window has lost nothing here.
func lose(j *index.Job, n *explain.Loss) {
	if !j.Stale() || j.Busy() < j.Parallelism() {
		j.Losses().Note(n)
	}
}

// notify notes for the agents what became of the bids for one window.
func notify(bids []bid, winners []*bid) {
	for i := range bids {
		t := &bids[i]
		if t.callee == nil {
			continue
		}
		if t.won {
			t.callee.Win()
		}
		n := protocol.Notice{Window: t.Window, Variant: t.ID, Score: t.total, Range: t.Range}
		switch {
		case t.won && t.awarded:
			n.Kind, n.Text = protocol.Awarded, "its node is asked"
		case t.won:
			n.Kind, n.Text = protocol.Planned, "it is the best for its time, which is not for sale yet"
		default:
			n.Kind, n.Text = protocol.Lost, "its work is sold in another window of this round, or others will be worth more there"
			for _, other := range winners {
				if other.Start < t.End && t.Start < other.End {
					n.Clearing, n.Text = max(n.Clearing, other.total), "others in its time are worth more, or have waited too long"
					if other.Job == t.Job {
						n.Text = "another variant of the same job was chosen"
						break
					}
				}
			}
		}
		t.callee.Note(n)
	}
}
