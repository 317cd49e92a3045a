package settle

import (
	"time"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/home/backoff"
	"sluice.dev/sluice/internal/core/home/learn"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Result is the fifth step. It commits only if the claim is current; a Result of a released claim is refused, and one
// that was settled before gets the same answer again.
func (d *Settler) Result(now quantity.Instant, in *protocol.Message, end *protocol.Conclusion, out *protocol.Out) {
	counts := &protocol.Acknowledgement{}
	ack := protocol.Message{Kind: protocol.ResultAck, To: in.From, Token: in.Token, Job: in.Job, Body: counts}
	j := d.book.Job(in.Job)
	if j == nil || j.Epoch != in.Epoch {
		d.claims.Send(out, ack)
		return
	}
	if gang, st, c, i := d.claims.Member(in); c != nil && c.Generation.Number() == in.Generation.Number() {
		d.memberGone(now, gang, st, c, i, d.plausible(now, c, end.Result), out)
		return
	}
	c := j.ClaimSet().Claim(in.Token)
	if c == nil || c.Generation.Number() != in.Generation.Number() {
		counts.Range = Answered(j, in.Token)
		d.claims.Send(out, ack)
		return
	}
	d.conclude(now, j, c, d.plausible(now, c, end.Result), in.From, out)
}

// plausible is a result with what can be of its times and its use: what a job and its queue have had is made of them, so a node that is
// wrong about them, or lies, must not make that less than nothing, nor more than a claim can take.
func (d *Settler) plausible(now quantity.Instant, c *protocol.Claim, r *job.Result) *job.Result {
	is := *r
	if r.End != 0 {
		is.End = c.Between(r.End, now, d.cfg.Skew)
	}
	if r.Start != 0 {
		is.Start = c.Between(r.Start, now, d.cfg.Skew)
		is.End = max(is.Start, is.End)
	}
	longest := max(0, now.Sub(c.Asked)) + d.cfg.Skew
	is.Prepare, is.Unpack = min(max(0, r.Prepare), longest), min(max(0, r.Unpack), longest)
	is.LeftNothing = r.LeftNothing && !r.Checkpoint && len(c.Members) == 0 // of a gang there is one entry for all, and one result
	for k := range is.Peak {
		is.Peak[k] = min(max(0, r.Peak[k]), mostPeak)
	}
	if is == *r {
		return r
	}
	mended := is
	return &mended
}

// mostPeak bounds the use that is believed, 1 PiB of memory: sums of it stay numbers.
const mostPeak = 1 << 50

// conclude settles a claim by its result, and tells its node, or those of its members.
func (d *Settler) conclude(
	now quantity.Instant, j *record.Job, standing *protocol.Claim, r *job.Result, node protocol.Address, out *protocol.Out,
) {
	c := *standing
	d.claims.Delays.Taken(j, standing)
	remained := j.ClaimSet().State(c.Token).Remains()
	if remained != 0 {
		j.MakeBackoff().Outlives(true)
	} else {
		j.Backoff().Outlives(false)
	}
	if r.Start != 0 {
		d.watch.Began(j, r.Start) // Running was lost
	}
	done := completed(j, &c, r)
	learned, skip := learn.Result(now, j.Spec, j.Learned(), &c, r, done, d.supply)
	if skip {
		done = c.Range
	}
	q := j.Queue().Calibration()
	q.Queue = j.Queue().Name
	if learn.Observe(d.cfg.Trust, j.Spec, &c, r, done, j.Learned().Measures(j.Spec), &learned, &q.Trust, d.supply) {
		d.book.Fact(out, protocol.Fact{Kind: protocol.QueueCalibrated, Body: &q})
	}
	d.watch.Ends(j, standing, r, done, out)
	if done.Empty() {
		d.book.Fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: c.Token, At: now,
			Body: out.ClaimEnds.Keep(protocol.ClaimEnd{Result: r})})
	} else {
		d.book.Fact(out, protocol.Fact{Kind: protocol.Committed, Job: j.ID, Token: c.Token, At: now,
			Body: out.ClaimEnds.Keep(protocol.ClaimEnd{Range: done, Result: r, Skipped: skip})})
	}
	d.book.Fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Body: &learned})
	if skip {
		done = job.Range{} // there is nothing to publish
	}
	if j.Complete() {
		d.teach(j, out)
	}
	j.Output().Told(now)
	d.book.ArmOutput(j)
	if len(c.Members) > 0 {
		d.confirm(j.ID, c.Members, done, out)
	} else {
		d.acknowledge(node, j.ID, c.Token, done, out)
	}
	d.claims.Delays.Ended(now, j, r)
	if bad := learned.Failures + learned.Kills + j.Backoff().Outlived(); bad > 0 && !j.Complete() && j.Ending().Leaving() == "" {
		d.claims.Delays.Rest(now, j, d.pause(bad, remained, c.End))
	}
	d.Settled(now, j, out)
}

