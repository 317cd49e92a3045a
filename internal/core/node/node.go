// Package node is the actor that owns slices: their timelines, the leases on them, what runs and whether it is confirmed
// gone, results until the home has them, quarantine. It is a pure state machine (protocol.Actor).
//
// It knows no market, policy or job progress: it grants time that is free, honours each token once, starts nothing
// without a lease, and never frees the time of a started subjob before its process tree is confirmed gone. Who may have
// which time is decided elsewhere.
//
// apply.go is the only place where durable state changes; step.go sends each input to the file named after what it is
// about. What is not durable (holds, foreign processes, timers) is found again
// or asked for again after a restart.
package node

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/giving"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/core/trp"
)

// maxReservations keeps a slice's closed time below what a timeline bears, with room for what is not asked for by people.
const maxReservations = timeline.Max / 2

// Node is the actor. It is not safe for concurrent use.
type Node struct {
	cfg  Config
	self protocol.Address

	// Durable state, changed by Apply alone. Slices are sorted by id.
	epoch    uint32
	lastID   uint64 // the last reservation id given out
	leases   map[job.Token]*lease
	slices   []*slice
	sum      uint64                      // the digest, kept incrementally
	applying int                         // facts applied; for messages of broken invariants
	parts    capture.Parts[capture.Part] // none: all of it is small

	// Indexes of it. byID are the slices, reserved has the slice of every durable reservation by its id, ofJob the leases of every job,
	// in no order.
	byID     map[job.SliceID]*slice
	reserved map[uint64]*slice
	ofJob    map[job.ID]some
	barred   int // slices with a holder

	// Soft state.
	booted, confirmed bool
	inventory         []protocol.Slice
	stocks            int      // how many lists of it there were
	grants            []*grant // sorted by token, which is also the order of expiry as long as gangs is 0
	gangs             int      // holds for members of gangs
	spent             []*grant // holds that stand no more, for the next ones
	asked             map[question]*grant
	strays            []stray
	ailing            string             // why it can start nothing, empty if it can
	memory            memory             // what its host's is like
	host              hostMemory         // and what all leases are held against
	wishes            giving.Giver       // to those who wait for devices that slices are cut from
	answers           []protocol.Message // recent replies to persons
	seq               uint64             // the last token given out in this epoch
	views             uint64             // the last view's version, within this epoch
	wake              quantity.Instant   // the earliest Tick that is asked for, 0 if none
	refresh           quantity.Instant   // when everything is offered again
	found             *slice             // the slice that was looked up last; nil: none
	agenda
	// probes of tickets; nil where none search. prompt: what has changed is offered at once.
	probes *probes
	prompt bool
	// market is where jobs that wait negotiate for the node's time; nil where they do not. trades is when it is to look again.
	market *floor.Floor
	trades quantity.Instant
	// pass replaces what follows every input; nil but in tests, which put the plain pass in its place.
	pass func(now quantity.Instant, out *protocol.Out)
}

// question names an ask of a zone.
type question struct {
	from protocol.Address
	ask  uint64
}

// lease is the durable right to run one subjob, from LeaseMade to LeaseGone.
type lease struct {
	token      job.Token
	job        job.ID
	epoch      uint32         // of the job's home
	generation job.Generation // of the job's life that it was sold to
	zone       job.ZoneID
	slice      job.SliceID
	also       []job.SliceID
	rng        job.Range
	start, end quantity.Instant
	demand     trp.Vector
	peak       trp.Peak // zero: the demand is all that is known of it
	plan       protocol.Plan
	rank       protocol.Rank

	// phase is what it is doing, as far as it lasts.
	phase phase
	at    quantity.Instant // when it was seen to run, 0 if it was not
	cut   string           // why its end was moved closer, empty if it was not
	ending

	// Soft. The spec is needed for Start alone, and a boot never starts what an earlier one has not.
	spec  *job.Spec
	why   string // its home wants it gone, or its node does; empty if not
	stand stand  // what Airlock has done to it
	// lost is why it has no GPU any more; empty: it has.
	lost string
	// restless: it can't be made to stand still.
	restless bool
	// hurried: its home has it stopped without the rest of its grace.
	hurried bool
	fresh   bool             // it ended in this boot
	retry   quantity.Instant // when the outstanding effect is sent again; 0 if none is

	sum uint64 // its part of the digest

	// Of the indexes: its alarm, whether that is to be set again, and whether it waits to begin.
	slot    int
	stirred dirty.Mark
	pending bool
}

// reservationID is a lease's or hold's id in the timelines of its slices: the top bit keeps it apart from reservations,
// which are counted up from 1.
func reservationID(t job.Token) uint64 {
	return 1<<63 | uint64(t.Epoch)<<40 | t.Seq&(1<<40-1)
}

