package leases

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// Config is how leases behave.
type Config struct {
	// ResultRetry is the time between two sendings of an unacknowledged message.
	ResultRetry time.Duration
	// Overdue is how long after its lease's end a subjob may remain unconfirmed before the executor is told to stop it.
	Overdue time.Duration
	// TruncateGrace is what a running subjob still gets at most when its time is taken at once.
	TruncateGrace time.Duration
	// Fixed: no lease is extended.
	Fixed bool
}

// Stray is why what runs is stopped that no lease stands for.
const Stray = "no lease stands for it"

// Runner starts, stops and ends what the leases of a node stand for.
type Runner struct {
	cfg       Config
	record    *record.Recorder
	inventory *inventory.Inventory
	leases    *Leases
	mail      mail
}

// NewRunner returns what runs leases.
func NewRunner(cfg Config, of *Leases) *Runner {
	return &Runner{cfg: cfg, record: of.record, inventory: of.inventory, leases: of, mail: mail{of.record}}
}

// attention is when a lease needs attention without a message: something is sent again, it is to begin, or its end has passed.
func (u *Runner) attention(now quantity.Instant, l *Lease) quantity.Instant {
	switch {
	case l.phase == Gone:
		return quantity.Never
	case l.retry != 0:
		return l.retry
	case l.Vacated() || !u.inventory.Confirmed():
		return quantity.Never
	case l.Issued():
		return l.terms.End.Add(u.cfg.ResultRetry)
	case l.terms.Start > now:
		return l.terms.Start
	default: // its place is still in use
		return u.tries(now, l)
	}
}

// tries is when a lease that is due looks again whether its place is free, if nothing changes before: when what others hold of it ends, at
// the latest at its own end.
func (u *Runner) tries(now quantity.Instant, l *Lease) quantity.Instant {
	at := l.terms.End
	u.leases.each(l, func(s *inventory.Slice) {
		if r, held := s.HeldBy(now); held {
			at = min(at, r.End)
		}
	})
	return at
}

// Next is when a lease needs attention.
func (u *Runner) Next(now quantity.Instant) quantity.Instant {
	u.leases.index.rearm(now, func(l *Lease) quantity.Instant { return u.attention(now, l) })
	return u.leases.index.alarms.Next()
}

// late reports whether a subjob that should be gone was not confirmed gone: its home is told, repeatedly, so that it does not sell the same
// work meanwhile.
func (u *Runner) late(now quantity.Instant, l *Lease) bool {
	return u.inventory.Confirmed() && l.Issued() && !l.Vacated() && (l.Stuck() || now >= l.terms.End.Add(u.cfg.ResultRetry))
}

// SendDue sends what the lease's state asks for now (of one that has begun, the first Start too) and sets when it is sent again.
func (u *Runner) SendDue(now quantity.Instant, l *Lease, out *protocol.Out) {
	u.leases.index.stir(l)
	l.retry = now.Add(u.cfg.ResultRetry)
	t := &l.terms
	late := u.late(now, l)
	if late {
		u.mail.toHome(l, protocol.Report, &protocol.Observation{Slice: t.Slice, Progress: t.Range.From, At: now, Remains: true}, out)
	}
	switch {
	case l.phase == Ended:
		u.mail.result(l, out)
	case l.phase == Settled:
		u.record.Send(out, protocol.Message{
			Kind: protocol.Settle, To: u.record.Executor(), Token: t.Token, Job: t.Job, Generation: t.Generation,
			Body: out.Settlements.Keep(protocol.Settlement{Range: l.settling, Committed: !l.settling.Empty()}),
		})
	case !u.inventory.Confirmed() || l.phase == Storing:
		l.retry = 0
	case l.Stuck():
	case l.phase == Stopping:
		u.mail.toExecutor(l, protocol.Stop, &protocol.Halt{
			Text: l.why, Short: l.stand.Asked || l.stand.Reclaimed, Now: l.hurried || l.stand.Reclaimed || l.lost != "",
		}, out)
	case l.Runs() && now >= t.End.Add(u.cfg.Overdue):
		u.mail.toExecutor(l, protocol.Stop, &protocol.Halt{Text: "it is still there after the end of its lease"}, out)
	case l.phase == Suspending:
		u.mail.toExecutor(l, protocol.Suspend, &protocol.Reason{Text: inventory.ShortOfMemory}, out)
	case l.phase == Resuming:
		u.mail.toExecutor(l, protocol.Resume, nil, out)
	case l.Issued() && !l.Seen() && l.spec != nil:
		u.record.Send(out, protocol.Message{
			Kind: protocol.Start, To: u.record.Executor(), Token: t.Token, Job: t.Job, Generation: t.Generation,
			Body: out.Works.Keep(protocol.Work{Placement: t.Placement, Rank: t.Rank, Spec: l.spec}),
		})
	case !late:
		l.retry = 0
	}
}

