package home

import (
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/settle"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// lives is which life of each job is here. Invariant: exactly one zone may sell a job. It is one of this ledger from the Adopt that brings
// it, unless a later life of it is, or was, here; and no more from when it is at rest on its way to another zone (HomeLeaving), to the
// archive, or dropped.
type lives struct {
	gates  protocol.Gates
	book   *record.Book
	settle *settle.Settler
	watch  Watcher
	send   func(out *protocol.Out, m protocol.Message)
}

// step handles a message of the gate or the archive.
func (v *lives) step(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j := v.book.Job(in.Job)
	here := j != nil && present(j, in)
	switch in.Kind {
	case protocol.Adopt:
		v.adopt(now, in, in.Body.(*protocol.Adoption), out)
	case protocol.Cancel:
		if c := in.Body.(*protocol.Cancellation); here && !j.AtRest() {
			v.settle.Cancel(now, c.At, j, c.Text, out)
		}
	case protocol.PauseJob: // its owner pauses or resumes it
		p := in.Body.(*protocol.Pause)
		if here && j.Paused != p.Paused && !j.Ending().Final() && !j.AtRest() {
			v.book.Fact(out, protocol.Fact{Kind: protocol.HomePaused, Job: in.Job, Body: &protocol.JobPause{Paused: p.Paused}})
		}
		v.send(out, protocol.Message{
			Kind: protocol.PauseJob, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation,
			Body: &protocol.Pause{Paused: p.Paused},
		})
	case protocol.QueueChanged:
		v.queueChanged(in, in.Body.(*protocol.Queue), out)
	case protocol.ClosedAck: // the gate has its verdict
		if here {
			v.book.Closed.Confirm(j)
		}
	case protocol.Archived: // the archive has it; what it has of an earlier life changes nothing
		if j != nil && v.book.Closed.Leaves(j) && j.Generation == in.Generation.Number() {
			v.book.Fact(out, protocol.Fact{Kind: protocol.HomeArchived, Job: j.ID, Generation: j.Generation})
		}
	case protocol.Surrender:
		if here {
			v.surrender(j, in.Body.(*protocol.Moving), out)
		}
	case protocol.Forget:
		v.forget(now, in, out)
	}
}

// present says whether a message of the gate is about the present life of a job.
func present(j *Job, in *protocol.Message) bool {
	return j.Epoch == in.Epoch && j.Generation == in.Generation.Number()
}

// adopt makes the ledger a job's home. A job with an invalid name is ended on arrival: nobody could ask for a slice under it, and its
// submitter learns why.
func (v *lives) adopt(now quantity.Instant, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) {
	j := v.book.Job(in.Job)
	if !v.admits(now, j, in, a, out) {
		return
	}
	switch j = v.book.Job(in.Job); {
	case j == nil && (a.Record != nil && !movable(in, a.Record) || a.Record == nil && in.Epoch > 1):
		return // to begin it anew would lose what is committed elsewhere
	case j == nil && a.Record != nil:
		v.takeOver(now, in, a, out)
		j = v.book.Job(in.Job)
	case j == nil:
		v.book.Fact(out, protocol.Fact{Kind: protocol.HomeTaken, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number(), At: a.At,
			Body: out.Takings.Keep(protocol.Taking{Spec: a.Spec})})
		v.learnQueue(a.Queue, out)
		j = v.book.Job(in.Job)
		v.watch.Came(now, j)
		v.settle.Instruct(j, out)
		if a.Paused {
			v.book.Fact(out, protocol.Fact{Kind: protocol.HomePaused, Job: in.Job, Body: &protocol.JobPause{Paused: true}})
		}
		if err := a.Spec.CheckNames(in.Job); err != nil {
			why := "it was accepted under a name that is none: " + err.Error()
			v.settle.End(now, j, job.Verdict{State: job.Impossible, Reason: why}, out)
		}
	}
	if present(j, in) {
		v.adopted(in, j, out)
	}
}

// adopted tells the gate that the job is at home here.
func (v *lives) adopted(in *protocol.Message, j *Job, out *protocol.Out) {
	v.send(out, protocol.Message{Kind: protocol.Adopted, To: v.gates.Of(in.Job), Job: in.Job, Epoch: in.Epoch, Generation: j.Generation})
}

// admits makes way for the life that an Adopt brings, and says whether it is, or may now become, the present one. A later
// life of the same work goes on from the record that is here; of other work nothing is kept.
func (v *lives) admits(now quantity.Instant, j *Job, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) bool {
	of := in.Generation.Number()
	switch {
	case j == nil:
		return of > v.book.Dropped(in.Job)
	case of == j.Generation:
		if j.Ending().Final() && j.Submitted < a.At {
			// Both are from before there were lives: the gate had forgotten the one that is here, and Forget was lost.
			v.book.Fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Body: &protocol.HomeDrop{}})
		}
		return true
	case of < j.Generation:
		return false // it was long under way
	case j.AtRest():
		return false // the gate has it forgotten first
	case !j.Ending().Final():
		// The gate knows it as over: it was taken home by an Adopt that came when it had been dropped.
		v.settle.Cancel(now, now, j, "a later life of it has begun", out)
		return false
	case a.Since.Number() > j.Generation:
		v.book.Fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Generation: j.Generation, Body: &protocol.HomeDrop{}})
		return true
	}
	v.reopen(now, j, in, a, out)
	return true
}

