package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step takes in one message. Facts and effects are appended to out; now never goes back.
func (z *Zone) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	switch in.Kind {
	case protocol.Adopt:
		z.takeHome(&in, out)
	case protocol.Cancel:
		z.drop(now, &in, out)
	case protocol.PauseJob:
		if s := z.jobs[in.Job]; s != nil && s.Held != in.Flag && !s.Verdict.State.Final() {
			z.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: in.Flag})
		}
		z.send(out, protocol.Message{Kind: protocol.PauseJob, To: in.From, Job: in.Job, Epoch: in.Epoch, Flag: in.Flag})
	case protocol.QueueChanged:
		if q := z.queues[in.Queue.Name]; q == nil || q.Queue != *in.Queue {
			z.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: in.Queue})
			z.changedAll()
		}
		z.send(out, protocol.Message{Kind: protocol.QueueChanged, To: in.From, Queue: in.Queue})
	case protocol.ClosedAck:
		if s := z.jobs[in.Job]; s != nil && s.Epoch == in.Epoch {
			s.acked = true
			z.closing = remove(z.closing, in.Job)
		}
	case protocol.Forget:
		if s := z.jobs[in.Job]; s != nil && s.Epoch == in.Epoch && s.Verdict.State.Final() {
			z.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job})
		}
	case protocol.Offer:
		z.offered(&in)
	case protocol.Granted:
		z.granted(now, &in, out)
	case protocol.Refused:
		z.refused(now, &in, out)
	case protocol.Leased:
		if _, l := z.standing(&in); l != nil {
			l.known = true
		}
	case protocol.RedeemRefused:
		if s, _ := z.standing(&in); s != nil {
			z.fact(out, protocol.Fact{Kind: protocol.Released, Job: in.Job, Token: in.Token, Text: in.Text, At: now})
			z.settled(now, s, out)
		}
	case protocol.Running:
		if _, l := z.standing(&in); l != nil {
			l.known, l.running = true, in.At
		}
	case protocol.Report:
		if _, l := z.standing(&in); l != nil {
			l.progress = max(l.progress, in.Progress)
			if l.running == 0 { // Running was lost
				l.known, l.running = true, in.At
			}
		}
	case protocol.Result:
		z.result(now, &in, out)
	case protocol.Extended:
		z.extended(&in)
	}
	z.after(now, out)
}

// Recover is called once, after the last fact. Everything outstanding is sent again from state.
func (z *Zone) Recover(now quantity.Instant, out *protocol.Out) {
	z.since = now
	if planted.In(planted.CommitWithoutClaim) {
		for len(z.busy) > 0 {
			s := z.busy[0]
			z.fact(out, protocol.Fact{Kind: protocol.Released, Job: s.Job, Token: s.Claims[0].Token, At: now})
		}
	}
	z.after(now, out)
}

// after is the same for every input: what is overdue is repeated, the market runs, the next wake-up is asked for.
func (z *Zone) after(now quantity.Instant, out *protocol.Out) {
	wake := z.overdue(now, out)
	z.reckon(now)
	wake = min(wake, z.continuations(now, out))
	wake = min(wake, z.market(now, out))
	if wake != quantity.Never && (wake < z.woken || z.woken <= now) {
		z.woken = wake
		out.Effects = append(out.Effects, protocol.Message{
			Kind: protocol.Wake, From: z.self, To: protocol.Address{Role: protocol.Timer}, At: wake,
		})
	}
}

func (z *Zone) takeHome(in *protocol.Message, out *protocol.Out) {
	s := z.jobs[in.Job]
	if s != nil && s.Verdict.State.Final() && s.Submitted < in.At {
		// The gate has forgotten the job of that name, Forget was lost, and this is another one.
		z.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job})
		s = nil
	}
	if s == nil {
		z.fact(out, protocol.Fact{Kind: protocol.HomeTaken, Job: in.Job, Epoch: in.Epoch, Spec: in.Spec, At: in.At})
		if in.Queue != nil && z.queue(in.Queue.Name).Queue != *in.Queue {
			z.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: in.Queue})
			z.changedAll()
			// An Adopt that was long under way brings old settings: the gate sees which these are and corrects them.
			z.send(out, protocol.Message{Kind: protocol.QueueChanged, To: protocol.Address{Role: protocol.Gate}, Queue: in.Queue})
		}
		s = z.jobs[in.Job]
		if in.Flag {
			z.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: true})
		}
	}
	if s.Epoch == in.Epoch {
		z.send(out, protocol.Message{Kind: protocol.Adopted, To: protocol.Address{Role: protocol.Gate}, Job: in.Job, Epoch: in.Epoch})
	}
}

