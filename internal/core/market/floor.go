package market

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/interest"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Config of an auction.
type Config = auction.Config

// FloorConfig is how a floor works.
type FloorConfig struct {
	// Self is in whose name agents are spoken to.
	Self protocol.Address
	// Policy orders jobs: which are asked first, and without Market which win.
	Policy policy.Policy
	// Market has jobs bid with variants (mechanism jasda); nil: they signal interest (mechanism sja).
	Market *Config
	// Horizon is how far a gap without a known end is offered, MinWindow the shortest gap that is offered at all.
	Horizon, MinWindow time.Duration
	// Starvation is when a job has waited too long, and what it may then be given before others.
	Starvation starvation.Limit
	// Retry is the first pause after which an agent that won nothing is called again, and the first rest of a job that declined.
	Retry time.Duration
	// Close is how long a round waits for agents that have not answered.
	Close time.Duration
}

// Mechanism is how windows are sold.
type Mechanism interface {
	// Sell offers every window that has begun and asks for what is won. Waiting is how many jobs run nowhere. It returns when to look
	// again.
	Sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant
	// Displaces is the job that would get the window behind a running subjob, which ends as the claim says, rather than that the subjob
	// goes on there with a piece of its job; nil if there is none.
	Displaces(now quantity.Instant, j *index.Job, s *window.Slice, c *protocol.Claim, end quantity.Instant, p *atomizer.Piece) *index.Job
	// Retire forgets a job that is over, Remove a slice that is there no more.
	Retire(j *index.Job)
	Remove(s *window.Slice)
	// Declining is why a job has declined last.
	Declining(j *index.Job) (refusal atomizer.Refusal, text string)
	// Missed is the latest window that a job could have used and another got, with its slice; nil if that is not known.
	Missed(now quantity.Instant, j *index.Job) (*window.Slice, status.Given)
}

// Floor is where windows are offered, asked for and cleared. It is a part of an actor: deterministic, without clock or transport, and not
// safe for concurrent use. Soft. It looks only at reported changes: of jobs (Changed, InvalidateJob), of slices (InvalidateSlice), and of
// windows that open and close with time (Turning). It keeps nothing itself: it calls its parts, in order.
type Floor struct {
	board     *window.Board
	est       *index.Estimator
	index     *index.Index
	late      *lateness.Allowance
	relay     *agents.Relay
	mechanism Mechanism
	stats     status.Negotiation
}

// NewFloor makes an empty floor.
func NewFloor(cfg FloorConfig, seller award.Seller) *Floor {
	limit, x, corrects := cfg.Starvation, index.Config{ByQueue: cfg.Policy.Motion() == policy.WithinQueue}, false
	var bids Config
	if cfg.Market != nil {
		bids = cfg.Market.Under(cfg.Policy)
		x.Seniority, corrects = true, !bids.Trusting
		if bids.Starve != 0 {
			limit.After = bids.Starve
		}
	}
	f := &Floor{board: window.NewBoard(cfg.MinWindow)}
	f.est = index.NewEstimator(cfg.Policy, cfg.Horizon, corrects, f.board)
	x.ByQueue = x.ByQueue || cfg.Market != nil && bids.ByIndex(f.est)
	f.index = index.New(x, f.est)
	f.late = lateness.New(limit.WithDefaults(), f.board, f.est, f.index)
	f.relay = agents.NewRelay(agents.Config{Self: cfg.Self, Retry: cfg.Retry, Close: cfg.Close}, f.est, f.index, &f.stats)
	signals := interest.Config{
		Retry: cfg.Retry, Board: f.board, Index: f.index, Est: f.est, Relay: f.relay, Late: f.late, Seller: seller, Stats: &f.stats,
	}
	parts := auction.Parts{
		MinWindow: cfg.MinWindow, Board: f.board, Index: f.index, Est: f.est, Relay: f.relay, Late: f.late, Seller: seller, Stats: &f.stats,
	}
	if cfg.Market != nil {
		f.mechanism = auction.New(bids, parts)
	} else {
		f.mechanism = interest.New(signals)
	}
	return f
}