// Recover begins a boot: what may have been started counts as started, and what is outstanding of ended subjobs is sent.
func (u *Runner) Recover(now quantity.Instant, out *protocol.Out) {
	for _, l := range u.leases.Ordered() {
		if l.phase == Sold {
			u.leases.change(l, onIssue) // whether it was, the executor will say
		}
		u.SendDue(now, l, out)
	}
}

// Drive starts what is due and sends again what nobody has acknowledged.
func (u *Runner) Drive(now quantity.Instant, out *protocol.Out) {
	due := u.leases.index.attended(now, func(l *Lease) quantity.Instant { return u.attention(now, l) })
	for again := true; again; { // one that ends without having started may have been in the way of another
		again = false
		for _, l := range u.leases.index.pending {
			if l.phase == Sold && u.begin(now, l, out) {
				again = true
			}
		}
	}
	for _, l := range due {
		if l.retry != 0 && l.retry <= now || l.retry == 0 && u.late(now, l) {
			u.SendDue(now, l, out)
		}
	}
}

// begin hands a due lease to the executor, unless its place is still in use: a slice is never given on before what ran there is confirmed
// gone. A lease whose whole time passes like this ends without having started; begin returns true then.
func (u *Runner) begin(now quantity.Instant, l *Lease, out *protocol.Out) (over bool) {
	switch why := u.obstacle(now, l); {
	case now >= l.terms.End:
		why = cmp.Or(why, "the daemon was late")
		u.endUnstarted(now, l, "not started within its window: "+why, out)
		return true
	case why == "" && l.terms.Plan.Resident && u.inventory.Record(l.terms.Slice).Stay() == nil:
		u.endUnstarted(now, l, inventory.ProgramGone, out)
		return true
	case why == "":
		u.leases.each(l, func(s *inventory.Slice) { s.Taken() })
		u.leases.change(l, onIssue)
		u.SendDue(now, l, out)
	default:
		u.leases.index.stir(l) // what is in its way, and until when, changes with time
	}
	return false
}

// obstacle is why a due lease can't begin; empty: it can.
func (u *Runner) obstacle(now quantity.Instant, l *Lease) (why string) {
	if trouble := u.inventory.Trouble(); trouble != "" {
		why = "the node was in trouble: " + trouble
	}
	if u.inventory.Short() {
		why = inventory.ShortOfMemory
	}
	u.leases.each(l, func(s *inventory.Slice) {
		if r, held := s.HeldBy(now); held {
			why = string(s.ID()) + ": " + timeline.Describe(&r)
		}
		if !s.Present() {
			why = string(s.ID()) + " is not there any more"
		}
		if !s.Serves(l.terms.Plan.Residence) {
			why = "the program that stayed on " + string(s.ID()) + " was not confirmed gone"
		}
		for _, r := range s.Sold() {
			if r.Start >= l.terms.Start {
				break
			}
			if r.Kind == protocol.ForLease {
				why = "what ran before it on " + string(s.ID()) + " was not confirmed gone"
			}
		}
	})
	return why
}

