package leases

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Terms are what was sold, as they stand now. Durable.
type Terms struct {
	Token      job.Token
	Job        job.ID
	Epoch      uint32         // of the job's home
	Generation job.Generation // of the job's life that it was sold to
	protocol.Terms
}

// Stand is what was done to a lease for its host's memory.
type Stand struct {
	// Since is when its entry began, Resumed when its last one ended by going on; 0: none.
	Since, Resumed quantity.Instant
	Times          uint8
	// Asked to yield for want of memory; Reclaimed: it is ended at once.
	Asked, Reclaimed bool
}

// Lease is the durable right to run one subjob, from LeaseMade to LeaseGone.
type Lease struct {
	terms Terms
	phase Phase
	at    quantity.Instant // durable: when it was seen to run, 0 if it was not
	// Durable, once it has ended: how, whether the executor ever heard of it, and what its home committed of it.
	result   *job.Result
	bare     bool
	settling job.Range
	sum      uint64 // its part of the digest

	// Soft. The spec is needed for Start alone, and a boot never starts what an earlier one has not.
	spec  *job.Spec
	why   string // its home wants it gone, or its node does; empty if not
	stand Stand
	// lost is why it has no GPU any more; empty: it has.
	lost string
	// restless: it can't be suspended.
	restless bool
	// hurried: its home has it stopped without the rest of its grace.
	hurried bool
	fresh   bool             // it ended in this boot
	retry   quantity.Instant // when the outstanding message is sent again; 0 if none is

	// Its alarm, whether that is to be set again, and whether it waits to begin.
	slot    int
	stirred dirty.Mark
	pending bool
}

// Token of the subjob.
func (l *Lease) Token() job.Token { return l.terms.Token }

// Job that it is of.
func (l *Lease) Job() job.ID { return l.terms.Job }

// Terms of it.
func (l *Lease) Terms() Terms { return l.terms }

// Phase that it is in.
func (l *Lease) Phase() Phase { return l.phase }

// Stand is what was done to it for its host's memory.
func (l *Lease) Stand() Stand { return l.stand }

// Restless: it can't be suspended.
func (l *Lease) Restless() bool { return l.restless }

// Why its home wants it gone, or its node does; empty: neither.
func (l *Lease) Why() string { return l.why }

// Lost is why it has no GPU any more; empty: it has.
func (l *Lease) Lost() string { return l.lost }

// Started is when its process was seen; 0: it was not.
func (l *Lease) Started() quantity.Instant { return l.at }

// Issued: the executor may know of it, and it has not ended.
func (l *Lease) Issued() bool { return l.phase > Sold && l.phase < Ended }

// Runs: its process was seen, and nobody has asked it to end.
func (l *Lease) Runs() bool { return l.phase >= Running && l.phase <= Resuming }

// Seen: its process was seen at some time.
func (l *Lease) Seen() bool { return l.at != 0 }

// Vacated: its process tree is confirmed gone and its time is free, whether or not it is known how it ended.
func (l *Lease) Vacated() bool { return l.phase >= Storing }

// Stuck: processes of it remain that can't be ended.
func (l *Lease) Stuck() bool { return l.phase == Stuck }

// Ended: its process tree is confirmed gone, or nothing was ever started.
func (l *Lease) Ended() bool { return l.phase >= Ended }

// EndedBefore: it ended in an earlier boot.
func (l *Lease) EndedBefore() bool { return l.Ended() && !l.fresh }

// Settled: its home has the result.
func (l *Lease) Settled() bool { return l.phase >= Settled }

// Rigid: it is worth nothing before its end, as far as that is known.
func (l *Lease) Rigid() bool { return l.spec != nil && l.spec.Kind == job.Rigid }

// Peak is what is counted for it against the host's memory.
func (l *Lease) Peak() trp.Peak { return joint.PeakOf(l.terms.Peak, l.terms.Demand) }

// OwnResult is what the node itself says of a subjob that the executor has no result of: nothing of it counts.
func (l *Lease) OwnResult(now quantity.Instant, o job.Outcome, detail string) *job.Result {
	return &job.Result{Outcome: o, ExitCode: -1, Progress: l.terms.Range.From, Start: l.at, End: now, Detail: detail}
}

// Checked is the executor's result made safe to count: progress never leaves the lease's range. The result itself is shared and not written
// to.
func (l *Lease) Checked(now quantity.Instant, r *job.Result) *job.Result {
	if r == nil {
		return l.OwnResult(now, job.NodeFailed, "the executor did not say how it ended")
	}
	of := l.terms.Range
	if r.Progress < of.From || r.Progress > of.To {
		c := *r
		c.Progress = min(max(c.Progress, of.From), of.To)
		return &c
	}
	return r
}

// Excused is the result of a subjob that was suspended, or was asked to yield, for its host's memory: that it came no further is not its
// own failure, and how long it took is nothing to learn from. What it has completed counts as ever.
func (l *Lease) Excused(r *job.Result) *job.Result {
	if l.stand == (Stand{}) || r.Outcome != job.Yielded && r.Outcome != job.DeadlineKilled {
		return r
	}
	c := *r
	c.Outcome = job.Stopped
	if c.Detail == "" {
		c.Detail = inventory.ShortOfMemory
	}
	return &c
}

// home is the zone that it belongs to.
func (l *Lease) home() protocol.Address {
	return protocol.Address{Role: protocol.Zone, ID: string(l.terms.Zone)}
}

func (l *Lease) hash() uint64 {
	t := &l.terms
	h := t.Token.Mix(record.Hash(record.TagLease)).Text(string(t.Job)).Int(int64(t.Epoch), int64(t.Generation)).Text(string(t.Zone)).Text(
		string(t.Slice))
	h = t.Range.Mix(job.MixIDs(h, t.Also)).Int(int64(t.Start), int64(t.End))
	h = t.Rank.Mix(t.Plan.Mix(t.Peak.Mix(t.Demand.Mix(h)))).Bool(l.Seen(), l.Stuck(), l.bare, l.Settled(), l.phase == Storing).Int(
		int64(l.at)).Text(t.Text)
	return digest.Optional(l.settling.Mix(h), l.result).Sum()
}

// facts appends those that fold to it.
func (l *Lease) facts(i *inventory.Inventory, out []protocol.Fact) []protocol.Fact {
	t := &l.terms
	out = append(out, protocol.Fact{Kind: protocol.LeaseMade, Token: t.Token, Job: t.Job, Epoch: t.Epoch, Generation: t.Generation,
		Body: new(t.Terms)})
	if l.Seen() {
		out = append(out, protocol.Fact{Kind: protocol.SubjobStarted, Token: t.Token, Job: t.Job, At: l.at})
	}
	if l.Stuck() {
		i.Each(t.Slice, t.Also, func(s *inventory.Slice) {
			c := s.Condition()
			out = append(out, protocol.Fact{Kind: protocol.Quarantined, Slice: s.ID(), Token: t.Token, At: c.Since,
				Body: &protocol.Reason{Text: c.Why}})
		})
	}
	if l.phase == Storing {
		out = append(out, protocol.Fact{Kind: protocol.SubjobVacated, Token: t.Token, Job: t.Job})
	}
	if l.Ended() {
		out = append(out, protocol.Fact{Kind: protocol.SubjobEnded, Token: t.Token, Job: t.Job,
			Body: &protocol.SubjobEnd{Result: l.result, Bare: l.bare}})
	}
	if l.Settled() {
		out = append(out, protocol.Fact{Kind: protocol.ResultSettled, Token: t.Token, Job: t.Job,
			Body: &protocol.Acknowledgement{Range: l.settling}})
	}
	return out
}
