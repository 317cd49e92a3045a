package zone

import (
	"slices"
	"time"

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
	j := z.jobs[id]
	if j == nil {
		return status.Job{}, false
	}
	return z.viewer(now).show(j), true
}

// Job shows one job with its subjobs.
func (z *Zone) Job(now quantity.Instant, id job.ID) (status.Job, bool) {
	j := z.jobs[id]
	if j == nil {
		return status.Job{}, false
	}
	return z.detail(now, j), true
}

func (z *Zone) detail(now quantity.Instant, s *Job) status.Job {
	j := z.viewer(now).show(s)
	j.HistoryDropped = max(0, len(s.work().past)-historyShown)
	j.History = make([]status.Subjob, 0, len(s.work().past)-j.HistoryDropped+len(s.work().claims))
	for i := range s.work().past[j.HistoryDropped:] {
		p := &s.work().past[j.HistoryDropped+i]
		sub := showClaim(&p.Claim)
		sub.Committed, sub.Start, sub.End, sub.Peak = p.Committed, p.RealStart, p.RealEnd, p.Peak[trp.Memory]
		sub.Outcome, sub.Detail, sub.Prepare = p.Outcome.String(), p.Detail, p.Prepare
		if p.Skipped {
			sub.Outcome = "skipped"
		}
		if _, publishing := s.publication(p.Token); publishing {
			sub.Outcome, sub.Committed = "publishing", job.Range{}
		}
		j.History = append(j.History, sub)
	}
	for i := range s.work().claims {
		c := &s.work().claims[i]
		sub := showClaim(c)
		sub.Running, sub.Outcome = true, "starting"
		l := s.lease(c.Token)
		if l.running != 0 {
			sub.Start, sub.Outcome = l.running, "running"
		}
		sub.Progress = l.reported(c)
		j.History = append(j.History, sub)
	}
	byToken := func(a, b status.Subjob) int { return a.Token.Compare(b.Token) }
	if !slices.IsSortedFunc(j.History, byToken) { // only subjobs that ran beside each other may be in another order
		slices.SortStableFunc(j.History, byToken)
	}
	return j
}

