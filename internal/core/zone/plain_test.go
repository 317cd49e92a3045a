package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Plain makes a zone do after every input what the definition says and nothing less: every slice, every claim and every
// waiting job is looked at, and what a queue has pledged is added up from its asks. It is the oracle of what looks only at changes.
func Plain(z *Zone) {
	p := &plain{z: z, rested: map[*Job]quantity.Instant{}, closed: map[*Job]plainClosed{}}
	z.pass = p.pass
	z.floor = market.NewFloor(z.floorConfig(), plainSeller{(*seller)(z)})
	z.floor.Plainly()
	z.planner = backfill.New(z.plannerConfig(), z.floor, (*placer)(z))
}

// plainSeller adds up what every queue's asks will take.
type plainSeller struct{ *seller }

func (p plainSeller) Purse(now quantity.Instant, j *market.Job) (has, full int64) {
	q := jobOf(j).q
	q.pledged = 0
	for _, a := range p.asks {
		if a.piece.Bid != nil && a.job.q == q {
			q.pledged += a.piece.Bid.Price
		}
	}
	return p.seller.Purse(now, j)
}

type plain struct {
	z      *Zone
	rested map[*Job]quantity.Instant
	closed map[*Job]plainClosed
}

// plainClosed is how often the gate was told of a verdict, and when it is told again.
type plainClosed struct {
	at    quantity.Instant
	tries int
}

