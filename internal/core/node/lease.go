package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// begin hands a due lease to the executor, unless its place is still in use: a slice is never given on before what ran
// there is confirmed gone. A lease whose whole time passes like this ends without having started; begin returns true then.
func (n *Node) begin(now quantity.Instant, l *lease, out *protocol.Out) (over bool) {
	why := ""
	if n.ailing != "" {
		why = "the node was in trouble: " + n.ailing
	}
	if n.memory.short {
		why = shortOfMemory
	}
	n.each(l.slice, l.also, func(s *slice) {
		if r, held := s.heldBy(now); held {
			why = string(s.id) + ": " + describe(&r)
		}
		if !s.known {
			why = string(s.id) + " is not there any more"
		}
		for _, r := range s.time.Sold() {
			if r.Start >= l.start {
				break
			}
			if r.Kind == protocol.ForLease {
				why = "what ran before it on " + string(s.id) + " was not confirmed gone"
			}
		}
	})
	switch {
	case now >= l.end:
		if why == "" {
			why = "the daemon was late"
		}
		n.end(now, l, ownResult(now, l, job.Stopped, "not started within its window: "+why), true, out)
		return true
	case why == "":
		n.turn(l, issued)
		n.outstanding(now, l, out)
	default:
		n.stir(l) // what is in its way, and until when, changes with time
	}
	return false
}

// end records that a subjob is over, frees its time and tells its home. Bare: the executor never heard of it.
func (n *Node) end(now quantity.Instant, l *lease, r *job.Result, bare bool, out *protocol.Out) {
	n.fact(out, protocol.Fact{Kind: protocol.SubjobEnded, Token: l.token, Job: l.job, Result: r, Flag: bare})
	l.fresh = true
	n.outstanding(now, l, out)
}

// ownResult is what the node itself says of a subjob that the executor has no result of: nothing of it counts.
func ownResult(now quantity.Instant, l *lease, o job.Outcome, detail string) *job.Result {
	return &job.Result{Outcome: o, ExitCode: -1, Progress: l.rng.From, Start: l.at, End: now, Detail: detail}
}

// startedNow: the process runs.
func (n *Node) startedNow(now quantity.Instant, in *protocol.Message, b *protocol.Beginning, out *protocol.Out) {
	l := n.lease(in.Token)
	switch {
	case l == nil: // no lease stands for it: it may not run
		n.send(out, protocol.Message{Kind: protocol.Stop, To: n.executor(), Token: in.Token, Job: in.Job, Body: &protocol.Halt{Text: "no lease stands for it"}})
	case l.issued():
		n.markStarted(now, l, b.At, out)
	}
}

func (n *Node) markStarted(now quantity.Instant, l *lease, at quantity.Instant, out *protocol.Out) {
	if l.seen() {
		return
	}
	if at == 0 {
		at = now
	}
	n.fact(out, protocol.Fact{Kind: protocol.SubjobStarted, Token: l.token, Job: l.job, At: at})
	n.send(out, protocol.Message{Kind: protocol.Running, To: l.home(), Token: l.token, Job: l.job, Body: out.Beginning(protocol.Beginning{Slice: l.slice, At: at})})
	n.outstanding(now, l, out)
}

// exited: the process tree is confirmed gone.
func (n *Node) exited(now quantity.Instant, in *protocol.Message, c *protocol.Conclusion, out *protocol.Out) {
	l := n.lease(in.Token)
	defer n.cleared(now, in.Token, out)
	if l == nil {
		if i := slices.IndexFunc(n.strays, func(s stray) bool { return s.token == in.Token }); i >= 0 {
			n.discard(n.strays[i].token, n.strays[i].job, out)
			n.strays = slices.Delete(n.strays, i, i+1)
		}
		return
	}
	if l.issued() {
		r := checked(now, l, c.Result)
		if !l.ended() {
			n.learn(now, l, r)
			n.noteEnd(now, l, r)
		}
		n.end(now, l, n.blamed(l, l.excused(r)), false, out)
	}
}

// checked is the executor's result made safe to count: progress never leaves the lease's range. The result itself is
// shared and not written to.
func checked(now quantity.Instant, l *lease, r *job.Result) *job.Result {
	if r == nil {
		return ownResult(now, l, job.NodeFailed, "the executor did not say how it ended")
	}
	if r.Progress < l.rng.From || r.Progress > l.rng.To {
		c := *r
		c.Progress = min(max(c.Progress, l.rng.From), l.rng.To)
		return &c
	}
	return r
}

// discard lets the executor put away the directories of a subjob that counts for nothing.
func (n *Node) discard(t job.Token, id job.ID, out *protocol.Out) {
	n.send(out, protocol.Message{Kind: protocol.Settle, To: n.executor(), Token: t, Job: id, Body: &protocol.Settlement{}})
}

// acknowledged: the home has the result; what it committed decides where the output goes.
func (n *Node) acknowledged(now quantity.Instant, in *protocol.Message, a *protocol.Acknowledgement, out *protocol.Out) {
	l := n.lease(in.Token)
	if l == nil && !a.Range.Empty() { // nothing of it is left here: it was published before
		n.sendPublished(in.From, in.Token, in.Job, out)
	}
	if l == nil || !l.ended() || l.settled() || l.job != in.Job {
		return
	}
	n.fact(out, protocol.Fact{Kind: protocol.ResultSettled, Token: l.token, Job: l.job, Range: a.Range})
	if l.bare { // there are no directories
		n.gone(l, out)
		return
	}
	n.outstanding(now, l, out)
}

