package zone

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// historyShown bounds the subjobs listed for one job; older ones are counted.
const historyShown = 10_000

// Brief shows one job without its subjobs.
func (z *Zone) Brief(now quantity.Instant, id job.ID) (status.Job, bool) {
	j := z.home.Job(id)
	if j == nil {
		return status.Job{}, false
	}
	return z.viewer(now).show(j), true
}

// Job shows one job with its subjobs.
func (z *Zone) Job(now quantity.Instant, id job.ID) (status.Job, bool) {
	j := z.home.Job(id)
	if j == nil {
		return status.Job{}, false
	}
	return z.detail(now, j), true
}

func (z *Zone) detail(now quantity.Instant, s *home.Job) status.Job {
	j := z.viewer(now).show(s)
	j.HistoryDropped = max(0, len(s.Past())-historyShown)
	j.History = make([]status.Subjob, 0, len(s.Past())-j.HistoryDropped+len(s.Claims()))
	for i := range s.Past()[j.HistoryDropped:] {
		p := &s.Past()[j.HistoryDropped+i]
		sub := showClaim(&p.Claim)
		sub.Committed, sub.Start, sub.End, sub.Peak = p.Committed, p.RealStart, p.RealEnd, p.Peak[trp.Memory]
		sub.Outcome, sub.Detail, sub.Prepare = p.Outcome.String(), p.Detail, p.Prepare
		if p.Skipped {
			sub.Outcome = "skipped"
		}
		if _, publishing := s.Publication(p.Token); publishing {
			sub.Outcome, sub.Committed = "publishing", job.Range{}
		}
		j.History = append(j.History, sub)
	}
	for i := range s.Claims() {
		c := &s.Claims()[i]
		sub := showClaim(c)
		sub.Running, sub.Outcome = true, "starting"
		l := s.Lease(c.Token)
		if t := l.Running(); t != 0 {
			sub.Start, sub.Outcome = t, "running"
		}
		sub.Progress = l.Reported(c)
		j.History = append(j.History, sub)
	}
	byToken := func(a, b status.Subjob) int { return a.Token.Compare(b.Token) }
	if !slices.IsSortedFunc(j.History, byToken) { // only subjobs that ran beside each other may be in another order
		slices.SortStableFunc(j.History, byToken)
	}
	return j
}

func showClaim(c *protocol.Claim) status.Subjob {
	sub := status.Subjob{
		Token: c.Token, Slice: c.Slice, Window: c.Plan.Window, Range: c.Range, PlannedStart: c.Start, PlannedEnd: c.End,
		Predicted: c.Demand[trp.Memory],
	}
	if c.Bid != nil {
		bid := *c.Bid // what is shown outlives the step
		sub.Bid = &bid
	}
	return sub
}

// show is a job without its subjobs.
func (v *viewer) show(s *home.Job) status.Job {
	z, now := v.z, v.now
	j := status.Job{
		Name: s.ID, Generation: s.Generation, Queue: s.Queue().Name, Kind: s.Spec.Kind, Priority: s.Spec.Priority, State: s.Phase(), Reason: z.why(now, s),
		Progress: s.Committed().Len() - s.Unpublished(), Skipped: s.Skipped().Len(), Total: s.Spec.Total, Unit: s.Spec.Unit,
		Running: len(s.Claims()), Submitted: s.Submitted, Started: s.Started(), Ended: s.Ended(),
		MemoryScale: s.Learned().MemoryScale, Spec: s.Spec,
		Profile: s.Profile(),
	}
	j.Lost, j.Subjobs = s.Fruitless(), len(s.Past())-s.Fruitless()-len(s.Publishing())
	for i := range s.Claims() {
		c := &s.Claims()[i]
		j.Reported += s.Lease(c.Token).Reported(c) - c.Range.From
	}
	started := s.Began()
	j.Started = started
	switch {
	case started != 0:
		j.Wait = max(0, started.Sub(s.Submitted))
	case s.Ended() != 0:
		j.Wait = max(0, s.Ended().Sub(s.Submitted))
	default:
		j.Wait = max(0, now.Sub(s.Submitted))
	}
	view := s.View()
	j.Prepare, j.PrepareSeen = view.Prepare(), s.Learned().Prepare > 0 && s.Spec.Kind != job.Rigid
	if rates := slices.Sorted(slices.Values(s.Learned().Rates)); len(rates) > 0 {
		j.RateP50, j.RateP95 = rates[len(rates)/2], s.Learned().Rate
	}
	if z.cfg.Market != nil {
		j.Trust, j.Spread = z.trusted(&s.Learned().Trust), s.Learned().Spread
	}
	v.estimate(s, &j)
	return j
}