// pause is for how long a job asks for nothing after so many bad ends in a row; as long as its processes outlived the lease, if they did:
// the slice could not be sold meanwhile.
func (d *Settler) pause(bad int, remained, end quantity.Instant) time.Duration {
	pause := d.cfg.Backoff << min(bad-1, 6)
	if remained != 0 {
		pause = max(pause, min(backoff.Most, remained.Sub(end)))
	}
	return pause
}

// Answered is the part of a settled subjob that was published.
func Answered(j *record.Job, t job.Token) job.Range {
	p := j.History().Of(t)
	if p == nil || p.Skipped {
		return job.Range{}
	}
	return p.Committed
}

// completed is the part of a claim that a result completes: as far as the result says and within the claim, on the grid or at its end, and
// where the job goes on from checkpoints only with the one that belongs to it, unless it finishes the job: a gang does not if its first
// member has all done and another failed. Success alone says nothing about the claim's end: it may have been extended without the node, or
// without the program, having heard of it.
func completed(j *record.Job, c *protocol.Claim, r *job.Result) job.Range {
	to := min(r.Progress, c.Range.To)
	if j.Spec.Kind == job.Rigid && !j.Spec.Saves && r.Outcome != job.Done {
		to = c.Range.From
	}
	if to < c.Range.To && !learn.Suspected(j.Learned().Suspects, c.Range.From) {
		to = max(c.Range.From, to/j.Spec.Grid*j.Spec.Grid)
	}
	if j.Spec.Resumes() && !r.Checkpoint && (to < j.Spec.Total || len(c.Members) > 0 && r.Outcome != job.Done) {
		to = c.Range.From
	}
	return job.Range{From: c.Range.From, To: max(to, c.Range.From)}
}

// RedeemRefused: a node has made a claim no lease, and never will.
func (d *Settler) RedeemRefused(now quantity.Instant, in *protocol.Message, r *protocol.Refusal, out *protocol.Out) {
	if j, st, c, i := d.claims.Member(in); c != nil {
		if st.Course(c).Refused(i, r.Text) {
			d.proceed(now, j, st, c, out)
		}
		return
	}
	if j, st := d.claims.StateOf(in); j != nil {
		d.claims.BackOff(now, j, nil, st.WonBy(), r.Text)
		d.book.Fact(out, protocol.Fact{Kind: protocol.Released, Job: in.Job, Token: in.Token, At: now,
			Body: &protocol.ClaimEnd{Text: r.Text}})
		d.Settled(now, j, out)
	}
}

// memberGone: a member's process is gone. Unless it was done the others are stopped.
func (d *Settler) memberGone(now quantity.Instant, j *record.Job, st *standing.ClaimState, c *protocol.Claim, i int, r *job.Result,
	out *protocol.Out) {
	if i == 0 && r.Start != 0 {
		d.watch.Began(j, r.Start)
	}
	if st.Course(c).Gone(i, r) {
		d.proceed(now, j, st, c, out)
	}
}

// proceed settles a gang's claim once nothing of any member is left; until then it stops those that are left if one has failed them.
func (d *Settler) proceed(now quantity.Instant, j *record.Job, st *standing.ClaimState, c *protocol.Claim, out *protocol.Out) {
	d.book.Stir(j)
	course := st.Course(c)
	if !course.Over() {
		if course.Broken() != "" {
			d.claims.RepeatGang(now, j, st, c, out)
		}
		return
	}
	if r, why := course.Result(); r != nil {
		d.conclude(now, j, c, r, protocol.Address{}, out)
	} else {
		members := c.Members
		d.claims.BackOff(now, j, nil, st.WonBy(), why)
		d.book.Fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: c.Token, At: now, Body: &protocol.ClaimEnd{Text: why}})
		d.confirm(j.ID, members, job.Range{}, out)
		d.Settled(now, j, out)
	}
}

// confirm says to the nodes of a settled gang what became of it.
func (d *Settler) confirm(id job.ID, members []protocol.Member, done job.Range, out *protocol.Out) {
	for i := range members {
		d.acknowledge(gang.At(&members[i]), id, members[i].Token, done, out)
	}
}