// Redeemed confirms again what was redeemed already, with the result if it has ended. It says whether there is such a lease.
func (u *Runner) Redeemed(in *protocol.Message, out *protocol.Out) bool {
	l := u.leases.Of(in.Token)
	if l == nil || l.terms.Job != in.Job {
		return false
	}
	if l.Ended() {
		u.mail.result(l, out)
		return true
	}
	u.mail.leased(l, out)
	if l.Seen() { // the zone asks because it has heard nothing, or has forgotten it in a crash
		u.mail.running(l, l.at, out)
	}
	return true
}

// Made goes on with a lease that was just made: this is what it is to run. It starts nothing: the lease is Sold, and Drive, which every
// step of the node ends with, begins it as soon as its time has come.
func (u *Runner) Made(t job.Token, spec *job.Spec, out *protocol.Out) {
	l := u.leases.Of(t)
	l.spec = spec
	u.mail.leased(l, out)
}

// Started notes that the process of a lease runs.
func (u *Runner) Started(now quantity.Instant, in *protocol.Message, at quantity.Instant, out *protocol.Out) {
	switch l := u.leases.Of(in.Token); {
	case l == nil: // no lease stands for it: it may not run
		u.record.Send(out, protocol.Message{
			Kind: protocol.Stop, To: u.record.Executor(), Token: in.Token, Job: in.Job, Body: &protocol.Halt{Text: Stray},
		})
	case l.Issued():
		u.seen(now, l, at, out)
	}
}

func (u *Runner) seen(now quantity.Instant, l *Lease, at quantity.Instant, out *protocol.Out) {
	if l.Seen() {
		return
	}
	at = cmp.Or(at, now)
	u.record.Fact(out, protocol.Fact{Kind: protocol.SubjobStarted, Token: l.terms.Token, Job: l.terms.Job, At: at})
	u.mail.running(l, at, out)
	u.SendDue(now, l, out)
}

// Found goes on with a lease of an earlier boot whose process lives.
func (u *Runner) Found(now quantity.Instant, l *Lease, f *protocol.Found, out *protocol.Out) {
	u.seen(now, l, f.Started, out)
	u.mail.deadline(l, out)
	if f.Still && l.phase == Running { // nobody knows any more why, nor until when
		u.leases.change(l, onResume)
	}
	u.SendDue(now, l, out)
}

// FoundStuck goes on with one whose processes can't be ended.
func (u *Runner) FoundStuck(now quantity.Instant, l *Lease, out *protocol.Out) {
	u.mail.toExecutor(l, protocol.Stop, &protocol.Halt{Text: "its processes can't be ended"}, out)
	u.SendDue(now, l, out)
}

// Reporting is the lease of a token whose executor may say how far it is; nil: nothing runs under it.
func (u *Runner) Reporting(t job.Token) *Lease {
	l := u.leases.Of(t)
	if l == nil || !l.Seen() || l.Ended() {
		return nil
	}
	return l
}

// Vacate gives back the time of a lease that has nothing left running.
func (u *Runner) Vacate(now quantity.Instant, l *Lease, out *protocol.Out) {
	u.record.Fact(out, protocol.Fact{Kind: protocol.SubjobVacated, Token: l.terms.Token, Job: l.terms.Job})
	u.SendDue(now, l, out)
}

// Report passes a running subjob's progress on to its home.
func (u *Runner) Report(l *Lease, o *protocol.Observation, out *protocol.Out) {
	said := *o
	said.Slice, said.Remains = l.terms.Slice, false
	u.mail.toHome(l, protocol.Report, &said, out)
}

// End records that a subjob is over, frees its time and tells its home. Bare: the executor never knew it.
func (u *Runner) End(now quantity.Instant, l *Lease, r *job.Result, bare bool, out *protocol.Out) {
	u.record.Fact(out, protocol.Fact{Kind: protocol.SubjobEnded, Token: l.terms.Token, Job: l.terms.Job,
		Body: out.SubjobEnds.Keep(protocol.SubjobEnd{Result: r, Bare: bare})})
	l.fresh = true
	u.SendDue(now, l, out)
}

func (u *Runner) endUnstarted(now quantity.Instant, l *Lease, why string, out *protocol.Out) {
	u.End(now, l, l.OwnResult(now, job.Stopped, why), true, out)
}

