package claims

import (
	"slices"

	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Redeem sends the third step. It is repeated until the node answers, and idempotent by the token.
func (d *Claimer) Redeem(j *record.Job, c *protocol.Claim, out *protocol.Out) {
	d.Send(out, protocol.Message{
		Kind: protocol.Redeem, To: Node(c), Token: c.Token, Job: j.ID, Epoch: j.Epoch, Generation: c.Generation.Number(),
		Body: out.Works.Keep(protocol.Work{Placement: c.Placement, Rank: protocol.RankOf(j.Spec, j.Queue().Weight), Spec: j.Spec}),
	})
}

// StateOf finds the job and the claim that a node's message is about, of a gang by any member's token; nil if the claim is settled.
func (d *Claimer) StateOf(in *protocol.Message) (*record.Job, *standing.ClaimState) {
	j, st := d.standing(in)
	if st == nil {
		j, st, _, _ = d.Member(in)
	}
	return j, st
}

// Leased: a node has made a claim a lease.
func (d *Claimer) Leased(in *protocol.Message, out *protocol.Out) {
	if j, st, c, i := d.Member(in); c != nil {
		d.memberLeased(j, st, c, i)
		return
	}
	switch j, st := d.standing(in); {
	case st == nil:
		d.disown(in, out)
	case !st.Known():
		st.Confirm()
		d.Delays.Taken(j, j.ClaimSet().Claim(in.Token))
		d.book.Stir(j)
	}
}

// Running: a subjob has begun.
func (d *Claimer) Running(now quantity.Instant, in *protocol.Message, b *protocol.Beginning, out *protocol.Out) {
	if j, st, c, i := d.Member(in); c != nil {
		d.memberLeased(j, st, c, i) // nobody runs without a lease
		if c.Token != in.Token {
			return // of a gang the first member's counts
		}
	}
	if j, st := d.standing(in); st != nil {
		d.begins(now, j, st, b.At)
	} else {
		d.disown(in, out)
	}
}

// Report: a subjob says how far it is, or its node that what it has left is being stored. Of a gang any member's word of that counts for
// all: none is settled alone.
func (d *Claimer) Report(now quantity.Instant, in *protocol.Message, o *protocol.Observation, out *protocol.Out) {
	if o.Storing {
		if j, st := d.StateOf(in); st != nil {
			st.Store(now)
			d.book.Stir(j)
		}
	}
	if _, _, c, _ := d.Member(in); c != nil && c.Token != in.Token {
		return // of a gang the first member's counts
	}
	if j, st := d.standing(in); st == nil {
		d.disown(in, out)
	} else {
		st.Report(o.Progress)
		if st.Running() == 0 { // Running was lost
			d.begins(now, j, st, o.At)
		}
	}
}

// begins notes when a subjob began, by its node's clock, as far as that can be: its use counts from then.
func (d *Claimer) begins(now quantity.Instant, j *record.Job, st *standing.ClaimState, at quantity.Instant) {
	c := j.ClaimSet().Claim(st.Token())
	if at != 0 {
		at = c.Between(at, now, d.cfg.Skew)
	}
	memory := policy.MiB(c.Demand)
	was := st.Running()
	if was != 0 {
		j.Queue().Stop(was, memory)
	}
	if !st.Known() {
		d.Delays.Taken(j, c)
	}
	if at > was && was != 0 {
		d.book.Touch(j) // it has had less than was thought
	}
	st.Begin(at, len(c.Members) == 0 || st.Course(c).Known())
	if at != 0 {
		j.Queue().Begin(at, memory)
		d.watch.Began(j, at)
	}
	d.book.Stir(j)
}

// disown stops a subjob that a node reports and for which no claim stands. A claim is durable before its lease exists, so this one was
// given up while the node was silent. A report that arrives after the subjob's result was taken is ignored.
func (d *Claimer) disown(in *protocol.Message, out *protocol.Out) {
	if in.From.Role != protocol.Node {
		return
	}
	if j := d.book.Job(in.Job); j != nil && slices.ContainsFunc(j.History().Past(), func(p protocol.Past) bool {
		return p.RealEnd != 0 && (p.Token == in.Token || protocol.MemberOf(p.Members, in.Token) >= 0)
	}) {
		return
	}
	halt := &protocol.Halt{Text: "its home has given it up", Now: true}
	d.Send(out, protocol.Message{Kind: protocol.Stop, To: in.From, Token: in.Token, Job: in.Job, Body: halt})
}

// Extend claims the longer range first, then asks the node to move the lease's end: dying in between costs nothing but
// the chance.
func (d *Claimer) Extend(
	now quantity.Instant, j *record.Job, c *protocol.Claim, st *standing.ClaimState, r job.Range, end quantity.Instant, peak trp.Peak,
	out *protocol.Out,
) {
	if c.Peak == (trp.Peak{}) { // it was sold without one, and a zero in a fact changes nothing: a refusal could not take it back
		peak = trp.Peak{}
	}
	st.Extend(c)
	d.book.Fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: j.ID, Token: c.Token,
		Body: &protocol.Extent{Range: r, End: end, Peak: peak}})
	st.Extending(now, d.NewAsk())
	d.sendExtend(j, c, st, out)
}

