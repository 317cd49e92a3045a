// Package floor is the market of one node, where the flow is (Laminar): jobs of any home that wait for room visit a few nodes and negotiate
// there for the node's windows, the same market.Floor as at a zone. Each comes with its home's description (Visit), and its home answers
// for it in messages, as an agent does for an external job. Tickets are not handled here: a probe takes what is free at once, and that is
// then no window any more.
//
// All of it is soft. A restarted node has no visitors until homes send them again, and those of a silent home are dropped after a while.
package floor

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config of a node's floor. Market must be set: a job of another zone can only bid.
type Config struct {
	// Self is the node.
	Self   protocol.Address
	Policy policy.Policy
	Market *auction.Config
	// Horizon is how far an open gap is offered, MinWindow the shortest that is.
	Horizon, MinWindow time.Duration
	// Retry is the first pause after which a job that won nothing is called again. Default 1 s.
	Retry time.Duration
	// Most jobs visit at once. Default 64: what a round costs is bounded by it.
	Most int
	// Stay is for how long a visit counts that is not said again. Default 10 s.
	Stay time.Duration
}

func (c Config) withDefaults() Config {
	c.Retry = cmp.Or(c.Retry, time.Second)
	c.Most = cmp.Or(c.Most, 64)
	c.Stay = cmp.Or(c.Stay, 10*time.Second)
	return c
}

// Owner is the node, as its floor sees it.
type Owner interface {
	// Usable says whether anything of a slice may be sold, and Unsold puts its gaps from now on into out, in order.
	Usable(id job.SliceID) bool
	Unsold(now quantity.Instant, id job.SliceID, out []protocol.Gap) []protocol.Gap
	// Sell holds the time of a piece that a visitor has won, and tells the visitor's home.
	Sell(now quantity.Instant, a Award, out *protocol.Out)
}

// Award is a piece that a visitor has won.
type Award struct {
	// Home of the job, and the Session of its visit.
	Home    protocol.Address
	Job     job.ID
	Session uint64
	Slice   job.SliceID
	award.Piece
}

// Floor is one node's. It is deterministic and not safe for concurrent use.
type Floor struct {
	cfg   Config
	owner Owner
	floor *market.Floor
	// visitors by job, with alarms for when each is due to be confirmed by its home.
	visitors map[job.ID]*visitor
	stays    alarm.Heap[*visitor]
	slices   map[job.SliceID]*slice
}

// New makes the floor of a node whose slices are not known yet.
func New(cfg Config, owner Owner) *Floor {
	cfg = cfg.withDefaults()
	f := &Floor{cfg: cfg, owner: owner, visitors: map[job.ID]*visitor{}, slices: map[job.SliceID]*slice{}}
	terms := cfg.Market.Under(cfg.Policy)
	terms.Payment = auction.Free // purses are their homes'
	f.floor = market.NewFloor(market.FloorConfig{
		Self: cfg.Self, Policy: cfg.Policy, Market: &terms, Horizon: cfg.Horizon, MinWindow: cfg.MinWindow, Retry: cfg.Retry,
		Close: terms.Close,
	}, (*seller)(f))
	return f
}

// Place records a slice of the node, new or changed.
func (f *Floor) Place(is *protocol.Slice) {
	s := f.slices[is.ID]
	if s == nil {
		s = &slice{id: is.ID, of: f}
		s.floor.Supply = s
		f.slices[is.ID] = s
	}
	f.floor.Place(&s.floor, is)
	f.floor.InvalidateSlice(&s.floor)
}

// Changed says that what is free of a slice is no longer what it was.
func (f *Floor) Changed(id job.SliceID) {
	if s := f.slices[id]; s != nil {
		f.floor.InvalidateSlice(&s.floor)
	}
}

// Sell offers the windows that have begun to the visitors, and sells what is won. It returns when to look again. It does nothing while
// nobody is here.
func (f *Floor) Sell(now quantity.Instant, out *protocol.Out) quantity.Instant {
	f.expire(now)
	if len(f.visitors) == 0 {
		return quantity.Never
	}
	for _, s := range f.floor.Turning(now) {
		f.floor.InvalidateSlice(s)
	}
	return min(f.floor.Sell(now, len(f.visitors), out), f.stays.Next())
}

// Visitors is how many jobs are here.
func (f *Floor) Visitors() int { return len(f.visitors) }

// seller is the floor as its market sees it (award.Seller).
type seller Floor

func (f *seller) Ask(now quantity.Instant, j *index.Job, s *window.Slice, p award.Piece, out *protocol.Out) {
	v := j.Demand.(*visitor)
	v.won(p.Range)
	j.Losses().Clear()
	f.floor.InvalidateJob(j)
	f.owner.Sell(now, Award{Home: v.home, Job: v.Name(), Session: v.session, Slice: s.Name(), Piece: p}, out)
}

// Withdraw takes nothing back: a home has claimed it.
func (f *seller) Withdraw(quantity.Instant, quantity.Instant, *window.Slice, *protocol.Out) int {
	return 0
}