// slice is what the node knows of one slice. It exists as soon as anything durable names it.
type slice struct {
	id job.SliceID
	// Durable: quarantine says why nothing is sold here, since when (0: an older version did not note it), and holder is the subjob whose
	// processes are the reason; zero: another reason. The timeline holds leases and reservations, and soft holds.
	quarantined bool
	quarantine  string
	barredAt    quantity.Instant
	holder      job.Token
	fault       *health.Fault // its GPU fails; nil: it does not
	time        timeline.Timeline

	// Soft.
	known  bool // the inventory has it
	stock  int  // the number of the list that had it last
	desc   protocol.Slice
	others []protocol.Reservation // all that others hold of it, as the inventory has said
	kept   []protocol.Reservation // what is kept of it for who waits (core/reclaim)
	since  []quantity.Instant     // from when on each of them counts, in this order
	waived string                 // a state of its GPU that a person has looked at, and sells the slice all the same
	// relapses is how often the slice was sold again after a fault although nothing shows that its GPU was reset.
	relapses int
	dirty    dirty.Mark          // an Offer may be due
	shown    *protocol.SliceView // what the last Offer said; nil: an Offer is due whatever it says
	renew    quantity.Instant    // when gaps from beyond the horizon come into sight; 0 if there are none

	renewing, passing, departing int // its alarms
	place                        int // among the slices, as the rooms that probes ask know it
}

// grant is a hold: soft, fenced by the epoch of its token.
type grant struct {
	token      job.Token
	from       protocol.Address
	ask        uint64
	job        job.ID
	slice      job.SliceID
	also       []job.SliceID
	start, end quantity.Instant
	expiry     quantity.Instant
	takes      bool // it takes over the job's own place
	peak       trp.Peak
	gang       bool // it is for a member of a gang, and stands longer than others
	// searched: a ticket has found it.
	searched bool
	ticket   ticket
	// unasked: it was won here.
	unasked bool
}

// stray is a subjob found alive at boot that no lease stands for.
type stray struct {
	token job.Token
	job   job.ID
	slice job.SliceID
}

// New returns a node without state. The configuration must be valid: see Config.Validate.
func New(cfg Config) *Node {
	err := cfg.Validate()
	invariant.Check(err == nil, "node: New with a configuration that was not validated: %v", err)
	n := &Node{
		cfg: cfg.withDefaults(), probes: newProbes(cfg.Search, cfg.Zone),
		self:   protocol.Address{Role: protocol.Node, ID: string(cfg.ID)},
		host:   hostMemory{Limit: joint.NewLimit(cfg.Host), stale: true},
		leases: map[job.Token]*lease{}, byID: map[job.SliceID]*slice{}, reserved: map[uint64]*slice{}, ofJob: map[job.ID]some{},
		asked: map[question]*grant{},
	}
	n.openMarket()
	return n
}

// lease returns the lease of a token, nil if there is none.
func (n *Node) lease(t job.Token) *lease { return n.leases[t] }

// slice returns the record of a slice, nil if nothing is known of it.
func (n *Node) slice(id job.SliceID) *slice {
	if n.found == nil || n.found.id != id {
		n.found = n.byID[id]
	}
	return n.found
}

// record returns the record of a slice and makes it if there is none.
func (n *Node) record(id job.SliceID) *slice {
	s := n.slice(id)
	if s == nil {
		s = &slice{id: id, desc: protocol.Slice{ID: id}}
		i, _ := slices.BinarySearchFunc(n.slices, id, func(s *slice, id job.SliceID) int { return cmp.Compare(s.id, id) })
		n.slices, n.byID[id] = slices.Insert(n.slices, i, s), s
	}
	return s
}

// each calls f for every slice of a lease or grant, the named one first.
func (n *Node) each(first job.SliceID, also []job.SliceID, f func(*slice)) {
	f(n.record(first))
	for _, id := range also {
		f(n.record(id))
	}
}

// usable says whether the slice may be sold, and why not.
func (n *Node) usable(s *slice) (why string, ok bool) {
	switch {
	case !n.confirmed:
		return "the node is starting: what runs there is not known yet", false
	case !s.known:
		return "the slice is not in the inventory", false
	case s.quarantined:
		return "quarantined: " + s.quarantine, false
	case s.fault != nil:
		return "quarantined: " + s.fault.Text, false
	case n.memory.short || n.memory.full:
		return shortOfMemory, false
	case n.ailing != "":
		return "the node is in trouble: " + n.ailing, false
	}
	return "", true
}