// Acknowledged: the home has the result; what it committed decides where the output goes.
func (u *Runner) Acknowledged(now quantity.Instant, in *protocol.Message, a *protocol.Acknowledgement, out *protocol.Out) {
	l := u.leases.Of(in.Token)
	if l == nil && !a.Range.Empty() { // nothing of it is left here: it was published before
		u.mail.published(in.From, in.Token, in.Job, out)
	}
	if l == nil || !l.Ended() || l.Settled() || l.terms.Job != in.Job {
		return
	}
	u.record.Fact(out, protocol.Fact{Kind: protocol.ResultSettled, Token: l.terms.Token, Job: l.terms.Job,
		Body: out.Acknowledgements.Keep(protocol.Acknowledgement{Range: a.Range})})
	if l.bare { // there are no directories
		u.gone(l, out)
		return
	}
	u.SendDue(now, l, out)
}

// Settled: the directories of a lease are where they belong.
func (u *Runner) Settled(t job.Token, out *protocol.Out) {
	if l := u.leases.Of(t); l != nil && l.Settled() {
		u.gone(l, out)
	}
}

// gone drops a lease of which nothing is left, and tells its home if any of it counts. If that message is lost, the home asks again and
// Acknowledged answers.
func (u *Runner) gone(l *Lease, out *protocol.Out) {
	u.record.Fact(out, protocol.Fact{Kind: protocol.LeaseGone, Token: l.terms.Token, Job: l.terms.Job})
	if !l.settling.Empty() {
		u.mail.published(l.home(), l.terms.Token, l.terms.Job, out)
	}
}

// Stop ends a lease because its home asks. One that was not started ends here; a running one is stopped by the executor and ends when it is
// confirmed gone.
func (u *Runner) Stop(now quantity.Instant, in *protocol.Message, h *protocol.Halt, out *protocol.Out) {
	l := u.leases.Of(in.Token)
	if l == nil || l.Ended() || h.Unstarted && l.Issued() { // it has begun, and was only to be withdrawn if it had not
		return
	}
	why := h.Text
	why = cmp.Or(why, "stopped by its home")
	if !l.Issued() {
		u.endUnstarted(now, l, why, out)
		return
	}
	first := l.why == "" || h.Now && !l.hurried
	l.hurried = l.hurried || h.Now
	u.halt(l, why)
	if first && l.Seen() {
		u.SendDue(now, l, out)
	}
}

// halt stops a lease that was issued. Its entry is over: it gets the grace of the present stop.
func (u *Runner) halt(l *Lease, why string) {
	u.leases.change(l, onHalt)
	if l.why = why; !l.stand.Asked {
		l.stand.Since = 0
	}
}

// EndLost ends what runs on a slice that has lost its GPU, without the time that it has to end in order: nothing on the GPU can be saved
// any more.
func (u *Runner) EndLost(now quantity.Instant, s *inventory.Slice, why string, out *protocol.Out) {
	for _, l := range u.leases.On(s) {
		if !l.Issued() || l.Stuck() || l.lost != "" {
			continue
		}
		l.lost = why
		u.halt(l, why)
		if l.Seen() {
			u.SendDue(now, l, out)
		}
	}
}

// Withdraw ends what was sold of a slice and has not begun.
func (u *Runner) Withdraw(now quantity.Instant, s *inventory.Slice, why string, out *protocol.Out) {
	for _, l := range u.leases.On(s) {
		if !l.Issued() {
			u.endUnstarted(now, l, why, out)
		}
	}
}

