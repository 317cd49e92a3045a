package agents

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

const (
	// mostMissed is how many closings an agent may miss in a row before rounds no longer wait for it.
	mostMissed = 3
	// mostDoublings is how often the pause doubles after which an agent that won nothing is called again.
	mostDoublings = 5
)

// session is what is known of an external job's agent.
type session struct {
	// id of the session, 0 if none attends; missed closings in a row, and rounds in a row in which it won nothing.
	id     uint64
	missed int
	lost   int
	// round that was cleared without waiting for it, and when that would have closed: it may still show that it is prompt.
	round  uint64
	closes quantity.Instant
	// cutting is the round in which it is asked for its piece of a window, 0 if in none (mechanism sja).
	cutting uint64
	// recall is its alarm among those of jobs whose agents are called again.
	recall int
}

// Config is how a relay works.
type Config struct {
	// Self is in whose name agents are spoken to.
	Self protocol.Address
	// Retry is the first pause after which an agent that won nothing is called again, Close how long a round waits for agents.
	Retry, Close time.Duration
}

// Relay speaks with the agents of all external jobs. Invariant: attending is how many of them have an agent; a round is open until
// everybody who is waited for has answered or gone, or it closes; the first answer of the latest session counts, and no other.
type Relay struct {
	cfg   Config
	est   *index.Estimator
	index *index.Index
	stats *status.Negotiation
	// sessions of jobs that have an agent, or an alarm among the recalls.
	sessions  map[*index.Job]*session
	attending int
	// recalls are when agents that won nothing are called again.
	recalls alarm.Heap[*index.Job]
	// rounds are open, in order of their ids.
	rounds []*Round
}

// NewRelay is one without agents. It counts what it does in stats.
func NewRelay(cfg Config, e *index.Estimator, x *index.Index, stats *status.Negotiation) *Relay {
	return &Relay{cfg: cfg, est: e, index: x, stats: stats, sessions: map[*index.Job]*session{}}
}

// Attending is how many jobs have an agent.
func (d *Relay) Attending() int { return d.attending }

// Attended says whether an agent of the job is there, Session which, 0 if none.
func (d *Relay) Attended(j *index.Job) bool { return d.Session(j) != 0 }

// Session is the one of the agent that is there, 0 if none is.
func (d *Relay) Session(j *index.Job) uint64 {
	if s := d.sessions[j]; s != nil {
		return s.id
	}
	return 0
}

// Callee is a job that is asked now. It has an agent.
func (d *Relay) Callee(now quantity.Instant, j *index.Job) Callee {
	s := d.sessions[j]
	return Callee{job: j, session: s.id, asked: now, prompt: s.missed < mostMissed}
}

// Cutting says whether the job's agent is asked for a piece, StartCutting and EndCutting that it is in a round and no longer is.
func (d *Relay) Cutting(j *index.Job) bool { s := d.sessions[j]; return s != nil && s.cutting != 0 }

// StartCutting notes that the agent of a job is asked for a piece in a round.
func (d *Relay) StartCutting(j *index.Job, r *Round) { d.sessions[j].cutting = r.id }

// EndCutting notes that it is no longer.
func (d *Relay) EndCutting(j *index.Job, r *Round) {
	if s := d.sessions[j]; s != nil && s.cutting == r.id {
		s.cutting = 0
	}
}

// Attend: an agent of a job has come, or the one of this session has gone. The latest session counts; one that has gone is not
// waited for.
func (d *Relay) Attend(j *index.Job, id uint64, here bool) {
	if !j.Spec().External || !j.Active() || id == 0 {
		return
	}
	s := d.sessions[j]
	if s == nil {
		s = &session{}
		d.sessions[j] = s
	}
	switch {
	case here && id == s.id: // said again, in case it was lost
	case here:
		if s.id == 0 {
			d.attending++
		}
		d.leave(j)
		*s = session{id: id, recall: s.recall}
		d.index.Changed(j)
	case id == s.id:
		d.Leave(j)
		d.index.Invalidate(j)
	default:
		d.tidy(j, s)
	}
}

// Leave ends the session of a job, if it has one.
func (d *Relay) Leave(j *index.Job) {
	if s := d.sessions[j]; s != nil && s.id != 0 {
		d.leave(j)
		d.attending--
		*s = session{recall: s.recall}
		d.tidy(j, s)
	}
}

