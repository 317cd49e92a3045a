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
	if r := z.recalled(&in); r != nil && z.answerArchived(r, &in, out) {
		z.after(now, out)
		return
	}
	switch in.Kind {
	case protocol.Adopt:
		z.takeHome(now, &in, out)
	case protocol.Cancel:
		z.drop(now, &in, out)
	case protocol.PauseJob:
		if s := z.jobs[in.Job]; s != nil && s.lives(&in) && s.Held != in.Flag && !s.fate().verdict.State.Final() {
			z.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: in.Flag})
		}
		z.send(out, protocol.Message{Kind: protocol.PauseJob, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation, Flag: in.Flag})
	case protocol.QueueChanged:
		if q := z.queues[in.Queue.Name]; job.ValidName(in.Queue.Name) && (q == nil || q.Queue != *in.Queue) {
			z.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: in.Queue})
			z.changedAll()
		}
		z.send(out, protocol.Message{Kind: protocol.QueueChanged, To: in.From, Queue: in.Queue})
	case protocol.ClosedAck:
		if s := z.jobs[in.Job]; s != nil && s.lives(&in) {
			f := s.makeFate()
			f.acked, f.closing = true, z.closing.Confirm(f.closing)
			z.mayLeave(s)
		}
	case protocol.Archived:
		z.filed(&in, out)
	case protocol.Forget:
		z.forget(now, &in, out)
	case protocol.Offer:
		z.offered(&in)
	case protocol.Granted:
		z.granted(now, &in, out)
	case protocol.Refused:
		z.refused(now, &in, out)
	case protocol.Leased:
		if s, l := z.standing(&in); l != nil && !l.known {
			l.known = true
			z.taken(s, in.Token)
			z.stir(s)
		}
	case protocol.RedeemRefused:
		if s, l := z.standing(&in); s != nil {
			z.backOff(now, s, nil, l.won, in.Text)
			z.fact(out, protocol.Fact{Kind: protocol.Released, Job: in.Job, Token: in.Token, Text: in.Text, At: now})
			z.settled(now, s, out)
		}
	case protocol.Running:
		if s, l := z.standing(&in); l != nil {
			z.runs(s, l, in.At)
		}
	case protocol.Report:
		if s, l := z.standing(&in); l != nil {
			l.progress = max(l.progress, in.Progress)
			if l.running == 0 { // Running was lost
				z.runs(s, l, in.At)
			}
		}
	case protocol.Result:
		z.result(now, &in, out)
	case protocol.Published:
		z.published(now, &in, out)
	case protocol.Extended:
		z.extended(&in)
	case protocol.Tick:
		z.woken = 0 // no wake-up stands any more
	case protocol.Attend:
		if s := z.jobs[in.Job]; s != nil {
			z.floor.Attend(&s.floor, in.Session, in.Flag)
		}
	case protocol.Answer:
		if s := z.jobs[in.Job]; s != nil {
			z.floor.Answer(now, &s.floor, &in)
		}
	}
	z.after(now, out)
}

// Recover is called once, after the last fact. Everything outstanding is sent again from state.
func (z *Zone) Recover(now quantity.Instant, out *protocol.Out) {
	z.since = now
	z.enlist()
	for _, s := range z.busy {
		z.stir(s)
	}
	for _, s := range z.live {
		z.foresee(now, s)
	}
	if planted.In(planted.CommitWithoutClaim) {
		for len(z.busy) > 0 {
			s := z.busy[0]
			z.fact(out, protocol.Fact{Kind: protocol.Released, Job: s.Job, Token: s.work().claims[0].Token, At: now})
		}
	}
	z.after(now, out)
}

// after is the same for every input: what is overdue is repeated, the market runs, the next wake-up is asked for.
func (z *Zone) after(now quantity.Instant, out *protocol.Out) {
	if z.pass != nil {
		z.pass(now, out)
		return
	}
	wake := z.overdue(now, out)
	wake = min(wake, z.continuations(now, out))
	z.wakeAt(now, min(wake, z.sell(now, out)), out)
}

// wakeAt asks for a wake-up unless an earlier one is on its way.
func (z *Zone) wakeAt(now, wake quantity.Instant, out *protocol.Out) {
	if wake != quantity.Never && (wake < z.woken || z.woken <= now) {
		z.woken = wake
		out.Effects = append(out.Effects, protocol.Message{
			Kind: protocol.Wake, From: z.self, To: protocol.Address{Role: protocol.Timer}, At: wake,
		})
	}
}

// takeHome makes the zone a job's home. A job with a name that is none is ended where it arrives: nobody could ask for a place
// under it, and who submitted it is told why.
func (z *Zone) takeHome(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	s := z.jobs[in.Job]
	if !z.admits(now, s, in, out) {
		return
	}
	if s = z.jobs[in.Job]; s == nil {
		z.fact(out, protocol.Fact{Kind: protocol.HomeTaken, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number(), Spec: in.Spec, At: in.At})
		if in.Queue != nil && job.ValidName(in.Queue.Name) && z.queue(in.Queue.Name).Queue != *in.Queue {
			z.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: in.Queue})
			z.changedAll()
			// An Adopt that was long under way brings old settings: the gate sees which these are and corrects them.
			z.send(out, protocol.Message{Kind: protocol.QueueChanged, To: protocol.Address{Role: protocol.Gate}, Queue: in.Queue})
		}
		s = z.jobs[in.Job]
		z.foresee(now, s)
		z.instruct(s, out)
		if in.Flag {
			z.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: true})
		}
		if err := in.Spec.CheckNames(in.Job); err != nil {
			z.end(now, s, job.Verdict{State: job.Impossible, Reason: "it was accepted under a name that is none: " + err.Error()}, out)
		}
	}
	if s.lives(in) {
		z.send(out, protocol.Message{Kind: protocol.Adopted, To: protocol.Address{Role: protocol.Gate}, Job: in.Job, Epoch: in.Epoch, Generation: s.Generation})
	}
}

// drop ends a job on its owner's word: at once if nothing of it runs, else when the last subjob is settled.
func (z *Zone) drop(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if s := z.jobs[in.Job]; s != nil && s.lives(in) {
		z.end(now, s, job.Verdict{State: job.Cancelled, Reason: in.Text}, out)
	}
}

// end gives a job its final verdict as soon as no claim stands, and, where it failed, as soon as what counts of it is
// published: that is all there will be of it. Its owner's word waits for no node, but comes too late for a job of which all is
// committed: that one finishes.
func (z *Zone) end(now quantity.Instant, s *state, v job.Verdict, out *protocol.Out) {
	if s.fate().verdict.State.Final() || s.complete() && v.State != job.Finished {
		return
	}
	if len(s.work().claims) > 0 || v.State == job.Failed && len(s.work().unpublished) > 0 {
		if s.fate().dropping.State != v.State {
			s.makeFate().dropping = v
			for i := range s.work().leases {
				s.work().leases[i].sent = 0 // Stop goes out with the next look at what is overdue
			}
			z.touch(s)
		}
		return
	}
	z.fact(out, protocol.Fact{Kind: protocol.Ended, Job: s.Job, Verdict: v, At: now})
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
	t := s.troubled()
	t.notBefore = now.Add(d)
	z.resting.Set(&t.slots.resting, s, t.notBefore)
	z.floor.DropRecall(&s.floor)
	z.touch(s)
}