// Unextendable is why a lease can't be extended like this, apart from what its time and its host's memory allow; empty: it can. Same: it
// was extended like this already, and its home gets the answer again.
func (u *Runner) Unextendable(now quantity.Instant, in *protocol.Message, e *protocol.Extension, out *protocol.Out) (why string,
	same bool) {
	l := u.leases.Of(in.Token)
	if l == nil || l.terms.Job != in.Job || l.Vacated() {
		return "there is no running lease of this token", false
	}
	t := &l.terms
	switch {
	case t.End == e.End && t.Range == e.Range: // asked again
		u.mail.extended(l, in, e, out)
		return "", true
	case now >= t.End:
		why = "the lease is over"
	case e.End <= t.End:
		why = "the lease ends at " + timeline.Clock(t.End) + ", which is not earlier"
	case e.Range.From != t.Range.From || e.Range.To < t.Range.To:
		why = "it does not go on from " + t.Range.String()
	case l.Stuck() || l.why != "":
		why = "it is being stopped"
	case u.cfg.Fixed:
		why = "leases of this node are not extended: what runs here can't be given more time"
	default:
		u.leases.each(l, func(s *inventory.Slice) {
			if w, ok := s.Usable(); !ok {
				why = w
			} else if r, ok := s.Free(now, t.End, e.End, t.Job); !ok {
				why = timeline.Describe(&r)
			}
		})
	}
	return why, false
}

// Extend moves a lease's end.
func (u *Runner) Extend(in *protocol.Message, e *protocol.Extension, out *protocol.Out) {
	u.record.Fact(out, protocol.Fact{Kind: protocol.LeaseExtended, Token: in.Token, Job: in.Job,
		Body: &protocol.Extent{Range: e.Range, End: e.End, Peak: e.Peak}})
}

// TellExtended tells executor and home of an end that was moved.
func (u *Runner) TellExtended(in *protocol.Message, e *protocol.Extension, out *protocol.Out) {
	l := u.leases.Of(in.Token)
	if l.Issued() {
		u.mail.deadline(l, out)
	}
	u.mail.extended(l, in, e, out)
}

// Truncation is a lease that a reservation takes time from: it ends at End, or, withdrawn, never begins.
type Truncation struct {
	*Lease
	End       quantity.Instant
	Withdrawn bool
}

// Truncations are the leases on a slice that r truncates if it may. A running subjob ends where the reservation begins, or a moment from
// now if it has begun; what has not begun is withdrawn.
func (u *Runner) Truncations(now quantity.Instant, s *inventory.Slice, r *protocol.Reservation) (list []Truncation) {
	for _, l := range u.leases.On(s) {
		o, hit := timeline.Overlap(r, max(now, l.terms.Start), l.terms.End)
		if !hit {
			continue
		}
		if !l.Issued() {
			list = append(list, Truncation{l, o.Start, true})
			continue
		}
		end := o.Start
		if end <= now {
			end = now.Add(u.atOnce(l))
		}
		if end < l.terms.End { // else it is over by then
			list = append(list, Truncation{l, end, false})
		}
	}
	return list
}

// leastAtOnce is what a subjob gets at least whose time is taken at once, as far as TruncateGrace allows.
const leastAtOnce = 2 * time.Second

// atOnce is what a running subjob still gets: as long as it takes to end in order, as its job says. More would keep it at its work, since
// it is told so long before its end, while others wait for its place. After a restart nobody knows what it takes.
func (u *Runner) atOnce(l *Lease) time.Duration {
	if l.spec == nil {
		return u.cfg.TruncateGrace
	}
	return min(u.cfg.TruncateGrace, max(leastAtOnce, l.spec.Launch.Grace, l.spec.Launch.WarnBefore))
}

// Truncate takes sold time back for a reservation that may truncate it: Truncated, or an end without a start. The homes learn it from the
// Results.
func (u *Runner) Truncate(now quantity.Instant, s *inventory.Slice, r *protocol.Reservation, out *protocol.Out) {
	cause := "time taken (" + r.Kind.String() + ")"
	if r.Source != "" {
		cause += " by " + r.Source
	}
	for _, c := range u.Truncations(now, s, r) {
		if c.Withdrawn {
			u.endUnstarted(now, c.Lease, "withdrawn: "+cause+" from "+timeline.Clock(c.End), out)
			continue
		}
		u.record.Fact(out, protocol.Fact{Kind: protocol.Truncated, Token: c.terms.Token, Job: c.terms.Job,
			Body: &protocol.Truncation{End: c.End, Text: cause}})
		u.mail.deadline(c.Lease, out)
	}
}