// tidy forgets a job's session if it holds nothing.
func (d *Relay) tidy(j *index.Job, s *session) {
	if *s == (session{}) {
		delete(d.sessions, j)
	}
}

// leave ends the waiting for an agent's answers: it has gone, or another has come in its place.
func (d *Relay) leave(j *index.Job) {
	for _, r := range d.rounds {
		if i := slices.IndexFunc(r.asked, func(c Callee) bool { return c.job == j }); i >= 0 && !r.asked[i].answered {
			if r.asked[i].prompt {
				r.waiting--
			}
			r.asked[i].answered = true // with nothing
		}
	}
}

// Wake is when the next agent is called again. Recall makes jobs answer again whose agents won nothing a while ago, and DropRecall notes
// that a job rests now, or begins anew: when that is over its agent is called in any case.
func (d *Relay) Wake() quantity.Instant { return d.recalls.Next() }

// Recall makes jobs answer again whose agents won nothing a while ago.
func (d *Relay) Recall(now quantity.Instant) {
	for j := range d.recalls.Past(now) {
		d.tidy(j, d.sessions[j])
		d.index.Changed(j)
	}
}

// DropRecall says that a job rests now, or begins anew.
func (d *Relay) DropRecall(j *index.Job) {
	if s := d.sessions[j]; s != nil {
		d.recalls.Set(&s.recall, j, quantity.Never)
		d.tidy(j, s)
	}
}

// CallAgain asks a job whose agent won nothing once more, though nothing else may happen: a message may have been lost, the agent
// may have been busy or made a mistake, or see things otherwise later. Each round without a win doubles the pause. Won ends that.
func (d *Relay) CallAgain(now quantity.Instant, j *index.Job) {
	s := d.sessions[j]
	if s == nil || s.id == 0 {
		return
	}
	pause := d.cfg.Retry << min(s.lost, mostDoublings)
	s.lost++
	if j.RestsUntil() <= now { // otherwise it is asked when it has rested
		d.recalls.Set(&s.recall, j, now.Add(pause))
	}
}

// Won notes that an agent has won something.
func (d *Relay) Won(j *index.Job) {
	if s := d.sessions[j]; s != nil {
		s.lost = 0
	}
}

// Callees returns, by name, those of some jobs with an agent that could use one of the offers.
func (d *Relay) Callees(now quantity.Instant, of []*index.Job, offers []Offer) (asked []Callee) {
	if d.attending == 0 {
		return nil
	}
	for _, j := range of {
		if !j.Spec().External || !j.Active() || j.Ineligible(now) != explain.Eligible {
			continue
		}
		if !d.Attended(j) {
			j.Counts().Add(explain.Unattended, now)
			continue
		}
		if slices.ContainsFunc(offers, func(o Offer) bool { return Suits(now, j, &o) }) {
			asked = append(asked, d.Callee(now, j))
		}
	}
	slices.SortFunc(asked, func(a, b Callee) int { return index.ByName(a.job, b.job) })
	return asked
}

// Suits reports whether an external job could run its next unit in a window, which is all that can be judged without its agent.
func Suits(now quantity.Instant, j *index.Job, o *Offer) bool {
	w, c := o.Find(), o.Slice.Class()
	if w == nil || j.Avoids(o.Slice) || c.SpeedOf(j.Spec()) == 0 || w.End().Sub(now) < j.Spec().Launch.Grace {
		return false
	}
	v := j.View()
	if v.Running >= v.Parallelism() {
		return false
	}
	for free := job.NextFree(0, j.Spec().Total, v.Committed, v.Claimed); !free.Empty(); free = job.NextFree(free.To, j.Spec().Total,
		v.Committed, v.Claimed) {
		if least := v.Needs(job.Range{From: free.From, To: free.From + 1}); least <= c.Capacity[trp.Memory] {
			return true
		}
		if j.Spec().Kind == job.Steps {
			break
		}
	}
	return false
}

// NewRound is one that nobody waits for yet. It closes at the latest at an instant.
func (d *Relay) NewRound(now quantity.Instant, id uint64, most int, until quantity.Instant) *Round {
	return &Round{id: id, closes: min(now.Add(d.cfg.Close), until), most: most, generation: d.index.Generation()}
}

