package interest

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Plain is the mechanism as the definition says and nothing less: after every input every slice and every job is looked at, and
// nothing is remembered of what was answered. It is the oracle of what looks only at changes, for tests; it costs too much for anything
// else.
type Plain struct {
	*Interest
	// seen is by window the generation of the jobs in which all were asked.
	seen map[uint64]uint64
}

// NewPlain is one that has sold nothing.
func NewPlain(c Config) *Plain {
	p := &Plain{Interest: New(c), seen: map[uint64]uint64{}}
	p.offers = p
	return p
}

// live are the jobs by name.
func (p *Plain) live() []*index.Job {
	return slices.SortedFunc(slices.Values(p.index.Jobs()), index.ByName)
}

// Sell is Interest.Sell.
func (p *Plain) Sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	p.index.Refresh(now)
	p.backoff.wake(now)
	for _, s := range p.board.Slices() {
		p.board.Invalidate(s)
	}
	p.board.Advertise(now)
	wake := quantity.Never
	p.conclude(now, out)
	p.beginCalls(now)
	for _, s := range order(p.board, waiting) {
		for i := range s.Windows() {
			w := &s.Windows()[i]
			generation := p.index.Generation()
			switch {
			case w.Start() > now:
				wake = min(wake, w.Start())
			case generation == 0 || w.Offered() && p.seen[w.ID()] == generation || w.Round() != 0 || s.Sold(w):
			default:
				waits := p.enrol(now, s, w, func(j *index.Job) bool { return j.Generation() > p.seen[w.ID()] })
				if !waits {
					p.offer(now, s, w, nil, out)
				}
			}
		}
	}
	p.endCalls(now, out)
	return min(wake, p.relay.Next(), p.backoff.resting.Next())
}

// order is that of the slices: the fast ones first where nobody waits for them, else the small ones.
func order(b *window.Board, waiting int) []*window.Slice {
	order := slices.Clone(b.Slices())
	if waiting <= b.Open() {
		slices.SortStableFunc(order, func(a, b *window.Slice) int { return cmp.Compare(b.Class().Speed, a.Class().Speed) })
	}
	return order
}

func (p *Plain) offer(now quantity.Instant, s *window.Slice, w *window.Window, t *asking, out *protocol.Out) {
	full := !w.Offered()
	p.rounds++
	var losers []*index.Job
	for _, j := range p.live() {
		if !full && t == nil && j.Generation() <= p.seen[w.ID()] || !full && t != nil {
			continue // it has counted this window
		}
		piece, refusal := p.est.Fit(j, s.Class(), now, w.End())
		switch why := j.Ineligible(now); {
		case j.Spec().External:
			if !p.relay.Attended(j) {
				j.Counts().Add(explain.Unattended, now)
			}
		case why != explain.Eligible:
			j.Counts().Add(why, now)
		case j.Avoids(s):
			j.Counts().Add(explain.TurnedDown, now)
		case refusal.Why != atomizer.Interested:
			j.Counts().Refuse(refusal, now)
		case !piece.Range.Empty():
			losers = append(losers, j)
		}
	}
	var best candidate
	var cut atomizer.Piece
	for {
		best = candidate{}
		p.findFirst(now, s, w, full, t, nil, &best)
		if best.job == nil || best.job.Spec().External {
			break
		}
		var refusal atomizer.Refusal
		if cut, refusal = p.est.Cut(best.job, s, now, w.End()); refusal.Why == atomizer.Interested {
			break
		}
		p.backoff.add(now, best.job, refusal, "")
		losers = slices.DeleteFunc(losers, func(j *index.Job) bool { return j == best.job })
	}
	w.MarkOffered()
	j := best.job
	late, cost := p.late.Entitled(now, lateness.First(now, p.able(now, s, w, !full && t == nil)), j, s.Class(), w)
	if late != nil {
		j = late
		cut, _ = p.est.Cut(j, s, now, w.End())
		cost = min(cost, s.Class().Cost(cut.Length))
	}
	p.seen[w.ID()] = p.index.Generation()
	if j == nil {
		return
	}
	for _, loser := range losers {
		if loser != j {
			loser.Counts().Add(explain.LostToPolicy, now)
		}
	}
	if j.Spec().External {
		p.askAgent(now, s, w, t, &best, out)
		return
	}
	p.late.Spend(cost)
	p.give(now, j, s, w, award.Piece{
		Piece: cut, Start: now, End: endOf(now, j, &cut), Speed: s.Class().SpeedOf(j.Spec()), Window: w.ID(), Round: p.rounds, Late: cost,
	}, out)
	p.tellLosers(now, t, w, j, out)
}

func (p *Plain) findFirst(
	now quantity.Instant, s *window.Slice, w *window.Window, full bool, t *asking, but *index.Job, best *candidate,
) {
	for _, j := range p.able(now, s, w, !full && t == nil) {
		if j == but {
			continue
		}
		piece, _ := p.est.Fit(j, s.Class(), now, w.End())
		if c := p.est.Candidate(now, j, s.Class(), w.End(), &piece); best.job == nil || p.policy.Compare(&c, &best.Candidate) < 0 {
			*best = candidate{c, j}
		}
	}
	p.considerSignals(now, s, w, t, but, best)
}

// able are the jobs with an atomizer that could have a window, those alone that changed since it was offered if it is said so.
func (p *Plain) able(now quantity.Instant, s *window.Slice, w *window.Window, changed bool) (able []*index.Job) {
	for _, j := range p.live() {
		if j.Spec().External || j.Ineligible(now) != explain.Eligible || j.Avoids(s) || changed && j.Generation() <= p.seen[w.ID()] {
			continue
		}
		if _, refusal := p.est.Fit(j, s.Class(), max(w.Start(), now), w.End()); refusal.Why == atomizer.Interested {
			able = append(able, j)
		}
	}
	return able
}

// Displaces is Interest.Displaces.
func (p *Plain) Displaces(
	now quantity.Instant, j *index.Job, s *window.Slice, c *protocol.Claim, end quantity.Instant, piece *atomizer.Piece,
) *index.Job {
	w := window.Of(0, c.End, end)
	mine, able := p.est.Candidate(now, j, s.Class(), end, piece), p.able(now, s, w, false)
	if late, _ := p.late.Entitled(now, lateness.First(now, able), j, s.Class(), w); late != nil {
		return late
	}
	for _, other := range able {
		if other == j {
			continue
		}
		theirs, _ := p.est.Fit(other, s.Class(), max(c.End, now), end)
		if rival := p.est.Candidate(now, other, s.Class(), end, &theirs); p.policy.Compare(&rival, &mine) < 0 {
			return other
		}
	}
	return nil
}
