// Package desk answers people: whether a job is accepted, cancelled, paused, requeued or deleted, and which settings a queue has. A
// request that comes twice is answered twice and carried out once; what is refused changes nothing. A job has lives, each with a
// generation of its own: requeueing begins the next one of the same work; deleting ends the last one for good, and replacing is deleting
// and accepting in one step (docs/adr/0017-lives.md).
package desk

import (
	"errors"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Office is what a desk calls on its gate.
type Office interface {
	// Fact decides one, Send says something.
	Fact(out *protocol.Out, f protocol.Fact)
	Send(out *protocol.Out, m protocol.Message)
	// Draw is the home of a life of a job, empty if no zone is known that could run it; Anywhere is one that can end a job which is not to
	// run.
	Draw(now quantity.Instant, spec *job.Spec, id job.ID, of job.Generation) job.ZoneID
	Anywhere(j *jobs.Job) job.ZoneID
	// DrawHomes draws homes for jobs that have none, Reopened for the next life of one whose home has left the configuration.
	DrawHomes(now quantity.Instant, out *protocol.Out)
	Reopened(now quantity.Instant, j *jobs.Job, out *protocol.Out)
}

// Desk is the desk of one gate.
type Desk struct {
	judge
	office Office
	// deletions were answered last, in this boot. Soft.
	deletions []deletion
}

// deletion is an answer that may be asked for again, by the same user: after a boot the job is not there, which is what was asked for.
type deletion struct {
	request, by string
	id          job.ID
}

const rememberedDeletions = 64

// New makes a desk over the parts of its gate.
func New(cfg Config, p Parts, office Office) *Desk {
	return &Desk{judge: judge{cfg, p}, office: office}
}

// About is the job that a message is about, as it is here or in the archive; nil if there is none. What the archive has of a job
// that was forgotten is on its way out.
func (d *Desk) About(in *protocol.Message) *jobs.Job {
	name := in.Job
	if in.Kind == protocol.Submit {
		name = in.Body.(*protocol.Submission).Spec.Name
	}
	if j := d.Jobs.Find(name); j != nil || len(in.Filed) == 0 {
		return j
	}
	j := d.Jobs.Filed(in.Filed)
	if d.Names.Leaves(name) && j.Generation() <= d.Names.Last(name) {
		return nil
	}
	return j
}

func (d *Desk) reply(in *protocol.Message, m protocol.Message, r *protocol.Receipt, out *protocol.Out) {
	m.Kind, m.To, m.Body = protocol.Reply, in.From, r
	d.office.Send(out, m)
}

func (d *Desk) refuse(in *protocol.Message, request string, err error, out *protocol.Out) {
	d.reply(in, protocol.Message{}, &protocol.Receipt{Request: request, Err: err}, out)
}

// Submit accepts a job or answers with everything that is wrong. The same request, or the same name with the same content, of the same
// owner is the same job: the Receipt says whether this call made it.
func (d *Desk) Submit(now quantity.Instant, in *protocol.Message, s *protocol.Submission, out *protocol.Out) {
	j := d.About(in)
	if j != nil {
		again := j.Request() == s.Request && s.Request != "" || j.Content() == s.Digest && !(s.Replace && j.Over())
		switch {
		case again && submitted(j, s.By):
			verdict, _ := j.Verdict()
			d.reply(in, protocol.Message{Job: j.ID(), Generation: j.Generation()}, &protocol.Receipt{Request: s.Request, Verdict: verdict},
				out)
			return
		case !s.By.May(j.Spec().Owner):
			d.refuse(in, s.Request, errkind.Errorf(errkind.Exists, "job %q: %s has a job of that name, and only they, an operator or an "+
				"admin may put another in its place; choose another name", j.ID(), ownerOf(j)), out)
			return
		case !s.Replace || !j.Over():
			d.refuse(in, s.Request, taken(j, s.Replace), out)
			return
		}
	}
	if at := d.cfg.Gates.Of(in.Job); at != d.cfg.Self {
		d.refuse(in, s.Request, errkind.Errorf(errkind.Invalid, "job %q: jobs of that name belong to gate %s", in.Job, at.ID), out)
		return
	}
	if err := d.Check(now, s.Spec); err != nil {
		d.refuse(in, s.Request, err, out)
		return
	}
	if j != nil {
		d.Forget(j, out)
	}
	spec, of := d.Jobs.Share(s.Spec), d.Names.Next()
	d.office.Fact(out, protocol.Fact{Kind: protocol.JobAccepted, Job: s.Spec.Name, Epoch: 1, Generation: of, At: now,
		Body: out.Acceptances.Keep(protocol.Acceptance{Spec: spec, Request: s.Request, Digest: s.Digest,
			Zone: d.office.Draw(now, spec, s.Spec.Name, of)})})
	d.reply(in, protocol.Message{Job: s.Spec.Name, Generation: of}, out.Receipts.Keep(protocol.Receipt{Request: s.Request, Changed: true}),
		out)
}

// submitted reports whether it was the asker who submitted a job. One from before owners were recorded may be of anybody who may change
// all jobs.
func submitted(j *jobs.Job, by protocol.Asker) bool {
	owner := j.Spec().Owner
	return owner == by.Name || owner == "" && !by.Own
}

// ownerOf is whose a job is, for people.
func ownerOf(j *jobs.Job) string {
	if owner := j.Spec().Owner; owner != "" {
		return "user " + owner
	}
	return "nobody who is known"
}

// theirs is the job that a message is about. Errors: NotFound, and Denied where the asker may not change it.
func (d *Desk) theirs(in *protocol.Message, by protocol.Asker) (*jobs.Job, error) {
	j := d.About(in)
	switch {
	case j == nil:
		return nil, noJob(in.Job)
	case !by.May(j.Spec().Owner):
		return nil, errkind.Errorf(errkind.Denied, "job %q is of %s, and you are user %s, who may change your own jobs alone: ask them, "+
			"an operator or an admin", j.ID(), ownerOf(j), by.Name)
	}
	return j, nil
}

// taken says why a name can't be had, and how it can.
func taken(j *jobs.Job, replace bool) error {
	at := clock(j.Submitted())
	switch verdict, _ := j.Verdict(); {
	case replace:
		return errkind.Errorf(errkind.Conflict, "job %q: the job of that name, submitted at %s, is not over; only one that is can be "+
			"replaced: cancel it first, or choose another name", j.ID(), at)
	case j.Over():
		return errkind.Errorf(errkind.Exists, "job %q: a job of that name with other content was submitted at %s, is %s and is kept; "+
			"choose another name, or put this one in its place with --replace, which removes its output", j.ID(), at, verdict.State)
	}
	return errkind.Errorf(errkind.Exists, "job %q: a job of that name with other content was submitted at %s and is not over; choose "+
		"another name, or cancel it first", j.ID(), at)
}

// Forget forgets a job that is over. Its home, the executor and the archive are told until all have confirmed.
func (d *Desk) Forget(j *jobs.Job, out *protocol.Out) {
	cold := d.Jobs.Find(j.ID()) == nil
	d.office.Fact(out, protocol.Fact{Kind: protocol.JobForgotten, Job: j.ID(), Generation: j.Generation(), Epoch: j.Epoch(),
		Body: &protocol.Forgetting{Zone: j.Zone(), Archived: cold}})
}

// Cancel ends a job.
func (d *Desk) Cancel(now quantity.Instant, in *protocol.Message, c *protocol.Cancellation, out *protocol.Out) {
	j, err := d.theirs(in, c.By)
	if err != nil {
		d.refuse(in, c.Request, err, out)
		return
	}
	already, by := j.Cancelled()
	switch verdict, ended := j.Verdict(); {
	case j.Over() && by == c.Request && c.Request != "": // by this very call
		d.reply(in, protocol.Message{Job: in.Job}, &protocol.Receipt{Request: c.Request}, out)
		return
	case j.Over():
		d.refuse(in, c.Request, errkind.Errorf(errkind.Conflict,
			"job %q is over already: %s at %s (%s)", in.Job, verdict.State, clock(ended), verdict.Reason), out)
		return
	case already == nil:
		text := c.Text
		switch {
		case text != "":
		case c.By.Name == j.Spec().Owner || c.By.Name == "":
			text = "cancelled by its owner"
		default:
			text = "cancelled by user " + c.By.Name
		}
		d.office.Fact(out, protocol.Fact{Kind: protocol.JobCancelling, Job: in.Job, At: now,
			Body: &protocol.JobCancel{Text: text, Request: c.Request}})
		if j.Zone() == "" { // any zone can end what is not to run
			d.office.Fact(out, protocol.Fact{Kind: protocol.JobDrawn, Job: j.ID(), Epoch: j.Epoch(),
				Body: &protocol.InZone{Zone: d.office.Anywhere(j)}})
		}
	}
	d.reply(in, protocol.Message{Job: in.Job}, &protocol.Receipt{Request: c.Request, Changed: true}, out)
}

// Pause pauses a job, or resumes it.
func (d *Desk) Pause(in *protocol.Message, p *protocol.Pause, out *protocol.Out) {
	j, err := d.theirs(in, p.By)
	if err != nil {
		d.refuse(in, p.Request, err, out)
		return
	}
	switch {
	case j.Over():
		verdict, _ := j.Verdict()
		d.refuse(in, p.Request, errkind.Errorf(errkind.Conflict, "job %q is over: %s", in.Job, verdict.State), out)
		return
	case j.Paused() != p.Paused:
		d.office.Fact(out, protocol.Fact{Kind: protocol.JobPaused, Job: in.Job, Body: &protocol.JobPause{Paused: p.Paused}})
	}
	d.reply(in, protocol.Message{Job: in.Job}, &protocol.Receipt{Request: p.Request, Changed: true}, out)
}

// Requeue begins another life of a job that was cancelled, has failed or has expired.
func (d *Desk) Requeue(now quantity.Instant, in *protocol.Message, r *protocol.Requeueing, out *protocol.Out) {
	j, err := d.theirs(in, r.By)
	if err != nil {
		d.refuse(in, r.Request, err, out)
		return
	}
	if j.Requeued() == r.Request && r.Request != "" {
		d.reply(in, protocol.Message{Job: j.ID(), Generation: j.Generation()}, &protocol.Receipt{Request: r.Request}, out)
		return
	}
	if err := d.requeueable(now, j, r); err != nil {
		d.refuse(in, r.Request, err, out)
		return
	}
	if d.Jobs.Find(j.ID()) == nil { // an archived job is one that is here again: its facts are written again
		for i, f := range j.AppendFacts(nil) {
			if i == 0 {
				f.Body.(*protocol.Acceptance).Recalled = true
			}
			d.office.Fact(out, f)
		}
		j = d.Jobs.Find(j.ID())
	}
	again := &protocol.Sequel{Request: r.Request}
	if r.Deadline != 0 && r.Deadline != j.Spec().Deadline {
		s := *j.Spec()
		s.Deadline = r.Deadline
		again.Spec = &s
	}
	of := max(j.Generation(), d.Names.Highest()) + 1
	d.office.Fact(out, protocol.Fact{Kind: protocol.JobRequeued, Job: j.ID(), Generation: of, At: now, Body: again})
	d.office.Reopened(now, j, out)
	d.reply(in, protocol.Message{Job: j.ID(), Generation: j.Generation()}, &protocol.Receipt{Request: r.Request, Changed: true}, out)
}

func (d *Desk) requeueable(now quantity.Instant, j *jobs.Job, r *protocol.Requeueing) error {
	switch verdict, _ := j.Verdict(); verdict.State {
	case job.Cancelled, job.Failed, job.Expired:
	case job.Finished:
		return errkind.Errorf(errkind.Conflict, "job %q is %s: nothing of it is left to run; to run all of it again, submit it with "+
			"--replace", j.ID(), verdict.State)
	case job.Impossible:
		return errkind.Errorf(errkind.Conflict, "job %q is %s: %s; to run another one under its name, submit it with --replace", j.ID(),
			verdict.State, verdict.Reason)
	default:
		return errkind.Errorf(errkind.Conflict, "job %q is not over: there is nothing to requeue%s", j.ID(), ending(j))
	}
	s := *j.Spec()
	s.Name = j.ID()
	if r.Deadline != 0 {
		s.Deadline = r.Deadline
	}
	if r.Deadline == 0 && passed(now, &s) {
		return errkind.Errorf(errkind.Invalid, "job %q: its deadline, %s, has passed; give it another one (requeue --deadline), or none "+
			"(--deadline none)", j.ID(), clock(s.Deadline))
	}
	return d.Check(now, &s)
}

// Delete forgets a job that is over, now instead of when its retention is.
func (d *Desk) Delete(in *protocol.Message, x *protocol.Deletion, out *protocol.Out) {
	asked := deletion{x.Request, x.By.Name, in.Job}
	if x.Request != "" && slices.Contains(d.deletions, asked) {
		d.reply(in, protocol.Message{Job: in.Job}, &protocol.Receipt{Request: x.Request}, out)
		return
	}
	j, err := d.theirs(in, x.By)
	switch {
	case err != nil:
		d.refuse(in, x.Request, err, out)
		return
	case !j.Over():
		d.refuse(in, x.Request, errkind.Errorf(errkind.Conflict, "job %q is not over: cancel it first%s", in.Job, ending(j)), out)
		return
	}
	d.Forget(j, out)
	if len(d.deletions) == rememberedDeletions {
		d.deletions = slices.Delete(d.deletions, 0, 1)
	}
	d.deletions = append(d.deletions, asked)
	d.reply(in, protocol.Message{Job: in.Job}, &protocol.Receipt{Request: x.Request, Changed: true}, out)
}

// SetQueue sets a queue's settings.
func (d *Desk) SetQueue(now quantity.Instant, in *protocol.Message, s *protocol.QueueSetting, out *protocol.Out) {
	q := *s.Queue
	var errs []error
	if first := d.cfg.Gates.First(); first != d.cfg.Self {
		errs = append(errs, fmt.Errorf("queue %s: the settings of queues belong to gate %s", q.Name, first.ID))
	}
	if err := errors.Join(append(errs, d.Queues.Refuse(&q)...)...); err != nil {
		d.refuse(in, s.Request, errkind.Errorf(errkind.Invalid, "%w", err), out)
		return
	}
	if is := d.Queues.Find(q.Name); is != nil && *is == q {
		d.reply(in, protocol.Message{}, &protocol.Receipt{Request: s.Request}, out)
		return
	}
	d.office.Fact(out, protocol.Fact{Kind: protocol.QueueSet, Body: &q})
	d.office.DrawHomes(now, out) // another cap may have given a zone its share
	d.reply(in, protocol.Message{}, &protocol.Receipt{Request: s.Request, Changed: true}, out)
}

func noJob(id job.ID) error {
	return errkind.Errorf(errkind.NotFound, "there is no job %q; see the list of jobs for those there are", id)
}

// ending is the answer to a request that has to wait until the job's cancellation is over.
func ending(j *jobs.Job) string {
	if c, _ := j.Cancelled(); c == nil {
		return ""
	}
	return fmt.Sprintf("; it is being cancelled, and over within a minute: sluice wait %s", j.ID())
}