// Announce opens a round for the offers that one of those asked could use, and returns the offers that are not waited for.
func (d *Relay) Announce(now quantity.Instant, r *Round, offers []Offer, asked []Callee, out *protocol.Out) (rest []Offer) {
	calls := make([]*protocol.Call, len(asked))
	for _, o := range offers {
		w, wanted := o.Find(), false
		for i := range asked {
			if j := asked[i].job; Suits(now, j, &o) {
				if calls[i] == nil {
					calls[i] = d.Call(j, r)
				}
				calls[i].Windows = append(calls[i].Windows, d.Advert(now, j, o.Slice, w))
				wanted = true
			}
		}
		if !wanted {
			rest = append(rest, o)
			continue
		}
		w.Await(r.id)
		r.offers = append(r.offers, Offer{o.Slice, o.ID, true})
	}
	for i := range asked {
		d.Send(r, asked[i], calls[i], out)
	}
	if r.waiting > 0 {
		d.rounds = append(d.rounds, r)
		return rest
	}
	// None of them answers in time: the windows are cleared now, and late answers are waited for again.
	for i := range r.offers {
		r.offers[i].Find().Await(0)
	}
	for i := range asked {
		d.PassOver(now, r, asked[i].job)
	}
	return offers
}

// Open makes a round wait for the agents that it was sent to.
func (d *Relay) Open(r *Round) { d.rounds = append(d.rounds, r) }

// Send sends a call to an agent, which is asked in a round.
func (d *Relay) Send(r *Round, c Callee, call *protocol.Call, out *protocol.Out) {
	d.stats.Calls++
	d.tell(c.job, c.session, protocol.Message{Kind: protocol.Announce, Body: call}, out)
	r.asked = append(r.asked, c)
	if c.prompt {
		r.waiting++
	}
}

// PassOver notes that a round is not waited for: an agent that answers it before it would have closed is waited for again.
func (d *Relay) PassOver(now quantity.Instant, r *Round, j *index.Job) {
	s := d.sessions[j]
	s.round, s.closes = r.id, r.closes
	d.CallAgain(now, j)
}

// Advert is a window as a job hears of it.
func (d *Relay) Advert(now quantity.Instant, j *index.Job, s *window.Slice, w *window.Window) protocol.Advert {
	offered := d.est.Within(j, s, now, w.End())
	return protocol.Advert{
		Window: w.ID(), Slice: s.Name(), Profile: s.Class().Profile, Speed: offered.Speed, Capacity: offered.Capacity,
		Start: offered.Start, End: offered.End, Open: offered.Open,
	}
}

// Call is a job's call for a round.
func (d *Relay) Call(j *index.Job, r *Round) *protocol.Call {
	v := j.View()
	c := &protocol.Call{
		Round: r.id, Closes: r.closes, Most: r.most, First: v.Resume.Zero(),
		Left:   v.Left(),
		Memory: max(trp.Unscaled, v.Learned.MemoryScale), Pace: d.est.Slowdown(j, &v),
	}
	total := j.Spec().Total
	free := job.NextFree(0, total, v.Committed, v.Claimed)
	for ; !free.Empty() && len(c.Free) < protocol.MaxFree; free = job.NextFree(free.To, total, v.Committed, v.Claimed) {
		c.Free = append(c.Free, free)
	}
	return c
}

// tell sends something to an agent.
func (d *Relay) tell(j *index.Job, session uint64, m protocol.Message, out *protocol.Out) {
	m.To, m.Job, m.Session = j.Agent(), j.Name(), session
	m.From = d.cfg.Self
	out.Effects = append(out.Effects, m)
}

// Tell queues a notice about a round for an agent.
func (d *Relay) Tell(j *index.Job, session, round uint64, n protocol.Notice, out *protocol.Out) {
	d.tell(j, session, protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: round, Notices: []protocol.Notice{n}}}, out)
}

// TellEnd tells an external job's agent how a subjob ended, so that it can learn.
func (d *Relay) TellEnd(j *index.Job, c *protocol.Claim, r *job.Result, done job.Range, out *protocol.Out) {
	if id := d.Session(j); id != 0 {
		d.Tell(j, id, c.Plan.Round, protocol.Notice{
			Kind: protocol.Concluded, Window: c.Plan.Window, Text: r.Detail, Token: c.Token, Range: done, Outcome: r.Outcome, Ran: r.Ran(),
			Peak: r.Peak,
		}, out)
	}
}

