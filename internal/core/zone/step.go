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
		if j := z.jobs[in.Job]; j != nil && j.lives(&in) && j.Held != in.Flag && !j.fate().verdict.State.Final() {
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
		if j := z.jobs[in.Job]; j != nil && j.lives(&in) {
			f := j.makeFate()
			f.acked, f.closing = true, z.closing.Confirm(f.closing)
			z.mayLeave(j)
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
		if j, l := z.standing(&in); l != nil && !l.known {
			l.known = true
			z.taken(j, in.Token)
			z.stir(j)
		}
	case protocol.RedeemRefused:
		if j, l := z.standing(&in); j != nil {
			z.backOff(now, j, nil, l.won, in.Text)
			z.fact(out, protocol.Fact{Kind: protocol.Released, Job: in.Job, Token: in.Token, Text: in.Text, At: now})
			z.settled(now, j, out)
		}
	case protocol.Running:
		if j, l := z.standing(&in); l != nil {
			z.runs(j, l, in.At)
		}
	case protocol.Report:
		if j, l := z.standing(&in); l != nil {
			l.progress = max(l.progress, in.Progress)
			if l.running == 0 { // Running was lost
				z.runs(j, l, in.At)
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
		if j := z.jobs[in.Job]; j != nil {
			z.floor.Attend(&entryOf(j).floor, in.Session, in.Flag)
		}
	case protocol.Answer:
		if j := z.jobs[in.Job]; j != nil {
			z.floor.Answer(now, &entryOf(j).floor, &in)
		}
	}
	z.after(now, out)
}

// Recover is called once, after the last fact. Everything outstanding is sent again from state.
func (z *Zone) Recover(now quantity.Instant, out *protocol.Out) {
	z.since = now
	z.enlist()
	for _, j := range z.busy {
		z.stir(j)
	}
	for _, j := range z.live {
		z.foresee(now, j)
	}
	if planted.In(planted.CommitWithoutClaim) {
		for len(z.busy) > 0 {
			j := z.busy[0]
			z.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: j.work().claims[0].Token, At: now})
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
	j := z.jobs[in.Job]
	if !z.admits(now, j, in, out) {
		return
	}
	if j = z.jobs[in.Job]; j == nil {
		z.fact(out, protocol.Fact{Kind: protocol.HomeTaken, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number(), Spec: in.Spec, At: in.At})
		if in.Queue != nil && job.ValidName(in.Queue.Name) && z.queue(in.Queue.Name).Queue != *in.Queue {
			z.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: in.Queue})
			z.changedAll()
			// An Adopt that was long under way brings old settings: the gate sees which these are and corrects them.
			z.send(out, protocol.Message{Kind: protocol.QueueChanged, To: protocol.Address{Role: protocol.Gate}, Queue: in.Queue})
		}
		j = z.jobs[in.Job]
		z.foresee(now, j)
		z.instruct(j, out)
		if in.Flag {
			z.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: true})
		}
		if err := in.Spec.CheckNames(in.Job); err != nil {
			z.end(now, j, job.Verdict{State: job.Impossible, Reason: "it was accepted under a name that is none: " + err.Error()}, out)
		}
	}
	if j.lives(in) {
		z.send(out, protocol.Message{Kind: protocol.Adopted, To: protocol.Address{Role: protocol.Gate}, Job: in.Job, Epoch: in.Epoch, Generation: j.Generation})
	}
}

// drop ends a job on its owner's word: at once if nothing of it runs, else when the last subjob is settled.
func (z *Zone) drop(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if j := z.jobs[in.Job]; j != nil && j.lives(in) {
		z.end(now, j, job.Verdict{State: job.Cancelled, Reason: in.Text}, out)
	}
}

// end gives a job its final verdict as soon as no claim stands, and, where it failed, as soon as what counts of it is
// published: that is all there will be of it. Its owner's word waits for no node, but comes too late for a job of which all is
// committed: that one finishes.
func (z *Zone) end(now quantity.Instant, j *Job, v job.Verdict, out *protocol.Out) {
	if j.fate().verdict.State.Final() || j.complete() && v.State != job.Finished {
		return
	}
	if len(j.work().claims) > 0 || v.State == job.Failed && len(j.work().unpublished) > 0 {
		if j.fate().dropping.State != v.State {
			j.makeFate().dropping = v
			for i := range j.work().leases {
				j.work().leases[i].sent = 0 // Stop goes out with the next look at what is overdue
			}
			z.touch(j)
		}
		return
	}
	z.fact(out, protocol.Fact{Kind: protocol.Ended, Job: j.ID, Verdict: v, At: now})
}

// standing finds the job and lease an answer of a node is about; nil if the claim no longer stands.
func (z *Zone) standing(in *protocol.Message) (*Job, *lease) {
	j := z.jobs[in.Job]
	if j == nil {
		return nil, nil
	}
	l := j.lease(in.Token)
	if l == nil {
		return nil, nil
	}
	return j, l
}

func (z *Zone) changedAll() {
	for _, j := range z.live {
		z.changed(j)
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
func (z *Zone) rest(now quantity.Instant, j *Job, d time.Duration) {
	t := j.troubled()
	t.notBefore = now.Add(d)
	z.resting.Set(&t.slots.resting, j, t.notBefore)
	z.floor.DropRecall(&entryOf(j).floor)
	z.touch(j)
}