// Purse is empty: nothing is paid at a node.
func (f *seller) Purse(quantity.Instant, *index.Job) (has, full int64) { return 0, 0 }

// slice is one slice as the market sees it (window.Supply).
type slice struct {
	id    job.SliceID
	of    *Floor
	floor window.Slice
}

func (s *slice) Name() job.SliceID { return s.id }

func (s *slice) Node() job.NodeID { return job.NodeID(s.of.cfg.Self.ID) }

func (s *slice) Usable() bool { return s.of.owner.Usable(s.id) }

func (s *slice) Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return s.of.owner.Unsold(now, s.id, out)
}

// Resident is none: visitors have no word for a start that is paid already.
func (s *slice) Resident() *protocol.Resident { return nil }

func (s *slice) Safe(quantity.Instant) quantity.Instant { return quantity.Never }

// visitor is a job that is here, as its home described it last (index.Demand).
type visitor struct {
	protocol.Visit
	name job.ID
	// spec is the job's, of one that is answered for in messages.
	spec    *job.Spec
	home    protocol.Address
	session uint64
	market  index.Job
	// slot is its place among the alarms for visitors that leave unless their home confirms them.
	slot int
}

// Enter brings a job to the floor, or updates what its home says of it. It is false if the floor is full. The latest session of a job
// counts.
func (f *Floor) Enter(now quantity.Instant, home protocol.Address, name job.ID, session uint64, said *protocol.Visit) bool {
	if said.Spec == nil || name == "" || session == 0 {
		return false
	}
	v := f.visitors[name]
	switch {
	case v != nil && session < v.session:
		return true // it was on its way for long
	case v == nil && len(f.visitors) >= f.cfg.Most:
		return false
	case v == nil:
		v = &visitor{name: name}
		v.market.Demand = v
		f.visitors[name] = v
	}
	anew := v.session != session
	if anew {
		spec := *said.Spec
		spec.External = true
		v.spec = &spec
	}
	v.Visit, v.home, v.session = *said, home, session
	f.stays.Set(&v.slot, v, now.Add(f.cfg.Stay))
	if anew {
		f.floor.Retire(&v.market)
		f.floor.Activate(&v.market)
		f.floor.Attend(&v.market, session, true)
	} else {
		f.floor.Changed(&v.market)
	}
	return true
}

// Leave takes a job off the floor, unless a later session of it is here.
func (f *Floor) Leave(name job.ID, session uint64) {
	if v := f.visitors[name]; v != nil && session >= v.session {
		f.drop(v)
	}
}

// Answer handles a home's answer for a job in a round.
func (f *Floor) Answer(now quantity.Instant, in *protocol.Message) {
	if v := f.visitors[in.Job]; v != nil && in.From == v.home {
		f.floor.Answer(now, &v.market, in, in.Body.(*protocol.Proposal))
	}
}

func (f *Floor) drop(v *visitor) {
	f.floor.Retire(&v.market)
	f.stays.Set(&v.slot, v, quantity.Never)
	delete(f.visitors, v.name)
}

// expire drops those whose homes are silent.
func (f *Floor) expire(now quantity.Instant) {
	for v := range f.stays.Past(now) {
		f.drop(v)
	}
}

// won notes that a piece was sold here, so that it is not sold twice before the home says so.
func (v *visitor) won(r job.Range) {
	v.Claimed = append(job.Ranges(nil), v.Claimed...).Add(r)
	v.Running++
}

func (v *visitor) Name() job.ID { return v.name }

func (v *visitor) Spec() *job.Spec { return v.spec }

// Agent is its home, which answers for it.
func (v *visitor) Agent() protocol.Address { return v.home }

func (v *visitor) Queue() (name string, longest time.Duration) { return v.Visit.Queue, v.Longest }

func (v *visitor) View() atomizer.View {
	learned := v.Learned
	if learned == nil {
		learned = &protocol.Learned{}
	}
	return atomizer.View{
		Spec: v.spec, Committed: v.Committed, Claimed: v.Claimed, Running: v.Running, Learned: learned, Resume: v.Resume,
		Skipped: v.Skipped,
	}
}

func (v *visitor) Busy() int { return v.Running }

func (v *visitor) Submitted() quantity.Instant { return v.Visit.Submitted }

func (v *visitor) Served() quantity.Instant { return v.Visit.Served }

// Ineligible is never: its home lets only those visit that may be sold something.
func (v *visitor) Ineligible(quantity.Instant) explain.Reason { return explain.Eligible }

func (v *visitor) RestsUntil() quantity.Instant { return 0 }

func (v *visitor) Volatile() bool { return false }

func (v *visitor) Avoids(s *window.Slice) bool { return slices.Contains(v.Visit.Avoids, s.Name()) }

func (v *visitor) Loses() bool { return false }

func (v *visitor) Attained() int64 { return v.Own }

func (v *visitor) Use(quantity.Instant) (own, queue, weight int64) {
	return v.Own, v.Others, max(1, v.Weight)
}

func (v *visitor) Trust() protocol.Trust { return v.View().Learned.Trust }

func (v *visitor) Sentence(explain.Reason) string {
	return "its home does not let it be sold anything now"
}