// Answer handles an agent's answer. The first one to a round counts, and only what the round allows of it.
func (d *Relay) Answer(now quantity.Instant, j *index.Job, in *protocol.Message, p *protocol.Proposal) {
	s := d.sessions[j]
	if in.Session == 0 || s == nil || in.Session != s.id {
		return
	}
	i := slices.IndexFunc(d.rounds, func(r *Round) bool { return r.id == p.Round })
	if i < 0 { // closed
		if p.Round == s.round && now < s.closes {
			s.missed, s.round = 0, 0
			d.index.Changed(j)
		}
		return
	}
	r := d.rounds[i]
	k := slices.IndexFunc(r.asked, func(c Callee) bool { return c.job == j && c.session == in.Session })
	if k < 0 || r.asked[k].answered {
		return
	}
	c := &r.asked[k]
	c.answered, c.said, c.variants = true, true, p.Variants
	if most := r.most * len(r.offers); len(c.variants) > most {
		d.stats.Denied += int64(len(c.variants) - most)
		c.variants = c.variants[:most]
	}
	if c.prompt {
		r.waiting--
	}
	d.stats.Answers++
	s.missed = 0
}

// Over takes out a round that is complete or has closed, with its answers in order; nil if none is. Next is when the next one closes.
func (d *Relay) Over(now quantity.Instant) *Round {
	i := slices.IndexFunc(d.rounds, func(r *Round) bool { return r.waiting == 0 || r.closes <= now })
	if i < 0 {
		return nil
	}
	r := d.rounds[i]
	d.rounds = slices.Delete(d.rounds, i, i+1)
	return r
}

// Next is when the next round closes.
func (d *Relay) Next() quantity.Instant {
	next := quantity.Never
	for _, r := range d.rounds {
		next = min(next, r.closes)
	}
	return next
}

// TakeIn puts the answers to a round that is over in order, and counts who did not answer.
func (d *Relay) TakeIn(now quantity.Instant, r *Round) {
	windows := make([]uint64, len(r.offers))
	for i := range r.offers {
		windows[i] = r.offers[i].ID
	}
	slices.Sort(windows)
	for i := range r.asked {
		c := &r.asked[i]
		if !c.answered {
			if s := d.sessions[c.job]; s != nil {
				s.missed++
			}
			d.stats.Missed++
			c.job.Counts().Add(explain.Unanswered, now)
		}
		// The order in which an agent writes its variants is nobody's advantage.
		c.variants = slices.Clone(c.variants)
		slices.SortFunc(c.variants, func(a, b protocol.Variant) int {
			return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.ID, b.ID))
		})
		for k := range c.variants {
			if _, announced := slices.BinarySearch(windows, c.variants[k].Window); !announced {
				d.Deny(c, &c.variants[k], "no such window is in this round")
			}
		}
	}
}

// Conclude tells those asked in a round what became of their answers, and has who won nothing called again.
func (d *Relay) Conclude(now quantity.Instant, r *Round, out *protocol.Out) {
	for i := range r.asked {
		c := &r.asked[i]
		if c.won {
			d.Won(c.job)
		} else {
			d.CallAgain(now, c.job)
		}
		d.TellNotices(r, c, out)
	}
}

// TellNotices tells an agent what became of its answer to a round.
func (d *Relay) TellNotices(r *Round, c *Callee, out *protocol.Out) {
	if len(c.notices) > 0 {
		slices.SortStableFunc(c.notices, func(a, b protocol.Notice) int { return cmp.Compare(a.Variant, b.Variant) })
		d.tell(c.job, c.session, protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: r.id, Notices: c.notices}}, out)
	}
}

// Deny has an agent told that a variant breaks a rule.
func (d *Relay) Deny(c *Callee, v *protocol.Variant, why string) {
	d.stats.Denied++
	c.Note(protocol.Notice{Kind: protocol.Denied, Window: v.Window, Variant: v.ID, Text: why})
}

// Gone has those told who bid for a window that is no longer there.
func (d *Relay) Gone(o *Offer, r *Round) {
	for i := range r.asked {
		c := &r.asked[i]
		variants := c.Of(o.ID)
		for k := range variants {
			d.Deny(c, &variants[k], "the window is gone: something was reserved there, or its node is")
		}
	}
}

// Meanwhile says what keeps a job from being sold what its agent answers: it may have been paused, cancelled or served in other
// rounds while this one was open. Empty if nothing does.
func Meanwhile(now quantity.Instant, j *index.Job) string {
	if !j.Active() {
		return "the job is over"
	}
	why := j.Ineligible(now)
	if why == explain.Eligible {
		return ""
	}
	j.Counts().Add(why, now)
	return j.Sentence(why)
}
