package view

import (
	"slices"

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
func (v *View) Brief(now quantity.Instant, id job.ID) (status.Job, bool) {
	j := v.home.Book().Job(id)
	if j == nil {
		return status.Job{}, false
	}
	return v.look(now).show(j), true
}

// Job shows one job with its subjobs.
func (v *View) Job(now quantity.Instant, id job.ID) (status.Job, bool) {
	j := v.home.Book().Job(id)
	if j == nil {
		return status.Job{}, false
	}
	return v.detail(now, j), true
}

func (v *View) detail(now quantity.Instant, s *home.Job) status.Job {
	j := v.look(now).show(s)
	j.Hints, j.Published, j.Checkpoints = hints(s), published(s), checkpoints(s)
	past := s.History().Past()
	j.HistoryDropped = max(0, len(past)-historyShown)
	j.History = settled(s, past[j.HistoryDropped:], len(s.Claims()))
	for i := range s.Claims() {
		c := &s.Claims()[i]
		sub := showClaim(c)
		sub.Running, sub.Outcome = true, "starting"
		st := s.ClaimSet().State(c.Token)
		if t := st.Running(); t != 0 {
			sub.Start, sub.Outcome = t, "running"
		} else if c.Start > now {
			sub.Outcome = "sold"
		}
		sub.Progress = st.Reported(c)
		j.History = append(j.History, sub)
	}
	byToken := func(a, b status.Subjob) int { return a.Token.Compare(b.Token) }
	if !slices.IsSortedFunc(j.History, byToken) { // only subjobs that ran beside each other may be in another order
		slices.SortStableFunc(j.History, byToken)
	}
	return j
}

// Older shows the subjobs that Job leaves out, the last of them before an index (status.Job.HistoryDropped), and the life of the job.
func (v *View) Older(id job.ID, before int) (list []status.Subjob, life job.Generation, ok bool) {
	s := v.home.Book().Job(id)
	if s == nil {
		return nil, 0, false
	}
	past := s.History().Past()
	before = max(0, min(before, len(past)))
	return settled(s, past[max(0, before-historyShown):before], 0), s.Generation, true
}

// settled shows subjobs that are over, with room for more.
func settled(s *home.Job, past []protocol.Past, more int) []status.Subjob {
	list := make([]status.Subjob, 0, len(past)+more)
	for i := range past {
		p := &past[i]
		sub := showClaim(&p.Claim)
		sub.Committed, sub.Start, sub.End, sub.Peak = p.Committed, p.RealStart, p.RealEnd, p.Peak[trp.Memory]
		sub.Outcome, sub.Detail, sub.Prepare, sub.Waited = p.Outcome.String(), p.Detail, p.Spent.Prepare, p.Spent.Waited
		sub.LeftNothing, sub.Startup, sub.Stayed = p.LeftNothing, p.Spent.Startup, p.Spent.Stayed
		if p.Skipped {
			sub.Outcome = status.Skipped
		}
		if _, publishing := s.Output().Find(p.Token); publishing {
			sub.Outcome, sub.Committed = status.Publishing, job.Range{}
		}
		list = append(list, sub)
	}
	return list
}

// published are the committed units whose output is in its place. Units that were given up have none.
func published(j *home.Job) (all job.Ranges) {
	all = slices.Clone(j.Progress().Committed())
	for _, r := range j.Progress().Skipped() {
		all = all.Remove(r)
	}
	list := j.Output().List()
	for i := range list {
		all = all.Remove(list[i].Range)
	}
	return all
}

// checkpoints are the subjobs whose checkpoints a subjob may still start from.
func checkpoints(j *home.Job) (all []job.Token) {
	if t := j.Progress().Resume(); !t.Zero() {
		all = append(all, t)
	}
	for i := range j.Claims() {
		if t := j.Claims()[i].Plan.Resume; !t.Zero() && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// awaitedSubjobs is how many committed subjobs are not published: the members of a gang, which have one range, are one.
func awaitedSubjobs(j *home.Job) int {
	ranges := map[job.Range]bool{}
	for _, p := range j.Output().List() {
		ranges[p.Range] = true
	}
	return len(ranges)
}

// began is when the first subjob began, of those that run too; 0 if none has.
func began(j *home.Job) quantity.Instant {
	ended, running := j.History().Started(), j.ClaimSet().Began()
	if ended != 0 && (running == 0 || ended < running) {
		return ended
	}
	return running
}

func showClaim(c *protocol.Claim) status.Subjob {
	sub := status.Subjob{
		Token: c.Token, Slice: c.Slice, Slices: slicesOf(c), Members: c.Members, Window: c.Plan.Window, Range: c.Range,
		PlannedStart: c.Start, PlannedEnd: c.End,
		Predicted: c.Demand[trp.Memory],
	}
	if c.Bid != nil {
		bid := *c.Bid // what is shown outlives the step
		sub.Bid = &bid
	}
	return sub
}

// slicesOf are all slices of a claim.
func slicesOf(c *protocol.Claim) []job.SliceID {
	return append([]job.SliceID{c.Slice}, c.Also...)
}

// ahead says whether all that a job was sold is yet to begin, and which of it begins first.
func ahead(now quantity.Instant, j *home.Job) (first *protocol.Claim) {
	for i := range j.Claims() {
		c := &j.Claims()[i]
		if c.Start <= now || j.ClaimSet().State(c.Token).Running() != 0 {
			return nil
		}
		if first == nil || c.Start < first.Start {
			first = c
		}
	}
	return first
}

// shownState is a job's state as people see it: what is sold and yet to begin does not run.
func shownState(now quantity.Instant, j *home.Job) job.State {
	state := j.Phase()
	if state == job.Running && ahead(now, j) != nil {
		if state = job.Waiting; j.Paused {
			state = job.Paused
		}
	}
	return state
}

// show is a job without its subjobs.
func (l *look) show(s *home.Job) status.Job {
	v, now := l.v, l.now
	j := status.Job{
		Name: s.ID, Generation: s.Generation, Queue: s.Queue().Name, Kind: s.Spec.Kind, Saves: s.Spec.Saves, Priority: s.Spec.Priority,
		State: shownState(now, s), Reason: v.why(now, s),
		Progress: s.Progress().Committed().Len() - s.Output().Units(), Skipped: s.Progress().Skipped().Len(),
		Unit:    s.Spec.Unit,
		Running: len(s.Claims()), Submitted: s.Submitted, Started: s.History().Started(), Ended: s.Ending().Ended(),
		MemoryScale: s.Learned().MemoryScale, Spec: s.Spec, Profile: s.Lessons().Profile(s.Spec.Theta),
	}
	j.Total, _ = s.Progress().Length(s.Spec)
	j.Lost, j.Subjobs = s.History().Fruitless(), len(s.History().Past())-s.History().Fruitless()-awaitedSubjobs(s)
	if j.State.Final() {
		j.Hints = hints(s)
	}
	for i := range s.Claims() {
		c := &s.Claims()[i]
		for _, id := range slicesOf(c) {
			if !slices.Contains(j.Slices, id) { // two of its subjobs may follow each other there
				j.Slices = append(j.Slices, id)
			}
		}
		j.Reported += s.ClaimSet().State(c.Token).Reported(c) - c.Range.From
	}
	started := began(s)
	j.Started = started
	switch {
	case started != 0:
		j.Wait = max(0, started.Sub(s.Submitted))
	case s.Ending().Ended() != 0:
		j.Wait = max(0, s.Ending().Ended().Sub(s.Submitted))
	default:
		j.Wait = max(0, now.Sub(s.Submitted))
	}
	view := s.View()
	j.Measuring = view.Measures() && !j.State.Final()
	j.Prepare, j.PrepareSeen = view.Prepare(), s.Learned().Prepare > 0 && s.Spec.Kind != job.Rigid
	if rates := slices.Sorted(slices.Values(s.Learned().Rates)); len(rates) > 0 {
		j.RateP50, j.RateP95 = rates[len(rates)/2], s.Learned().Rate
	}
	if v.cfg.Trust != nil {
		j.Trust, j.Spread = v.trusted(&s.Learned().Trust), s.Learned().Spread
	}
	l.estimate(s, &j)
	return j
}