// busy are the jobs with claims, by id.
func (p *plain) busy() []*Job {
	return slices.SortedFunc(slices.Values(p.z.busy), func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
}

func (p *plain) live() []*Job {
	return slices.SortedFunc(slices.Values(p.z.live), func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
}

func (p *plain) pass(now quantity.Instant, out *protocol.Out) {
	z := p.z
	wake := p.overdue(now, out)
	wake = min(wake, p.continuations(now, out))
	wake = min(wake, p.market(now, out), p.refusals(now))
	z.wakeAt(now, wake, out)
}

func (p *plain) overdue(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, j := range p.live() {
		if j.deadline() > now {
			wake = min(wake, j.deadline())
		} else if j.fate().dropping.State == job.Waiting {
			z.end(now, j, job.Verdict{State: job.Expired, Reason: "its deadline passed before it finished"}, out)
		}
	}
	for _, j := range p.busy() {
		z.repeat(now, j, out)
		for i := range j.work().leases {
			l := &j.work().leases[i]
			wake = min(wake, z.givenUp(&j.work().claims[j.claim(l.token)]))
			if !l.settled(j) {
				wake = min(wake, l.sent.Add(z.cfg.Retry))
			}
		}
	}
	for _, j := range z.all() {
		if !j.fate().verdict.State.Final() || j.fate().acked {
			delete(p.closed, j)
			continue
		}
		c := p.closed[j]
		if c.at <= now {
			c = plainClosed{now.Add(z.cfg.Retry << min(c.tries, outbox.Doublings)), c.tries + 1}
			p.closed[j] = c
			z.send(out, protocol.Message{Kind: protocol.Closed, To: protocol.Address{Role: protocol.Gate}, Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Verdict: j.fate().verdict, At: j.fate().ended})
		}
		wake = min(wake, c.at)
	}
	for _, j := range z.all() {
		if len(j.work().unpublished) == 0 {
			continue
		}
		if z.publishAgain(j.work()) <= now {
			z.askPublications(now, j, out)
		}
		wake = min(wake, z.publishAgain(j.work()))
	}
	if z.cfg.Market != nil { // an agent that won nothing is called again too
		for _, j := range z.due(&z.resting, now) {
			z.changed(j)
		}
		wake = min(wake, z.resting.Next())
	} else {
		wake = min(wake, p.rest(now))
	}
	for _, j := range z.all() {
		if slices.ContainsFunc(j.met().backoff.avoided, func(a avoided) bool { return a.until <= now }) {
			z.forgive(now, j)
		}
	}
	return wake
}

// rest has the jobs whose pause is over answer again, and returns when the next one's is.
func (p *plain) rest(now quantity.Instant) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, j := range z.all() {
		switch {
		case j.met().notBefore == p.rested[j]:
		case j.met().notBefore <= now:
			p.rested[j] = j.met().notBefore
			z.changed(j)
		default:
			wake = min(wake, j.met().notBefore)
		}
	}
	return wake
}

// refusals is when what the market's own step has noted of refusals is to be looked at.
func (p *plain) refusals(now quantity.Instant) quantity.Instant {
	wake := quantity.Never
	for _, j := range p.live() {
		if j.met().notBefore > now {
			wake = min(wake, j.met().notBefore)
		}
		for _, a := range j.met().backoff.avoided {
			wake = min(wake, a.until)
		}
	}
	return wake
}

func (p *plain) continuations(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, j := range p.busy() {
		for i := range j.work().leases {
			l := &j.work().leases[i]
			c := &j.work().claims[j.claim(l.token)]
			at := j.bidsAt(c, l)
			if at > now {
				wake = min(wake, at)
				continue
			}
			l.tried = c.End
			p.stirSlices()
			if s, g := z.following(now, c); s != nil && j.extends() {
				z.overrun(now, j, c, l, out)
			} else if s != nil {
				p.continueInto(now, j, c, l, s, g, out)
			}
			if l.ask != 0 {
				wake = min(wake, now.Add(z.cfg.Retry))
			}
		}
	}
	return wake
}

func (p *plain) continueInto(now quantity.Instant, j *Job, c *protocol.Claim, l *lease, s *slice, g protocol.Gap, out *protocol.Out) {
	z, v := p.z, j.view()
	v.Continues, v.Running = c.Range, v.Running-1
	mine, r := atomizer.Fit(&v, z.floor.Window(&entryOf(j).floor, s.floor.Class(), c.End, g.End))
	if r.Why != atomizer.Interested {
		return
	}
	if z.floor.Elsewhere(now, z.waiting(), &entryOf(j).floor, c) || z.floor.Displaces(now, &entryOf(j).floor, &s.floor, c, g.End, &mine) != nil {
		return
	}
	z.extend(now, j, c, l, job.Range{From: c.Range.From, To: mine.Range.To}, c.End.Add(mine.Wall), out)
}

// stirSlices has every slice's free time computed anew, from all claims, asks and plans there are.
func (p *plain) stirSlices() {
	z := p.z
	for s := range z.offeredSlices() {
		z.floor.InvalidateSlice(&s.floor)
		s.sold, s.asks = nil, nil
		for _, j := range z.busy {
			for i := range j.work().claims {
				if c := &j.work().claims[i]; c.Slice == s.id || slices.Contains(c.Also, s.id) {
					s.sold = append(s.sold, sale{c.Token, j, c.Start, c.End})
				}
			}
		}
		for _, a := range z.asks {
			if a.slice == s || slices.Contains(a.also, s.id) {
				s.asks = append(s.asks, a)
			}
		}
	}
}

func (p *plain) market(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z := p.z
	z.lapse(now)
	stale := false
	for s := range z.offeredSlices() {
		stale = stale || s.stale > now
	}
	var rigid []*backfill.Job
	for _, j := range p.live() {
		if entryOf(j).rigid != nil {
			rigid = append(rigid, entryOf(j).rigid)
		}
	}
	z.planner.Anew(rigid)
	z.keepCaps(now)
	p.stirSlices()
	wake := quantity.Never
	if !stale {
		wake = z.planner.Plan(now, out)
	}
	p.stirSlices()
	return min(wake, z.floor.Sell(now, z.waiting(), out), p.unanswered(now))
}

// unanswered is when the first message that nobody has answered is to be looked at again.
func (p *plain) unanswered(now quantity.Instant) quantity.Instant {
	z, wake := p.z, quantity.Never
	for _, a := range z.asks {
		wake = min(wake, a.expires)
	}
	wake = min(wake, z.planner.Unanswered())
	for s := range z.offeredSlices() {
		if s.stale > now {
			wake = min(wake, s.stale)
		}
	}
	return wake
}