// Activate brings a job to the floor. What changed of it before was nobody's news.
func (f *Floor) Activate(j *index.Job) { f.index.Activate(j, f.late.Due(j.Submitted(), j.Spec())) }

// Retire removes a job from the floor: it is over, or has nothing left to sell.
func (f *Floor) Retire(j *index.Job) {
	if j.Active() {
		f.index.Retire(j)
		f.relay.Leave(j)
		f.mechanism.Retire(j)
	}
}

// Changed notes that a job may be eligible where it was not before: open windows are offered to it too.
func (f *Floor) Changed(j *index.Job) { f.index.Changed(j) }

// InvalidateJob says that what a job answers to windows may be another than before.
func (f *Floor) InvalidateJob(j *index.Job) { f.index.Invalidate(j) }

// Started teaches how a subjob of a job began on a node.
func (f *Floor) Started(j *index.Job, on job.NodeID, r *job.Result) { f.est.Started(j, on, r) }

// Place records a slice, as its owner shows it now: a new or a changed one.
func (f *Floor) Place(s *window.Slice, is *protocol.Slice) window.Placed {
	placed, more := f.board.Place(s, f.ClassOf(is))
	f.late.Capacity(more)
	return placed
}

// Remove forgets a slice that is there no more. Whoever still has it finds it without windows.
func (f *Floor) Remove(s *window.Slice) {
	f.mechanism.Remove(s)
	f.late.Capacity(-f.board.Remove(s))
}

// ClassOf is the class of a slice that may be none of the floor's own.
func (f *Floor) ClassOf(s *protocol.Slice) *window.Class {
	c, first := f.board.ClassOf(s)
	if first {
		f.index.Cover(c)
	}
	return c
}

// InvalidateSlice says that what may be sold of a slice is no longer what it was.
func (f *Floor) InvalidateSlice(s *window.Slice) { f.board.Invalidate(s) }

// Turning are the slices on which a window opens now or becomes too short. They are good until the next call.
func (f *Floor) Turning(now quantity.Instant) []*window.Slice { return f.board.Turning(now) }

// Sell offers every window that has begun, to every job that is eligible or to those that have changed since, and asks for what is
// won. Waiting is how many jobs run nowhere. It returns when to look again.
func (f *Floor) Sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	f.late.Fill(now)
	f.relay.Recall(now)
	wake := f.mechanism.Sell(now, waiting, out)
	f.index.EndPass()
	return min(wake, f.relay.Wake())
}

// Displaces is the job that would get the window behind a running subjob, which ends as the claim says, rather than that the subjob goes on
// there with a piece of its job; nil if there is none.
func (f *Floor) Displaces(
	now quantity.Instant, j *index.Job, s *window.Slice, c *protocol.Claim, end quantity.Instant, p *atomizer.Piece,
) *index.Job {
	other := f.mechanism.Displaces(now, j, s, c, end, p)
	if other != nil {
		other.Counts().Add(explain.Eligible, now)
	}
	return other
}

// Elsewhere reports whether a slice is idle, and nobody waits for it, on which the rest of a running job would end sooner, with the stop
// and the restore. Such a job is not to be extended: when it ends it bids there. Idle is what the last sale left: a window that begins at
// this instant is offered first to jobs that wait.
func (f *Floor) Elsewhere(now quantity.Instant, waiting int, j *index.Job, c *protocol.Claim) bool {
	if waiting > f.board.Open() {
		return false
	}
	for i := f.board.NextOpen(0); i >= 0; i = f.board.NextOpen(i + 1) {
		s := f.board.Slices()[i]
		for k := range s.Windows() {
			if f.sooner(now, j, c, s, &s.Windows()[k]) {
				return true
			}
		}
	}
	return false
}