// reported is the unit up to which a running subjob says it is complete. What it says of units beyond its claim is not
// shown.
func (l *lease) reported(c *protocol.Claim) int64 {
	return max(c.Range.From, min(l.progress, c.Range.To))
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
func (v *viewer) show(s *Job) status.Job {
	z, now := v.z, v.now
	j := status.Job{
		Name: s.ID, Generation: s.Generation, Queue: s.q.Name, Kind: s.Spec.Kind, Priority: s.Spec.Priority, State: s.phase(), Reason: z.why(now, s),
		Progress: s.work().committed.Len() - s.unpublished(), Skipped: s.work().skipped.Len(), Total: s.Spec.Total, Unit: s.Spec.Unit,
		Running: len(s.work().claims), Submitted: s.Submitted, Started: s.work().started, Ended: s.fate().ended,
		MemoryScale: s.learned().MemoryScale, Spec: s.Spec,
		Profile: s.profile(),
	}
	j.Lost, j.Subjobs = s.work().fruitless, len(s.work().past)-s.work().fruitless-len(s.work().unpublished)
	for i := range s.work().claims {
		c := &s.work().claims[i]
		j.Reported += s.lease(c.Token).reported(c) - c.Range.From
	}
	started := s.work().started
	for i := range s.work().leases {
		if t := s.work().leases[i].running; t != 0 && (started == 0 || t < started) {
			started = t
		}
	}
	j.Started = started
	switch {
	case started != 0:
		j.Wait = max(0, started.Sub(s.Submitted))
	case s.fate().ended != 0:
		j.Wait = max(0, s.fate().ended.Sub(s.Submitted))
	default:
		j.Wait = max(0, now.Sub(s.Submitted))
	}
	view := s.view()
	j.Prepare, j.PrepareSeen = view.Prepare(), s.learned().Prepare > 0 && s.Spec.Kind != job.Rigid
	if rates := slices.Sorted(slices.Values(s.learned().Rates)); len(rates) > 0 {
		j.RateP50, j.RateP95 = rates[len(rates)/2], s.learned().Rate
	}
	if z.cfg.Market != nil {
		j.Trust, j.Spread = z.trusted(&s.learned().Trust), s.learned().Spread
	}
	v.estimate(s, &j)
	return j
}

// phase is the state people see.
func (j *Job) phase() job.State {
	switch {
	case j.fate().verdict.State.Final():
		return j.fate().verdict.State
	case len(j.work().claims) > 0 || j.complete():
		return job.Running
	case j.Held:
		return job.Paused
	}
	return job.Waiting
}

// Windows lists what is advertised now, by slice, then start.
func (z *Zone) Windows(now quantity.Instant) []status.Window {
	out := make([]status.Window, 0, len(z.sites))
	look := z.floor.Look(now)
	for s := range z.offeredSlices() {
		out = look.Windows(&s.floor, out)
		for _, a := range s.asks {
			if a.slice == s {
				out = append(out, status.Window{ID: a.piece.Window, Slice: s.id, Start: a.piece.Start, End: a.piece.End, State: "pending", Answers: 1, Asked: 1})
			}
		}
	}
	return out
}

// Queues lists the queues with their use, by name.
func (z *Zone) Queues(now quantity.Instant) []status.Queue {
	z.enlist()
	var out []status.Queue
	for _, name := range z.queueNames() {
		q := z.queues[name]
		v := status.Queue{Queue: q.Queue, Held: q.held, Attained: float64(q.attained) / 1024 / 1000}
		if z.cfg.Market != nil {
			v.Trust, v.Credits = z.trusted(&q.standing.Trust), z.refilled(now, q).Credits
		}
		of := &q.rosters
		v.Pending, v.Running = of[job.Waiting].n+of[job.Paused].n, of[job.Running].n
		out = append(out, v)
	}
	return out
}

// estimate fills in when a job is likely to start and finish, as a range: work left at the learned or declared rate, on
// as many slices as it may use, the early end without waiting and the late end with what it waited so far per subjob.
func (v *viewer) estimate(s *Job, j *status.Job) {
	z, now := v.z, v.now
	if j.State.Final() || s.Held {
		return
	}
	early, late, found := now, now, true
	if len(s.work().claims) == 0 {
		early, found = v.nextStart(s)
		late = early
	}
	_, reserved := entryOf(s).rigid.Placement()
	switch {
	case len(s.work().claims) > 0:
		j.StartEarly, j.StartLate = j.Started, j.Started
	case !found:
	case reserved || s.alive == 0 && s.Spec.Kind == job.Rigid && z.cfg.Rigid.Lines(s.width()) && z.planner.Reserved() < z.cfg.Rigid.Reserve: // its place is known, or would be
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
			if len(s.work().claims) > 0 {
				wall = s.work().claims[0].Wall()
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
	view := s.view()
	free := job.NextFree(0, s.Spec.Total, s.work().committed)
	for _, c := range z.floor.Classes() {
		if speed, ok := s.runsOn(c, free.From); ok {
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
	left := s.Spec.Total - s.work().committed.Len()
	at := max(1, min(usable, s.Spec.Parallelism))
	best := view.RunTime(left, fast) / time.Duration(at)
	if s.learned().Rate > 0 && j.RateP50 > 0 {
		best = time.Duration(quantity.MulDiv(int64(j.RateP50), left*1000, fast)) / time.Duration(at)
	}
	worst := view.RunTime(left, slow)
	if len(s.work().claims) > 1 {
		worst /= time.Duration(len(s.work().claims))
	}
	// What it has waited so far between its subjobs is likely to come again for what is left.
	if done := s.work().committed.Len(); done > 0 {
		waited := max(0, now.Sub(s.Submitted)-view.RunTime(done, fast)/time.Duration(at))
		worst += time.Duration(quantity.MulDiv(int64(waited), left, done))
	} else {
		worst += worst / 2
	}
	j.FinishEarly, j.FinishLate = early.Add(best), max(late, early).Add(max(best, worst))
}

// nextStart is the earliest instant at which a waiting job could start.
func (v *viewer) nextStart(j *Job) (early quantity.Instant, found bool) {
	if j.Spec.Kind == job.Rigid {
		p, ok := v.rigidPlace(j)
		return p.Start, ok
	}
	return v.opening(j)
}

// Negotiation is what the market has done since it came up; zero for one that does not negotiate.
func (z *Zone) Negotiation() status.Negotiation { return z.floor.Stats() }