// Windows lists what is advertised now, by slice, then start.
func (z *Zone) Windows(now quantity.Instant) []status.Window {
	out := make([]status.Window, 0, len(z.sites))
	look := z.floor.Look(now)
	for s := range z.offeredSlices() {
		out = look.Windows(&s.floor, out)
		for _, a := range s.asks {
			if a.Slice == s.id {
				out = append(out, status.Window{ID: a.Plan.Window, Slice: s.id, Start: a.Start, End: a.End, State: "pending", Answers: 1, Asked: 1})
			}
		}
	}
	return out
}

// Queues lists the queues with their use, by name.
func (z *Zone) Queues(now quantity.Instant) []status.Queue {
	var out []status.Queue
	for _, q := range z.home.Queues() {
		v := status.Queue{Queue: q.Queue, Held: q.Held(), Attained: float64(q.Attained()) / 1024 / 1000}
		if z.cfg.Market != nil {
			v.Trust, v.Credits = z.trusted(q.Trust()), z.home.Credits(now, q)
		}
		v.Pending, v.Running = q.Count(job.Waiting)+q.Count(job.Paused), q.Count(job.Running)
		out = append(out, v)
	}
	return out
}

// estimate fills in when a job is likely to start and finish, as a range: work left at the learned or declared rate, on
// as many slices as it may use, the early end without waiting and the late end with what it waited so far per subjob.
func (v *viewer) estimate(s *home.Job, j *status.Job) {
	z, now := v.z, v.now
	if j.State.Final() || s.Held {
		return
	}
	early, late, found := now, now, true
	if len(s.Claims()) == 0 {
		early, found = v.nextStart(s)
		late = early
	}
	_, reserved := entryOf(s).rigid.Placement()
	switch {
	case len(s.Claims()) > 0:
		j.StartEarly, j.StartLate = j.Started, j.Started
	case !found:
	case reserved || !s.Active() && s.Spec.Kind == job.Rigid && z.cfg.Rigid.Lines(s.Width()) && z.planner.Reserved() < z.cfg.Rigid.Reserve: // its place is known, or would be
		j.StartEarly, j.StartLate = early, late
	default:
		low, high := z.expect(now, s)
		early, late = max(early, low), max(early, low, high)
		j.StartEarly, j.StartLate = early, late
	}
	if !found {
		return
	}
	if s.Spec.Kind == job.Rigid {
		if s.Spec.Walltime > 0 {
			end, wall := early, time.Duration(0)
			if len(s.Claims()) > 0 {
				wall = s.Claims()[0].Wall()
				if j.Started != 0 {
					end = j.Started
				}
			} else if p, ok := v.rigidPlace(s); ok {
				wall = s.Spec.WalltimeAt(p.Speed)
			}
			j.FinishEarly, j.FinishLate = max(now, end), max(now, late.Add(wall))
		}
		return
	}
	usable, slow, fast := 0, int64(0), int64(0)
	view := s.View()
	free := job.NextFree(0, s.Spec.Total, s.Committed())
	for _, c := range z.floor.Classes() {
		if speed, ok := runsOn(s, c, free.From); ok {
			usable += c.Usable()
			if slow == 0 || speed < slow {
				slow = speed
			}
			fast = max(fast, speed)
		}
	}
	if usable == 0 {
		return
	}
	left := s.Spec.Total - s.Committed().Len()
	at := max(1, min(usable, s.Spec.Parallelism))
	best := view.RunTime(left, fast) / time.Duration(at)
	if s.Learned().Rate > 0 && j.RateP50 > 0 {
		best = time.Duration(quantity.MulDiv(int64(j.RateP50), left*1000, fast)) / time.Duration(at)
	}
	worst := view.RunTime(left, slow)
	if len(s.Claims()) > 1 {
		worst /= time.Duration(len(s.Claims()))
	}
	// What it has waited so far between its subjobs is likely to come again for what is left.
	if done := s.Committed().Len(); done > 0 {
		waited := max(0, now.Sub(s.Submitted)-view.RunTime(done, fast)/time.Duration(at))
		worst += time.Duration(quantity.MulDiv(int64(waited), left, done))
	} else {
		worst += worst / 2
	}
	j.FinishEarly, j.FinishLate = early.Add(best), max(late, early).Add(max(best, worst))
}

// nextStart is the earliest instant at which a waiting job could start.
func (v *viewer) nextStart(j *home.Job) (early quantity.Instant, found bool) {
	if j.Spec.Kind == job.Rigid {
		p, ok := v.rigidPlace(j)
		return p.Start, ok
	}
	return v.opening(j)
}

// Negotiation is what the market has done since it came up; zero for one that does not negotiate.
func (z *Zone) Negotiation() status.Negotiation { return z.floor.Stats() }

// trusted is a record for people.
func (z *Zone) trusted(t *protocol.Trust) status.Trust {
	return status.Trust{Trust: *t, Believed: z.cfg.Market.Trust().Rho(t)}
}