// reopen begins another life of a job that is over. What it has committed stays, and what was learned of its run time and
// memory, unless that would end it again before anything ran.
func (v *lives) reopen(now quantity.Instant, j *Job, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) {
	v.book.Fact(out, protocol.Fact{Kind: protocol.HomeReopened, Job: j.ID, Generation: in.Generation.Number(), At: a.At,
		Body: &protocol.Sequel{Spec: a.Spec}})
	if y := j.History(); y != nil {
		y.Resettle(now)
	}
	if a.Paused {
		v.book.Fact(out, protocol.Fact{Kind: protocol.HomePaused, Job: j.ID, Body: &protocol.JobPause{Paused: true}})
	}
	if v.settle.Hopeless(j) != "" {
		anew := &protocol.Learned{Trust: j.Learned().Trust, Peak: j.Learned().Peak}
		v.book.Fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Body: anew})
		v.settle.Instruct(j, out)
	}
	v.settle.Settled(now, j, out)
}

// takeOver makes the ledger the home of a job that another zone has surrendered. What was learned there is kept; whether it can go on is
// judged here.
func (v *lives) takeOver(now quantity.Instant, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) {
	r := *a.Record
	r.Job, r.Epoch, r.Generation, r.Paused = in.Job, in.Epoch, in.Generation.Number(), a.Paused
	v.book.Fact(out, protocol.Fact{Kind: protocol.HomeKept, Job: in.Job, Body: &protocol.Keeping{Record: &r}})
	v.learnQueue(a.Queue, out)
	j := v.book.Job(in.Job)
	v.watch.Came(now, j)
	v.settle.Settled(now, j, out)
}

// movable says whether a record is one that may be taken over.
func movable(in *protocol.Message, r *protocol.Record) bool {
	return r.Job == in.Job && r.Spec != nil && r.Spec.CheckNames(in.Job) == nil && job.ValidName(r.Queue) &&
		len(r.Claims)+len(r.Claimed)+len(r.Unpublished) == 0 && !r.Verdict.State.Final()
}

// surrender gives a job up to another zone, because its home is drained, and reports it once none of it is sold. From HomeLeaving on
// nothing more of it is sold here; what runs, runs to its end, and what is committed is published. A job that ends by that is over here,
// and stays. Any other is then at rest: nothing that could change it is left, its record is sent as often as it is asked for, and Forget
// drops it. Since a job at rest never ends here, and the other zone has no record before, exactly one zone may sell it.
func (v *lives) surrender(j *Job, m *protocol.Moving, out *protocol.Out) {
	if j.Ending().Final() || m.Text == "" {
		return
	}
	if j.Ending().Leaving() != m.Text {
		v.book.Fact(out, protocol.Fact{Kind: protocol.HomeLeaving, Job: j.ID, Generation: j.Generation,
			Body: &protocol.Reason{Text: m.Text}})
	}
	v.settle.Surrendered(j, out)
}

// forget drops a job that is over, or that another zone has taken over. One that is not is ended first: the gate does not know it any more.
func (v *lives) forget(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j, of := v.book.Job(in.Job), in.Generation.Number()
	if j != nil && j.Epoch == in.Epoch && j.Generation <= of {
		if !j.Ending().Final() && !j.AtRest() {
			v.settle.Cancel(now, now, j, "it was forgotten", out)
		}
		if !j.Ending().Final() && !j.AtRest() {
			return // the gate asks again
		}
		v.book.Fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Generation: j.Generation, Body: &protocol.HomeDrop{}})
	}
	v.forgotten(in, out)
}

// forgotten tells that a job is.
func (v *lives) forgotten(in *protocol.Message, out *protocol.Out) {
	v.send(out, protocol.Message{
		Kind: protocol.Forgotten, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number(),
	})
}

// learnQueue records the settings that come with a job.
func (v *lives) learnQueue(q *protocol.Queue, out *protocol.Out) {
	if q != nil && job.ValidName(q.Name) && v.book.Queue(q.Name).Queue.Queue != *q {
		v.book.Fact(out, protocol.Fact{Kind: protocol.QueueKnown, Body: q})
		v.book.ChangedAll()
		// An Adopt that was long under way brings old settings: the gate sees which these are and corrects them.
		v.send(out, protocol.Message{Kind: protocol.QueueChanged, To: v.gates.First(), Body: q})
	}
}

// queueChanged records the settings of a queue.
func (v *lives) queueChanged(in *protocol.Message, said *protocol.Queue, out *protocol.Out) {
	if job.ValidName(said.Name) && !v.book.Known(said) {
		v.book.Fact(out, protocol.Fact{Kind: protocol.QueueKnown, Body: said})
		v.book.ChangedAll()
	}
	v.send(out, protocol.Message{Kind: protocol.QueueChanged, To: in.From, Body: said})
}