// settled: the directories are where they belong.
func (n *Node) settled(in *protocol.Message, out *protocol.Out) {
	if l := n.lease(in.Token); l != nil && l.settled() {
		n.gone(l, out)
	}
}

// gone drops a lease of which nothing is left, and tells its home where something of it counts. Should that be lost, the
// home asks again and is told by acknowledged.
func (n *Node) gone(l *lease, out *protocol.Out) {
	n.fact(out, protocol.Fact{Kind: protocol.LeaseGone, Token: l.token, Job: l.job})
	if !l.settling.Empty() {
		n.sendPublished(l.home(), l.token, l.job, out)
	}
}

func (n *Node) sendPublished(to protocol.Address, t job.Token, id job.ID, out *protocol.Out) {
	n.send(out, protocol.Message{Kind: protocol.Published, To: to, Token: t, Job: id})
}

// stop ends a lease because its home asks. One that was not started ends here; a running one is stopped by the executor
// and ends when it is confirmed gone.
func (n *Node) stop(now quantity.Instant, in *protocol.Message, h *protocol.Halt, out *protocol.Out) {
	if l := n.lease(in.Token); h.Unbegun && l != nil && l.issued() {
		return // it has begun, and was only to be withdrawn if it had not
	}
	n.dropGrant(in.Token) // the Redeem that is under way is not to be honoured any more
	l := n.lease(in.Token)
	if l == nil || l.ended() {
		return
	}
	why := h.Text
	if why == "" {
		why = "stopped by its home"
	}
	if !l.issued() {
		n.end(now, l, ownResult(now, l, job.Stopped, why), true, out)
		return
	}
	first := !l.unwanted() || h.Now && !l.hurried
	l.hurried = l.hurried || h.Now
	n.turn(l, halted)
	if l.why = why; !l.stand.asked { // its entry is over: it has the grace that its home gives it
		l.stand.since = 0
	}
	if first && l.seen() {
		n.outstanding(now, l, out)
	}
}

// extend moves a lease's end, if the time is free.
func (n *Node) extend(now quantity.Instant, in *protocol.Message, e *protocol.Extension, out *protocol.Out) {
	l := n.lease(in.Token)
	why := ""
	switch {
	case l == nil || l.job != in.Job || l.vacated():
		why = "there is no running lease of this token"
	case l.end == e.End && l.rng == e.Range: // asked again
		n.sendExtended(l, in, e, out)
		return
	case now >= l.end:
		why = "the lease is over"
	case e.End <= l.end:
		why = "the lease ends at " + clock(l.end) + ", which is not earlier"
	case e.Range.From != l.rng.From || e.Range.To < l.rng.To:
		why = "it does not go on from " + l.rng.String()
	case l.stuck() || l.unwanted():
		why = "it is being stopped"
	case n.cfg.Fixed:
		why = "leases of this node are not extended: what runs here can't be given more time"
	default:
		n.each(l.slice, l.also, func(s *slice) {
			if w, ok := n.usable(s); !ok {
				why = w
			} else if r, ok := s.time.Free(now, l.end, e.End, l.job); !ok {
				why = describe(&r)
			}
		})
		if why == "" {
			peak := l.peak
			if e.Peak != (trp.Peak{}) {
				peak = e.Peak
			}
			why = n.overcrowds(now, now, e.End, peakOf(peak, l.demand), n.hosted(l.slice, l.also), l.token)
		}
	}
	if why != "" {
		n.refuse(in, e.Ask, e.Slice, nil, why, out)
		return
	}
	from := l.end
	n.fact(out, protocol.Fact{Kind: protocol.LeaseExtended, Token: l.token, Job: l.job, Range: e.Range, End: e.End, Peak: e.Peak})
	n.each(l.slice, l.also, func(s *slice) { n.withdrawOwn(s, l.job, from, l.end, out) })
	if l.issued() {
		n.sendDeadline(l, out)
	}
	n.sendExtended(l, in, e, out)
}

func (n *Node) sendExtended(l *lease, in *protocol.Message, e *protocol.Extension, out *protocol.Out) {
	n.send(out, protocol.Message{Kind: protocol.Extended, To: in.From, Body: &protocol.Extension{Ask: e.Ask, Slice: l.slice, Range: l.rng, End: l.end}, Token: l.token, Job: l.job})
}

func (n *Node) sendDeadline(l *lease, out *protocol.Out) {
	n.send(out, protocol.Message{Kind: protocol.Deadline, To: n.executor(), Token: l.token, Job: l.job, Body: &protocol.Shift{End: l.end, Range: l.rng, Text: l.cut}})
}

// report passes a running subjob's progress on to its home, and gives its time back if nothing of it is there any more.
func (n *Node) report(now quantity.Instant, in *protocol.Message, o *protocol.Observation, out *protocol.Out) {
	l := n.lease(in.Token)
	if l == nil || !l.seen() || l.ended() {
		return
	}
	if o.Vacant && !l.vacated() {
		n.fact(out, protocol.Fact{Kind: protocol.SubjobVacated, Token: l.token, Job: l.job})
		n.outstanding(now, l, out)
		n.cleared(now, l.token, out)
	}
	if o.Progress > l.rng.From {
		n.wishes.Report(now, l.token, o.Progress)
	}
	said := *o
	said.Slice, said.Remains = l.slice, false
	n.send(out, protocol.Message{Kind: protocol.Report, To: l.home(), Token: l.token, Job: l.job, Body: &said})
}