// sendExtend is repeated until the node answers, and idempotent by what it asks for.
func (d *Claimer) sendExtend(j *record.Job, c *protocol.Claim, st *standing.ClaimState, out *protocol.Out) {
	d.Send(out, protocol.Message{
		Kind: protocol.Extend, To: Node(c), Token: c.Token, Job: j.ID,
		Body: &protocol.Extension{Ask: st.Extension(), Slice: c.Slice, Range: c.Range, End: c.End, Peak: c.Peak},
	})
}

// Extended: the node has moved the lease's end; the claim was extended before it was asked.
func (d *Claimer) Extended(in *protocol.Message, e *protocol.Extension) {
	if j, st := d.standing(in); st != nil && st.Extended(e.Ask) {
		d.book.Stir(j)
	}
}

// NotExtended: the node has not moved the lease's end, so the claim is again what it was.
func (d *Claimer) NotExtended(in *protocol.Message, r *protocol.Refusal, out *protocol.Out) {
	if j, st := d.standing(in); j != nil && r.Ask != 0 && st.Extended(r.Ask) {
		d.book.Stir(j)
		rng, end, peak := st.Before()
		d.book.Fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: j.ID, Token: in.Token,
			Body: &protocol.Extent{Range: rng, End: end, Peak: peak}})
		d.book.Changed(j)
	}
}

// Withdraw asks a claim's node to give it up unless it has begun, or is to be moved or ended; it says whether it does.
func (d *Claimer) Withdraw(now quantity.Instant, j *record.Job, t job.Token, out *protocol.Out) bool {
	st, c := j.ClaimSet().State(t), j.ClaimSet().Claim(t)
	if len(c.Members) > 0 || j.Ending().Stopping() || !st.Withdraw() {
		return false
	}
	d.sendWithdrawal(now, j, c, st, out)
	return true
}

// sendWithdrawal is repeated until the lease is over or has begun, and idempotent.
func (d *Claimer) sendWithdrawal(now quantity.Instant, j *record.Job, c *protocol.Claim, st *standing.ClaimState, out *protocol.Out) {
	st.Send(now)
	halt := &protocol.Halt{Unstarted: true, Text: "withdrawn before it began: something better is known"}
	d.Send(out, protocol.Message{Kind: protocol.Stop, To: Node(c), Token: c.Token, Job: j.ID, Body: halt})
}

// Repeat sends again what a claim's node has not answered.
func (d *Claimer) Repeat(now quantity.Instant, j *record.Job, c *protocol.Claim, st *standing.ClaimState, out *protocol.Out) {
	if len(c.Members) > 0 {
		d.remindGang(now, j, st, c, out)
		return
	}
	if !st.Known() && st.Sent() != 0 { // until its node says something, nothing more of the job is asked of it
		d.Silent(now, j, standing.Slices(c.Slice, c.Also), st.WonBy())
	}
	st.Send(now)
	if st.Withdrawn() {
		d.sendWithdrawal(now, j, c, st, out)
	}
	if st.Extension() != 0 {
		d.sendExtend(j, c, st, out)
	}
	stopping := j.Ending().Stopping()
	if !st.Known() || stopping {
		d.Redeem(j, c, out)
	}
	if stopping {
		stop := halt(now, j, st, j.Ending().Planned().Reason)
		d.Send(out, protocol.Message{Kind: protocol.Stop, To: Node(c), Token: c.Token, Job: j.ID, Body: stop})
	}
}
