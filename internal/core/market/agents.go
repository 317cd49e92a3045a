package market

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// agent is what is known of an external job's agent.
type agent struct {
	// session, 0 if none attends; missed closings in a row, and rounds in a row in which it won nothing.
	session      uint64
	missed       int
	unsuccessful int
	// round that was cleared without waiting for it, and when that would have closed: it may still show that it is prompt.
	round  uint64
	closes quantity.Instant
	// cutting is the round in which it is asked for its piece of a window, 0 if in none (mechanism sja).
	cutting uint64
	// recall is its alarm among those of jobs whose agents are called again.
	recall int
}

// recall has the jobs answer again whose agents won nothing a while ago.
func (f *Floor) recall(now quantity.Instant) {
	for {
		j, ok := f.recalls.Due(now)
		if !ok {
			return
		}
		f.Changed(j)
	}
}

// DropRecall says that a job rests now, or begins anew: when that is over its agent is called in any case.
func (f *Floor) DropRecall(j *Job) {
	if j.agent != nil {
		f.recalls.Set(&j.agent.recall, j, quantity.Never)
	}
}

// patience is how many closings an agent may miss in a row before rounds no longer wait for it.
const patience = 3

// mostPatience is how often the pause doubles after which an agent that won nothing is called again.
const mostPatience = 5

// callees are the external jobs with an agent that could use one of the offers, by id.
func (f *Floor) callees(now quantity.Instant, offers []offer) (asked []caller) {
	if f.attending == 0 {
		return nil
	}
	full := slices.ContainsFunc(offers, func(o offer) bool { return o.full })
	list := f.fresh.List()
	if full {
		list = f.unindexed
	}
	for _, j := range list {
		if !j.Spec().External || j.active == 0 || j.Ineligible(now) != Eligible {
			continue
		}
		if !j.Attended() {
			j.counts.add(Unattended, now)
			continue
		}
		if slices.ContainsFunc(offers, func(o offer) bool { return f.suits(now, j, &o) }) {
			asked = append(asked, caller{job: j, session: j.agent.session, asked: now, prompt: j.agent.missed < patience})
		}
	}
	slices.SortFunc(asked, func(a, b caller) int { return byName(a.job, b.job) })
	return asked
}

// suits says whether an external job could run its next unit in a window, which is all that can be said without its agent.
func (f *Floor) suits(now quantity.Instant, j *Job, o *offer) bool {
	w, c := o.find(), o.slice.class
	if w == nil || j.Avoids(o.slice) || c.SpeedOf(j.Spec()) == 0 || w.end.Sub(now) < j.Spec().Launch.Grace {
		return false
	}
	v := j.View()
	if v.Running >= j.Spec().Parallelism {
		return false
	}
	for free := job.NextFree(0, j.Spec().Total, v.Committed, v.Claimed); !free.Empty(); free = job.NextFree(free.To, j.Spec().Total, v.Committed, v.Claimed) {
		if least := v.Needs(job.Range{From: free.From, To: free.From + 1}); least <= c.Capacity[trp.Memory] {
			return true
		}
		if j.Spec().Kind == job.Steps {
			break
		}
	}
	return false
}

// announceTo opens a round for the offers that one of those asked could use, and returns the offers that none could.
func (f *Floor) announceTo(now quantity.Instant, offers []offer, asked []caller, out *protocol.Out) (rest []offer) {
	f.nextRound++
	r := &round{id: f.nextRound, closes: now.Add(f.cfg.Close), asked: asked, generation: f.generation, most: f.cfg.Market.Variants}
	calls := make([]*protocol.Call, len(asked))
	for _, o := range offers {
		w, wanted := o.find(), false
		for i := range asked {
			if j := asked[i].job; f.suits(now, j, &o) {
				if calls[i] == nil {
					calls[i] = f.call(j, r)
				}
				calls[i].Windows = append(calls[i].Windows, f.advert(j, o.slice, w, now))
				wanted = true
			}
		}
		if !wanted {
			rest = append(rest, o)
			continue
		}
		w.round = r.id
		r.offers = append(r.offers, offer{o.slice, o.window, true})
	}
	for i := range asked {
		if asked[i].prompt {
			r.waiting++
		}
		f.stats.Calls++
		f.tell(&asked[i], protocol.Message{Kind: protocol.Announce, Body: calls[i]}, out)
	}
	if r.waiting > 0 {
		f.rounds = append(f.rounds, r)
		return rest
	}
	// None of them answers in time: the windows are cleared now, and who does is waited for again.
	for i := range r.offers {
		r.offers[i].find().round = 0
	}
	for i := range asked {
		asked[i].job.agent.round, asked[i].job.agent.closes = r.id, r.closes
		f.callAgain(now, asked[i].job)
	}
	return offers
}