// drop ends a job on its owner's word: at once if nothing of it runs, else when the last subjob is settled.
func (z *Zone) drop(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if s := z.jobs[in.Job]; s != nil && s.Epoch == in.Epoch {
		z.end(now, s, job.Verdict{State: job.Cancelled, Reason: in.Text}, out)
	}
}

// end gives a job its final verdict as soon as no claim stands.
func (z *Zone) end(now quantity.Instant, s *state, v job.Verdict, out *protocol.Out) {
	if s.Verdict.State.Final() {
		return
	}
	if len(s.Claims) > 0 {
		if s.dropping.State != v.State {
			s.dropping = v
			for i := range s.leases {
				s.leases[i].sent = 0 // Stop goes out with the next look at what is overdue
			}
		}
		return
	}
	z.fact(out, protocol.Fact{Kind: protocol.Ended, Job: s.Job, Verdict: v, At: now})
}

// overdue repeats what nobody has answered, gives up claims of silent nodes, ends jobs whose time is over, and returns
// when to look again.
func (z *Zone) overdue(now quantity.Instant, out *protocol.Out) quantity.Instant {
	wake := quantity.Never
	for i := 0; i < len(z.dated); i++ {
		s := z.dated[i]
		if s.deadline() > now {
			wake = min(wake, s.deadline())
		} else if s.dropping.State == job.Waiting {
			z.end(now, s, job.Verdict{State: job.Expired, Reason: "its deadline passed before it finished"}, out)
			i = -1 // the list may have changed
		}
	}
	for i := 0; i < len(z.busy); i++ {
		s := z.busy[i]
		for j := 0; j < len(s.leases); j++ {
			c, l := s.Claims[s.claim(s.leases[j].token)], &s.leases[j]
			if giveUp := max(c.End, z.since).Add(z.cfg.Skew); c.End != quantity.Never && giveUp <= now {
				z.fact(out, protocol.Fact{Kind: protocol.Released, Job: s.Job, Token: c.Token, At: now, Text: "its node reported nothing by the lease's end"})
				j--
				continue
			} else if c.End != quantity.Never {
				wake = min(wake, giveUp)
			}
			if l.known && l.ask == 0 && s.dropping.State == job.Waiting {
				continue
			}
			if l.sent.Add(z.cfg.Retry) <= now {
				l.sent = now
				if l.ask != 0 {
					z.sendExtend(s, &c, l, out)
				}
				if !l.known || s.dropping.State != job.Waiting {
					z.redeem(s, &c, out)
				}
				if s.dropping.State != job.Waiting {
					z.send(out, protocol.Message{Kind: protocol.Stop, To: nodeOf(&c), Token: c.Token, Job: s.Job, Text: s.dropping.Reason})
				}
			}
			wake = min(wake, l.sent.Add(z.cfg.Retry))
		}
		if len(s.Claims) == 0 { // settled just now: busy has one less
			i--
			z.settled(now, s, out)
		}
	}
	for _, s := range z.closing {
		if s.closedAt.Add(z.cfg.Retry) <= now {
			s.closedAt = now
			z.send(out, protocol.Message{Kind: protocol.Closed, To: protocol.Address{Role: protocol.Gate}, Job: s.Job, Epoch: s.Epoch, Verdict: s.Verdict, At: s.Ended})
		}
		wake = min(wake, s.closedAt.Add(z.cfg.Retry))
	}
	for i := 0; i < len(z.resting); i++ {
		if s := z.resting[i]; s.notBefore <= now {
			z.resting = append(z.resting[:i], z.resting[i+1:]...)
			z.changed(s)
			i--
		} else {
			wake = min(wake, s.notBefore)
		}
	}
	return wake
}

// standing finds the job and lease an answer of a node is about; nil if the claim no longer stands.
func (z *Zone) standing(in *protocol.Message) (*state, *lease) {
	s := z.jobs[in.Job]
	if s == nil {
		return nil, nil
	}
	l := s.lease(in.Token)
	if l == nil {
		return nil, nil
	}
	return s, l
}

func (z *Zone) changedAll() {
	for _, s := range z.live {
		z.changed(s)
	}
}

func (z *Zone) send(out *protocol.Out, m protocol.Message) {
	m.From = z.self
	out.Effects = append(out.Effects, m)
}

func nodeOf(c *protocol.Claim) protocol.Address {
	return protocol.Address{Role: protocol.Node, ID: string(c.Node)}
}

// rest pauses a job for d.
func (z *Zone) rest(now quantity.Instant, s *state, d time.Duration) {
	s.notBefore = now.Add(d)
	z.resting = insert(z.resting, s)
}
