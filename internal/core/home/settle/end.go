package settle

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/home/ending"
	"sluice.dev/sluice/internal/core/home/output"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A job that its owner cancels is over within a minute, whatever its programs, their nodes and stores do. The minute counts from the
// gate's durable fact, so a restart of the home does not begin it anew. A node that reports on a claim after it was given up changes
// nothing: its result is refused, and the subjob is stopped.

// mostPublished is how long a job whose units are all settled waits for its output to be published. It is well over a restart of a machine
// with many GPUs: a verdict is final, and an owner who does not want to wait cancels the job.
const mostPublished = 30 * time.Minute

// Cancel ends a job whose cancellation was asked for at since, 0 if that is not known: at once if nothing of it runs, else when its last
// subjob is settled, within a minute. Repeated, it keeps the first time.
func (d *Settler) Cancel(now, since quantity.Instant, j *record.Job, why string, out *protocol.Out) {
	if j.Ending().Final() {
		return
	}
	v := job.Verdict{State: job.Cancelled, Reason: why}
	if len(j.Claims()) == 0 && !j.Complete() {
		d.End(now, j, v, out)
		return
	}
	if j.MakeEnding().Cancel(now, since) {
		d.plan(now, j, v)
	}
}

// Expire ends a job that is worth nothing any more.
func (d *Settler) Expire(now quantity.Instant, j *record.Job, why string, out *protocol.Out) {
	if !j.AtRest() {
		d.End(now, j, job.Verdict{State: job.Expired, Reason: why}, out)
	}
}

// End gives a job its final verdict as soon as all claims are settled, and, where it failed, as soon as its counted output is published:
// there will be no more output. A cancellation waits for no node. Any verdict is too late for a job that is wholly committed: it finishes,
// if its output is in its place in time. Closes is how long either waits for output.
func (d *Settler) End(now quantity.Instant, j *record.Job, v job.Verdict, out *protocol.Out) {
	if j.Ending().Final() || j.Complete() && v.State != job.Finished && now < d.Closes(j) {
		return
	}
	if len(j.Claims()) > 0 || v.State == job.Failed && len(j.Output().List()) > 0 && now < d.Closes(j) {
		if was := j.Ending().Planned().State; was != v.State && was != job.Cancelled {
			d.plan(now, j, v)
		}
		return
	}
	d.book.Fact(out, protocol.Fact{Kind: protocol.Ended, Job: j.ID, At: now, Body: &protocol.Final{Verdict: v}})
	d.book.Stir(j) // its alarm at Closes is void
}

// plan sets the verdict that a job ends with once its claims are settled, and makes its nodes be told to stop.
func (d *Settler) plan(now quantity.Instant, j *record.Job, v job.Verdict) {
	j.MakeEnding().Plan(now, v)
	j.ClaimSet().Resend() // Stop goes out with the next look at what is overdue
	d.book.Touch(j)
}

// Settled decides, after a claim is settled, whether the job is over.
func (d *Settler) Settled(now quantity.Instant, j *record.Job, out *protocol.Out) {
	e := j.Ending()
	switch {
	case e.Final():
	case now >= d.Closes(j):
		d.End(now, j, unconfirmed(j), out)
	case j.Complete() && len(j.Output().List()) > 0:
	case j.Complete():
		v := job.Verdict{State: job.Finished, Reason: "all of it is committed"}
		if bad := j.Progress().Skipped(); bad.Len() > 0 {
			v.Reason = fmt.Sprintf("all of it is committed but for %s: %s", counted(bad.Len(), "bad "+j.Spec.UnitName()),
				output.Spans(bad, j.Spec))
		}
		d.End(now, j, v, out)
	case e.Stopping():
		d.End(now, j, e.Planned(), out)
	default:
		if why := d.Hopeless(j); why != "" {
			d.End(now, j, job.Verdict{State: job.Failed, Reason: why}, out)
		}
	}
	d.Surrendered(j, out)
}

// counted is a number of things in words.
func counted(n int64, of string) string {
	if n != 1 {
		of += "s"
	}
	return fmt.Sprintf("%d %s", n, of)
}

// Closes is when a job that only waits for its output to be published ends without it; Never for other jobs. The time counts from when its
// last subjob was settled or its home came up; a publication does not restart it. After a pause nodes speak first.
func (d *Settler) Closes(j *record.Job) quantity.Instant {
	e := j.Ending()
	over := j.Complete() || e.Planned().State == job.Failed || e.Leaving() != ""
	if !over || len(j.Output().List()) == 0 || len(j.Claims()) > 0 || e.Final() {
		return quantity.Never
	}
	at := max(j.History().Settled(), d.pauses.since).Add(mostPublished)
	if j.Complete() {
		at = min(at, e.OverBy())
	}
	return max(d.pauses.hearing, at)
}

// unconfirmed is the verdict of a job whose output was not all published in time. The rest is published when its nodes answer again.
func unconfirmed(j *record.Job) job.Verdict {
	v, did, in, why := j.Ending().Planned(), "", mostPublished, j.Ending().Leaving()
	if j.Complete() {
		did = "all of it was done, but "
	}
	switch v.State {
	case job.Waiting:
		v.State = job.Failed
	case job.Cancelled:
		in, why = ending.MostCancelling, v.Reason
	default:
		why = v.Reason
	}
	if why != "" {
		why += "; "
	}
	list := j.Output().List()
	v.Reason = fmt.Sprintf("%s%snode %s did not say within %v that the output of %s is in its place: it comes when the node is heard again",
		why, did, output.Nodes(list), in, output.Units(list, j.Spec))
	return v
}
