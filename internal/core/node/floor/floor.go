// Package floor is the market of one node, where the flow is (Laminar): jobs of any home that wait for room come to a few nodes and
// negotiate there for the node's windows, the same market.Floor as at a zone. Each comes with what its home says of it (Visit) and is
// answered for by its home, in messages, as an external job is by its agent. Tickets do not come here: a probe takes what is free at
// once, and what it takes is no window any more.
//
// All of it is soft. A node that starts again has no visitors until they come again, and a home that is silent has none after a while.
package floor

import (
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config of a node's floor. Market must be set: who is not here can only bid.
type Config struct {
	// Self is the node.
	Self   protocol.Address
	Policy policy.Policy
	Market *market.Config
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
	if c.Retry == 0 {
		c.Retry = time.Second
	}
	if c.Most == 0 {
		c.Most = 64
	}
	if c.Stay == 0 {
		c.Stay = 10 * time.Second
	}
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
	market.Piece
}

// Floor is one node's. It is deterministic and not safe for concurrent use.
type Floor struct {
	cfg   Config
	owner Owner
	floor *market.Floor
	// visitors by job, and when each is to be said again.
	visitors map[job.ID]*visitor
	stays    alarm.Heap[*visitor]
	slices   map[job.SliceID]*slice
}

// New makes the floor of a node whose slices are not known yet.
func New(cfg Config, owner Owner) *Floor {
	cfg = cfg.withDefaults()
	f := &Floor{cfg: cfg, owner: owner, visitors: map[job.ID]*visitor{}, slices: map[job.SliceID]*slice{}}
	terms := cfg.Market.Under(cfg.Policy)
	terms.Payment = market.Free // purses are their homes'
	f.floor = market.NewFloor(market.FloorConfig{
		Self: cfg.Self, Policy: cfg.Policy, Market: &terms, Horizon: cfg.Horizon, MinWindow: cfg.MinWindow, Retry: cfg.Retry, Close: terms.Close,
	}, (*seller)(f))
	return f
}

// Place takes in a slice of the node, new or other than it was.
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

// Sell offers the windows that have begun to the visitors, and sells what is won. It returns when to look again. It does nothing while nobody
// is here.
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

// seller is the floor as its market sees it (market.Sale).
type seller Floor

func (f *seller) Ask(now quantity.Instant, j *market.Job, s *market.Slice, p market.Piece, out *protocol.Out) {
	v := j.Demand.(*visitor)
	v.won(p.Range)
	f.floor.Served(j)
	f.floor.InvalidateJob(j)
	f.owner.Sell(now, Award{Home: v.home, Job: v.Name(), Session: v.session, Slice: s.Name(), Piece: p}, out)
}

// Withdraw takes nothing back: a home has claimed it.
func (f *seller) Withdraw(quantity.Instant, quantity.Instant, *market.Slice, *protocol.Out) int {
	return 0
}

// Purse is nobody's: nothing is paid here.
func (f *seller) Purse(quantity.Instant, *market.Job) (has, full int64) { return 0, 0 }

// slice is one slice as the market sees it (market.Supply).
type slice struct {
	id    job.SliceID
	of    *Floor
	floor market.Slice
}

func (s *slice) Name() job.SliceID { return s.id }

func (s *slice) Node() job.NodeID { return job.NodeID(s.of.cfg.Self.ID) }

func (s *slice) Usable() bool { return s.of.owner.Usable(s.id) }

func (s *slice) Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return s.of.owner.Unsold(now, s.id, out)
}

func (s *slice) Safe(quantity.Instant) quantity.Instant { return quantity.Never }
