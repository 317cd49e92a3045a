package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// continuations lets running subjobs bid for the window that follows their own (DESIGN, continuation): of the jobs that
// asked for it, and of rigid jobs whose overrun extends. It returns when to look again.
func (z *Zone) continuations(now quantity.Instant, out *protocol.Out) quantity.Instant {
	wake := quantity.Never
	for _, st := range z.busy {
		for i := range st.leases {
			l := &st.leases[i]
			c := &st.Claims[st.claim(l.token)]
			extends := st.Spec.Kind == job.Rigid && st.Spec.OnOverrun == job.OverrunExtends
			if !extends && !st.Spec.Continue || l.running == 0 || l.ask != 0 || l.tried == c.End || c.End == quantity.Never || st.dropping.State != job.Waiting || len(c.Also) > 0 {
				continue
			}
			// Late enough to judge the present queue, early enough for the program to see its new end.
			at := c.End.Add(-st.Spec.Launch.Grace - max(2*time.Second, c.Wall()/4))
			if at > now {
				wake = min(wake, at)
				continue
			}
			l.tried = c.End
			if extends {
				z.overrun(now, st, c, l, out)
			} else {
				z.continueInto(now, st, c, l, out)
			}
			if l.ask != 0 {
				wake = min(wake, now.Add(z.cfg.Retry))
			}
		}
	}
	return wake
}

// following is the free time that begins where a claim ends, empty if there is none.
func (z *Zone) following(now quantity.Instant, c *protocol.Claim) (*slice, protocol.Gap) {
	for _, s := range z.slices {
		if s.id != c.Slice {
			continue
		}
		for _, g := range z.free(s, now, "", nil) {
			if g.Start == c.End {
				return s, g
			}
		}
	}
	return nil, protocol.Gap{}
}

// overrun moves a rigid job's end by a quarter of its walltime, as far as nothing else is reserved behind it.
func (z *Zone) overrun(now quantity.Instant, st *state, c *protocol.Claim, l *lease, out *protocol.Out) {
	_, g := z.following(now, c)
	if end := min(c.End.Add(max(10*time.Second, st.Spec.WalltimeAt(c.Speed)/4)), g.End); end > c.End {
		z.extend(now, st, c, l, c.Range, end, out)
	}
}

// continueInto gives the running job the window behind its own if the policy prefers it to every waiting job that could
// use that window.
func (z *Zone) continueInto(now quantity.Instant, st *state, c *protocol.Claim, l *lease, out *protocol.Out) {
	s, g := z.following(now, c)
	if s == nil {
		return
	}
	w := window{start: c.End, end: g.End, until: g.Until}
	v := st.view()
	v.Continues, v.Running = c.Range, v.Running-1
	p, r := atomizer.Fit(&v, z.window(st, s, c.End, g.End))
	// The grace is already at the end of the lease; it moves along.
	if r.Why != atomizer.Interested {
		return
	}
	mine := z.candidate(now, st, s, &w, &p)
	for _, other := range z.live {
		if other == st || z.deaf(now, other) != interested {
			continue
		}
		theirs, refusal := z.fit(other, s, &w, now)
		if refusal.Why != atomizer.Interested {
			continue
		}
		if cand := z.candidate(now, other, s, &w, &theirs); z.better(&cand, &mine) {
			other.counts.add(interested, now)
			return
		}
	}
	z.extend(now, st, c, l, job.Range{From: c.Range.From, To: p.Range.To}, c.End.Add(p.Wall), out)
}

func (z *Zone) better(a, b *policy.Candidate) bool { return z.cfg.Policy.Compare(a, b) < 0 }

// extend claims the longer range first, then asks the node to move the lease's end: dying in between costs nothing but
// the chance.
func (z *Zone) extend(now quantity.Instant, st *state, c *protocol.Claim, l *lease, r job.Range, end quantity.Instant, out *protocol.Out) {
	l.before = *c
	z.fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: st.Job, Token: c.Token, Range: r, End: end})
	l.ask, l.sent = z.newAsk(), now
	z.sendExtend(st, c, l, out)
}

// sendExtend is repeated until the node answers, and idempotent by what it asks for.
func (z *Zone) sendExtend(st *state, c *protocol.Claim, l *lease, out *protocol.Out) {
	z.send(out, protocol.Message{
		Kind: protocol.Extend, To: nodeOf(c), Ask: l.ask, Token: c.Token, Job: st.Job, Slice: c.Slice, Range: c.Range, End: c.End,
	})
}