// sooner says whether what is left of a job behind a claim would end sooner in a window that has begun than where it runs.
func (f *Floor) sooner(now quantity.Instant, j *index.Job, c *protocol.Claim, s *window.Slice, w *window.Window) bool {
	spec, v := j.Spec(), j.View()
	speed, left := s.Class().SpeedOf(spec), spec.Total-c.Range.To
	if spec.Open() {
		left = v.Ahead()
	}
	if w.Start() > now || speed <= c.Speed {
		return false
	}
	if v.RunTime(left, speed)+v.Prepare()+spec.Startup+spec.Restore+spec.Checkpoint >= v.RunTime(left, c.Speed) {
		return false
	}
	v.Committed, v.Claimed, v.Running = slices.Clone(v.Committed).Add(c.Range), nil, 0
	_, r := atomizer.Fit(&v, f.est.Window(j, s.Class(), now, w.End()))
	return r.Why == atomizer.Interested
}

// Attend: an agent of a job has come, or the one of this session has gone.
func (f *Floor) Attend(j *index.Job, session uint64, here bool) { f.relay.Attend(j, session, here) }

// Attended says whether an agent of a job is there.
func (f *Floor) Attended(j *index.Job) bool { return f.relay.Attended(j) }

// Answer handles an agent's answer.
func (f *Floor) Answer(now quantity.Instant, j *index.Job, in *protocol.Message, p *protocol.Proposal) {
	f.relay.Answer(now, j, in, p)
}

// TellEnd tells an external job's agent how a subjob ended, so that it can learn.
func (f *Floor) TellEnd(j *index.Job, c *protocol.Claim, r *job.Result, done job.Range, out *protocol.Out) {
	f.relay.TellEnd(j, c, r, done, out)
}

// DropRecall says that a job rests now, or begins anew: when that is over its agent is called in any case.
func (f *Floor) DropRecall(j *index.Job) { f.relay.DropRecall(j) }

// Late is what jobs that have waited too long may be given.
func (f *Floor) Late() *lateness.Allowance { return f.late }

// Estimator estimates a job's use of windows and classes.
func (f *Floor) Estimator() *index.Estimator { return f.est }

// Contenders appends the greatest indexes of those that wait for windows of a class and could use one of a length, n of them or as many as
// there are, the greatest first.
func (f *Floor) Contenders(now quantity.Instant, c *window.Class, length time.Duration, n int, out []int64) []int64 {
	return f.index.Contenders(now, c, length, n, out)
}

// Slices returns all slices, sorted by capacity, then id. Read only; valid until the next Place.
func (f *Floor) Slices() []*window.Slice { return f.board.Slices() }

// Classes returns the classes of all slices, of removed ones too. Read only.
func (f *Floor) Classes() []*window.Class { return f.board.Classes() }

// Unsold is the slice's time that is for sale, as from now on.
func (f *Floor) Unsold(s *window.Slice, now quantity.Instant) []protocol.Gap {
	return f.board.Unsold(s, now)
}

// Open is how many slices have a window that has begun.
func (f *Floor) Open() int { return f.board.Open() }

// Stats is what the market has done since it came up. Of one that does not negotiate: with agents, and declines.
func (f *Floor) Stats() status.Negotiation { return f.stats }

// Counts are why a job was not served as they are now, for people: nothing is kept of it.
func (f *Floor) Counts(j *index.Job) explain.Counts { return f.index.Counts(j) }

// Declining is why a job has declined last.
func (f *Floor) Declining(j *index.Job) (refusal atomizer.Refusal, text string) {
	return f.mechanism.Declining(j)
}

// Audit says what the floor keeps that is not what it would find if it looked now. It is for tests, between two steps.
func (f *Floor) Audit(now quantity.Instant) []string {
	return append(f.index.Audit(now), f.board.Audit(now)...)
}
