package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// continuations lets running subjobs bid for the window that follows their own (docs/ARCHITECTURE.md, windows): of the jobs that
// asked for it, and of rigid jobs whose overrun extends. It returns when to look again.
func (z *Zone) continuations(now quantity.Instant, out *protocol.Out) quantity.Instant {
	wake := quantity.Never
	for _, j := range z.due(&z.continuing, now) {
		for i := range j.work().leases {
			l := &j.work().leases[i]
			c := &j.work().claims[j.claim(l.token)]
			if j.bidsAt(c, l) > now {
				continue
			}
			l.tried = c.End
			if j.extends() {
				z.overrun(now, j, c, l, out)
			} else {
				z.continueInto(now, j, c, l, out)
			}
			if l.ask != 0 {
				wake = min(wake, now.Add(z.cfg.Retry))
			}
		}
		z.stir(j)
	}
	z.rearm()
	return min(wake, z.continuing.Next())
}

// extends says whether a job that reaches its walltime goes on.
func (j *Job) extends() bool {
	return j.Spec.Kind == job.Rigid && j.Spec.OnOverrun == job.OverrunExtends
}

// bidsAt is when a running subjob bids for the window that follows its own: late enough to judge the present queue, early
// enough for the program to see its new end. Never if it does not; an external job's agent plans its subjobs itself.
func (j *Job) bidsAt(c *protocol.Claim, l *lease) quantity.Instant {
	if !j.extends() && (!j.Spec.Continue || j.Spec.External) || l.running == 0 || l.ask != 0 || l.tried == c.End || c.End == quantity.Never || j.fate().dropping.State != job.Waiting || len(c.Also) > 0 {
		return quantity.Never
	}
	return c.End.Add(-j.Spec.Launch.Grace - max(2*time.Second, c.Wall()/4))
}

// following is the free time that begins where a claim ends, empty if there is none.
func (z *Zone) following(now quantity.Instant, c *protocol.Claim) (*slice, protocol.Gap) {
	if s := z.slice(c.Slice); s != nil {
		for _, g := range z.floor.Unsold(&s.floor, now) {
			if max(g.Start, now) == c.End && g.End > now {
				return s, g
			}
		}
	}
	return nil, protocol.Gap{}
}

// overrun moves a rigid job's end by a quarter of its walltime, as far as nothing else is reserved behind it.
func (z *Zone) overrun(now quantity.Instant, j *Job, c *protocol.Claim, l *lease, out *protocol.Out) {
	_, g := z.following(now, c)
	if end := min(c.End.Add(max(10*time.Second, j.Spec.WalltimeAt(c.Speed)/4)), g.End); end > c.End {
		z.extend(now, j, c, l, c.Range, end, out)
	}
}

// continueInto gives the running job the window behind its own if the policy prefers it to every waiting job that could
// use that window.
func (z *Zone) continueInto(now quantity.Instant, j *Job, c *protocol.Claim, l *lease, out *protocol.Out) {
	s, g := z.following(now, c)
	if s == nil {
		return
	}
	v := j.view()
	v.Continues, v.Running = c.Range, v.Running-1
	p, r := atomizer.Fit(&v, z.floor.Window(&entryOf(j).floor, s.floor.Class(), c.End, g.End))
	// The grace is already at the end of the lease; it moves along.
	if r.Why != atomizer.Interested || z.floor.Elsewhere(now, z.waiting(), &entryOf(j).floor, c) {
		return
	}
	if z.floor.Displaces(now, &entryOf(j).floor, &s.floor, c, g.End, &p) != nil {
		return
	}
	z.extend(now, j, c, l, job.Range{From: c.Range.From, To: p.Range.To}, c.End.Add(p.Wall), out)
}

// extend claims the longer range first, then asks the node to move the lease's end: dying in between costs nothing but
// the chance.
func (z *Zone) extend(now quantity.Instant, j *Job, c *protocol.Claim, l *lease, r job.Range, end quantity.Instant, out *protocol.Out) {
	l.before = *c
	z.fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: j.ID, Token: c.Token, Range: r, End: end})
	l.ask, l.sent = z.newAsk(), now
	z.sendExtend(j, c, l, out)
}

// sendExtend is repeated until the node answers, and idempotent by what it asks for.
func (z *Zone) sendExtend(j *Job, c *protocol.Claim, l *lease, out *protocol.Out) {
	z.send(out, protocol.Message{
		Kind: protocol.Extend, To: nodeOf(c), Ask: l.ask, Token: c.Token, Job: j.ID, Slice: c.Slice, Range: c.Range, End: c.End,
	})
}