// advert is a window as a job hears of it.
func (f *Floor) advert(j *Job, s *Slice, w *window, now quantity.Instant) protocol.Advert {
	offered := f.Within(j, s, now, w.end)
	return protocol.Advert{
		Window: w.id, Slice: s.Name(), Profile: s.class.Profile, Speed: offered.Speed, Capacity: offered.Capacity,
		Start: offered.Start, End: offered.End, Open: offered.Open,
	}
}

// callAgain asks a job whose agent won nothing once more, though nothing else may happen: a message may have been lost, the agent
// may have been busy or made a mistake, or answer otherwise later. Each unsuccessful round doubles the pause.
func (f *Floor) callAgain(now quantity.Instant, j *Job) {
	if !j.Attended() {
		return
	}
	pause := f.cfg.Retry << min(j.agent.unsuccessful, mostPatience)
	j.agent.unsuccessful++
	if j.RestsUntil() <= now { // otherwise it is asked when it has rested
		f.recalls.Set(&j.agent.recall, j, now.Add(pause))
	}
}

// call is what a job is told of a round.
func (f *Floor) call(j *Job, r *round) *protocol.Call {
	v := j.View()
	c := &protocol.Call{
		Round: r.id, Closes: r.closes, Most: r.most, First: v.Resume.Zero(),
		Left:   v.Left(),
		Memory: max(trp.Unscaled, v.Learned.MemoryScale), Pace: f.slowdown(j, &v),
	}
	for free := job.NextFree(0, j.Spec().Total, v.Committed, v.Claimed); !free.Empty() && len(c.Free) < protocol.MaxFree; free = job.NextFree(free.To, j.Spec().Total, v.Committed, v.Claimed) {
		c.Free = append(c.Free, free)
	}
	return c
}

// tell sends something to the agent that was asked.
func (f *Floor) tell(c *caller, m protocol.Message, out *protocol.Out) {
	m.To, m.Job, m.Session = c.job.Agent(), c.job.Name(), c.session
	m.From = f.cfg.Self
	out.Effects = append(out.Effects, m)
}

// Attend: an agent of a job has come, or the one of this session has gone. The latest session counts; one that has gone is not
// waited for.
func (f *Floor) Attend(j *Job, session uint64, here bool) {
	if !j.Spec().External || j.active == 0 || session == 0 {
		return
	}
	if j.agent == nil {
		j.agent = &agent{}
	}
	switch {
	case here && session == j.agent.session: // said again, in case it was lost
	case here:
		if j.agent.session == 0 {
			f.attending++
		}
		f.hangUp(j)
		*j.agent = agent{session: session, recall: j.agent.recall}
		f.Changed(j)
	case session == j.agent.session:
		f.hangUp(j)
		f.attending--
		*j.agent = agent{recall: j.agent.recall}
		f.InvalidateJob(j)
	}
}

// Attended says whether an agent of the job is there.
func (j *Job) Attended() bool { return j.agent != nil && j.agent.session != 0 }

// hangUp ends the waiting for an agent's answers: it has gone, or another has come in its place.
func (f *Floor) hangUp(j *Job) {
	for _, r := range f.rounds {
		if i := slices.IndexFunc(r.asked, func(c caller) bool { return c.job == j }); i >= 0 && !r.asked[i].answered {
			if r.asked[i].prompt {
				r.waiting--
			}
			r.asked[i].answered = true // with nothing
		}
	}
}

// Answer takes in an agent's answer. The first one to a round counts, and only what Most allows of it.
func (f *Floor) Answer(now quantity.Instant, j *Job, in *protocol.Message, p *protocol.Proposal) {
	if in.Session == 0 || j.agent == nil || in.Session != j.agent.session {
		return
	}
	i := slices.IndexFunc(f.rounds, func(r *round) bool { return r.id == p.Round })
	if i < 0 { // closed
		if p.Round == j.agent.round && now < j.agent.closes {
			j.agent.missed, j.agent.round = 0, 0
			f.Changed(j)
		}
		return
	}
	r := f.rounds[i]
	k := slices.IndexFunc(r.asked, func(c caller) bool { return c.job == j && c.session == in.Session })
	if k < 0 || r.asked[k].answered {
		return
	}
	c := &r.asked[k]
	c.answered, c.said, c.variants = true, true, p.Variants
	if most := r.most * len(r.offers); len(c.variants) > most {
		f.stats.Denied += int64(len(c.variants) - most)
		c.variants = c.variants[:most]
	}
	if c.prompt {
		r.waiting--
	}
	f.stats.Answers++
	j.agent.missed = 0
}

// TellEnd tells an external job's agent how a subjob ended, so that it can learn.
func (f *Floor) TellEnd(j *Job, c *protocol.Claim, r *job.Result, done job.Range, out *protocol.Out) {
	if !j.Attended() {
		return
	}
	f.tell(&caller{job: j, session: j.agent.session}, protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: c.Plan.Round, Notices: []protocol.Notice{{
		Kind: protocol.Concluded, Window: c.Plan.Window, Text: r.Detail, Token: c.Token, Range: done, Outcome: r.Outcome, Ran: r.Ran(), Peak: r.Peak,
	}}}}, out)
}
