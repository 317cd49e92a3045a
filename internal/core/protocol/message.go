// Package protocol is what the three actors say: to each other, to the people and programs they serve, and to the world that runs subjobs.
// Everything an actor receives and sends is a Message; everything durable it decides is a Fact. Both are a small header and a body with its
// own type for each kind. A driver can carry, store, lose, duplicate or delay them without knowing what they mean.
//
// Messages may be lost, doubled, delayed and reordered; receivers are idempotent by the ids named with each kind.
package protocol

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Body is what a message says beyond its header: a pointer to a struct that nobody writes to once it is sent. A kind's comment names
// the type that goes with it; a kind without one has no body. Another type is a bug of ours, and damage where it is read from a tape
// (package wire has the table).
//
// The method marks a type as one that is meant to be sent. It is exported so that other packages of the core can have bodies.
type Body interface{ Body() }

// Role is the kind of a message's sender or receiver.
type Role uint8

// The parties. Gate, Zone and Node are actors; the others are the world, played by a driver.
const (
	Gate Role = iota + 1
	Zone
	Node
	// Person is a caller of the API; a Reply goes back to it by Request.
	Person
	// Executor starts and ends subjobs on one node.
	Executor
	// Timer is the driver's clock: Wake asks for a Tick.
	Timer
)

// Address is a party: its role, and which one of the gates, zones, nodes, executors (by their node) or agents (by their job).
type Address struct {
	Role Role
	ID   string
}

// Kind is what a message says. Each kind's comment lists who sends it to whom and which fields it uses.
type Kind uint8

// Person -> gate.
const (
	// Submit asks to accept a job: Submission. Idempotent by its request; a second one of the same name and digest is the same job, unless
	// it replaces and that one is over.
	Submit Kind = iota + 1
	// Cancel a job: Job, Cancellation. Gate -> zone with Epoch.
	Cancel
	// PauseJob stops new windows for a job or lets it go on: Job, Pause. Gate -> zone with Epoch, repeated until the zone says the same
	// back.
	PauseJob
	// SetQueue creates or changes a queue: QueueSetting.
	SetQueue
	// Reply answers a Person: Job, Generation, Receipt. Actor -> person.
	Reply
	// Requeue begins another life of a job that was cancelled, has failed or has expired: Job, Requeueing. What is committed stays.
	// Idempotent by its request.
	Requeue
	// Delete forgets a job that is over and purges its files: Job, Deletion.
	Delete
	// DrainZone makes a zone give its jobs to others, for good: Draining. The first gate sends it to the other gates, until they confirm
	// it.
	DrainZone
)

// Person -> node.
const (
	// Reserve time on slices for others than our jobs: Booking. Zone -> node: for the head rigid job, with Job.
	Reserve Kind = iota + 16
	// Unreserve withdraws a reservation by its id: Booking.
	Unreserve
	// Unquarantine lifts a quarantine after a person has looked: Clearance.
	Unquarantine
)

// Gate <-> zone.
const (
	// Adopt makes the zone the job's home, or begins another life of a job that it has: Job, Epoch, Generation,
	// Adoption. Repeated until Adopted.
	Adopt Kind = iota + 32
	// Adopted acknowledges Adopt: Job, Epoch, Generation.
	Adopted
	// Closed tells the gate a job's final verdict: Job, Epoch, Generation, Closing. Repeated until ClosedAck.
	Closed
	// ClosedAck acknowledges Closed: Job, Epoch, Generation. The zone may forget the job's working state.
	ClosedAck
	// QueueChanged sends the zone a queue's settings: Queue. Repeated until the zone sends the same back.
	QueueChanged
	// Forget: the zone drops its record of a job that is over: Job, Epoch, Generation. Repeated until Forgotten.
	Forget
	// Forgotten: the zone has no record of this life or an earlier one: Job, Epoch, Generation.
	Forgotten
	// Surrender makes the zone give a job up to another one, since it is drained: Job, Epoch, Generation, Moving. Repeated until
	// Surrendered, or Closed if the job ended meanwhile.
	Surrender
	// Surrendered: none of the job runs or is sold here, now or ever again: Job, Epoch, Generation, Record. The zone keeps the record until
	// it is told to Forget it.
	Surrendered
)

// Zone <-> node: the five steps of docs/ARCHITECTURE.md for every subjob.
const (
	// Offer carries a slice's gaps to the zone whenever they change: SliceView, Epoch (the node's). Stale by its version.
	Offer Kind = iota + 48
	// Ask for a grant: Job, Epoch, Generation, Asking.
	Ask
	// Granted: Job, Token, Grant.
	Granted
	// Refused: Job, Token, Refusal. The view it was decided on was stale; a fresh Offer follows.
	Refused
	// Redeem turns a grant into a lease: Token, Job, Epoch, Generation, Work. Repeated until Leased, RedeemRefused or Result.
	Redeem
	// Leased: Token, Job, Holding.
	Leased
	// RedeemRefused: Token, Job, Refusal. The token lapsed or is of an earlier boot; nothing was started.
	RedeemRefused
	// Running: Token, Job, Beginning. Sent once, and again for a Redeem of what runs: with it the home knows of the lease, ends the
	// job's back-off and begins to account its use. If it is lost a Report stands in for it.
	Running
	// Report: Token, Job, Observation. For people and continuation; lossy.
	Report
	// Result of a subjob: Token, Job, Epoch, Generation, Conclusion. Repeated until ResultAck.
	Result
	// ResultAck: Token, Job, Acknowledgement. Idempotent by Token. Where something was
	// committed it is repeated until Published.
	ResultAck
	// Extend asks to move a running lease's end: Token, Job, Extension. Answered Extended or Refused.
	Extend
	// Extended: Token, Job, Extension.
	Extended
	// Stop asks the node to end a running lease: Token, Halt. Node -> executor: the same.
	Stop
	// Published: Token, Job. Committed output and checkpoint are in their place. Node -> zone; the node sends it again for a ResultAck of a
	// lease that is gone.
	Published
	// Removed: a machine has left for good, and no word of its node comes through any more: Removal. Person -> gates and zones. Soft, and
	// idempotent: after a restart nobody knows the node. An Offer behind it is of another machine by its name.
	Removed
)

// Node <-> executor, and the timer.
const (
	// Inventory is the first input of a node after boot, and said again when slices have come or gone: Stock. Executor -> node. Node ->
	// gate; gate -> node asks for that, with several zones. Driver, in the name of a node that is away -> gate, zone: what it had last.
	Inventory Kind = iota + 80
	// Start a subjob: Token, Job, Generation, Work. Node -> executor, idempotent by Token.
	Start
	// Started: Token, Beginning. Executor -> node.
	Started
	// Exited: Token, Conclusion. The process tree is confirmed gone. Executor -> node.
	Exited
	// Stuck: Token, Reason. Processes remain that cannot be ended: the slice is quarantined. Executor -> node.
	Stuck
	// Deadline moves a running subjob's end (earlier or later): Token, Shift. Node -> executor.
	Deadline
	// Settle the directories of an ended subjob: Token, Job, Generation, Settlement. Node -> executor, idempotent.
	Settle
	// Settled: Token. Executor -> node.
	Settled
	// Foreign: what others hold of a slice has changed: Intrusion. Inventory, in the executor's name -> node.
	Foreign
	// Purge what lives of a job before Generation have stored (0: all there is): Job, Generation. Gate -> executor, repeated
	// until Purged.
	Purge
	// Wake asks for a Tick: Moment (the earliest standing one counts). Actor -> timer.
	Wake
	// Tick: time has come. Timer -> actor.
	Tick
	// Purged: nothing that lives before Generation have stored is where a reader finds it: Job, Generation. Executor -> gate.
	Purged
	// Unhealthy: the node can start nothing, or can again: Condition. Executor -> node; soft.
	Unhealthy
	// Pressure: what the host's memory is like: Strain. Executor -> node, as often as that is worth a look; soft.
	Pressure
	// Suspend freezes a subjob until Resume: Token, Job, Reason. Node -> executor, repeated until Suspended; idempotent. Its deadline
	// stands.
	Suspend
	// Suspended: a subjob is frozen, or not any more, or can't be: Token, Stillness. Executor -> node.
	Suspended
	// Resume makes a subjob go on: Token, Job. Node -> executor, repeated until Suspended confirms it; idempotent.
	Resume
	// Checkup: a GPU's state, or errors that its driver has reported: Vitals. Executor -> node; soft, and repeated.
	Checkup
	// Wished: who waits for devices that slices of the node are cut from, and what the machines have: Wishes. Inventory, in the
	// executor's name -> node; soft.
	Wished
	// Dismiss ends the program that has stayed on a slice: Token (of the subjob that it stayed after), Holding. Node -> executor, repeated
	// until Dismissed; idempotent.
	Dismiss
	// Dismissed: the program that stayed after a subjob is gone with all its processes, by itself or since it was asked to end: Token.
	// Executor -> node.
	Dismissed
)

// Message is a header, of which a kind uses what its comment names, and a body.
type Message struct {
	Kind     Kind
	From, To Address

	Job job.ID
	// Epoch is the home's epoch for a job, or the node's boot epoch in Offer.
	Epoch uint32
	// Generation is the job's life that this is about. In all that concerns one job between gate, zone, node and executor.
	Generation job.Generation
	// Token of the grant, the claim or the lease that it is about.
	Token job.Token
	// Session of an agent, or of a visit.
	Session uint64
	// Filed is what the archive has, or is to keep, of one actor's part of a job (archive.go). A driver hands it on with any message.
	Filed []Fact
	// Body is what the kind says beyond that, of the kind's own type; nil where there is no more.
	Body Body
}

// Made is one reservation as its caller is told of it.
type Made struct {
	ID    uint64
	Slice job.SliceID
	// Stood: the same reservation had been made before.
	Stood bool
	// Overlaps are others on the slice that share time with it, leases and holds left out.
	Overlaps []Reservation
}

// Plan is what the atomizer expects of a subjob.
type Plan struct {
	// Run is the planned run time of the work itself; Wall adds restore and checkpoint.
	Run, Wall time.Duration
	// Resume names the subjob whose checkpoint to start from; zero at first.
	Resume job.Token
	// Window and Round say what was won: ids for people.
	Window, Round uint64
	// Extended is by how much the lease's end has been moved since.
	Extended time.Duration
	// Option of the job that it runs with; empty: none.
	Option string
	// Member of a gang over several nodes, from 0, of Members; Members is 0 for a subjob on one node.
	Member, Members int
	// Addresses of the members' machines, in order of member, and the Port at the first of them where they may meet. Both are in the claim
	// that is sold, so that every member hears the same, however often it is told; none and 0: nobody says.
	Addresses []string
	Port      int
	// Residence is the number of the program that it can go on in (job.Spec.Residence); 0: none. Resident: it is cut to go on in it, with
	// no time for a start.
	Residence uint64
	Resident  bool
	// Bars are what was known of a sweep's trials when this was sold.
	Bars []job.Bar
}

// Queue is a queue's settings.
type Queue struct {
	Name string
	// Weight of its fair share; at least 1.
	Weight int64
	// Cap is how many slices its jobs may hold at once; 0 for no cap, NoShare for none. Each of several zones gets its own share.
	Cap int
	// MaxJobs is how many unfinished jobs it may have; 0 for no limit.
	MaxJobs int
	// MaxWindow bounds how long one subjob of it may hold a slice; 0 for no bound.
	MaxWindow time.Duration
	// User its subjobs run as; empty: the daemon's own (single-user mode).
	User string
}

// NoShare is the cap of a queue in a zone that has no share of it, since there are more zones than the cap has slices.
const NoShare = -1

// Slice is one schedulable piece of a GPU, as found by the inventory.
type Slice struct {
	ID job.SliceID
	// Model of the GPU and Profile of the slice ("3g.40gb", "gpu", "share"), for people and for learned run times.
	Model, Profile string
	Capacity       trp.Vector
	// Speed in parts per thousand of the reference (a whole GPU of its model); run times are divided by it.
	Speed int64
	// Device is what goes into CUDA_VISIBLE_DEVICES; empty for simulated slices.
	Device string
	// Simulated slices have no GPU behind them. Shared slices are not isolated in memory.
	Simulated, Shared bool
	// Rack and Block that its node stands in, as its node is configured; empty: it shares none with any other.
	Rack, Block string
	// Address is where other machines reach that of its node, a host's name or an IP; empty: its node does not say.
	Address string
	// Host is the memory of its node's host, which all slices of the node share; 0: it is not counted. Bears is what of it a piece that
	// begins in its first gap may have now, whatever runs beside it, in eighths of the slice's own memory.
	Host, Bears quantity.Amount
}

// MostSlices bounds the slices of a node that is on a machine of its own: more than a machine can have, and few enough that a hostile one
// does not fill the memory of those that keep them.
const MostSlices = 1024

// Sound reports whether what the slice says of itself can be.
func (s *Slice) Sound() bool {
	return s.Speed >= 0 && s.Host >= 0 && s.Bears >= 0 && (s.Address == "" || SoundAddress(s.Address)) &&
		!slices.ContainsFunc(s.Capacity[:], func(a quantity.Amount) bool { return a < 0 })
}

// Offered is what a piece may need on the slice now: its capacity, as far as the host's memory bears that.
func (s *Slice) Offered() trp.Vector {
	c := s.Capacity
	if s.Host > 0 {
		c[trp.Memory] = min(c[trp.Memory], s.Bears)
	}
	return c
}

// Found is a run directory of an earlier boot, as the executor saw it when the daemon came back.
type Found struct {
	Token job.Token
	Job   job.ID
	Slice job.SliceID
	// Alive: its supervisor is still there and answers for it. Otherwise Result is final, with Lost where none was
	// written.
	Alive   bool
	Started quantity.Instant
	Result  *job.Result
	// Stuck: processes remain that cannot be ended. Still: it is suspended.
	Stuck, Still bool
}

// SliceView is one slice as its node describes it to the market.
type SliceView struct {
	Slice   Slice
	Node    job.NodeID
	Version uint64
	// Usable: confirmed and not quarantined. Why says what is wrong otherwise.
	Usable bool
	Why    string
	// Gaps in order of start, half-open; the last may end Never.
	Gaps []Gap
	// Reserved are the reservations and leases, for planning rigid work.
	Reserved []Reservation
	// Resident is the program that stays on the slice and waits for its next subjob; nil: none does.
	Resident *Resident
	// Room is what the node has free; nil where no tickets search.
	Room *flow.Summary
}

// Gap is idle time on a slice.
type Gap struct {
	Start, End quantity.Instant
	// Until is what ends it: the kind of the reservation behind it; zero when nothing is known to come.
	Until ReservationKind
}

// ReservationKind is where a reservation comes from (docs/ARCHITECTURE.md, windows).
type ReservationKind uint8

// The sources of reservations. The market knows nothing else about them.
const (
	ForLease ReservationKind = iota + 1
	// ForRigid: a blocked rigid job's place, as EASY backfill makes.
	ForRigid
	ForDrain
	ForMaintenance
	ForReclaim
	ForServing
	ForGeometry
	// ForForeign: something that is not ours is there: a process, a Pod.
	ForForeign
	// ForOwner: the owner of the machine took the slice back (`sluice pause`).
	ForOwner
	// ForHold: a grant not yet redeemed.
	ForHold
)

var reservationNames = [...]string{"", "lease", "rigid", "drain", "maintenance", "reclaim", "serving", "geometry", "foreign", "owner",
	"hold"}

// String is the kind's name on the wire and for people.
func (k ReservationKind) String() string {
	if int(k) < len(reservationNames) {
		return reservationNames[k]
	}
	return "unknown"
}

// Reservation is time on a slice that is not for sale.
type Reservation struct {
	// ID is unique on its node. People's reservations get one from the node.
	ID    uint64
	Kind  ReservationKind
	Slice job.SliceID
	// Start and End, half-open. End Never: no known end.
	Start, End quantity.Instant
	// Every repeats it (serving hours): the next occurrence starts Every after this one; 0 for once.
	Every time.Duration
	// Job and Token it belongs to, if any.
	Job   job.ID
	Token job.Token
	// Source is who asked, for people.
	Source string
	// Truncate: running leases in the way are cut short; otherwise the reservation waits behind them.
	Truncate bool
	// Calendar repeats it by the clock of a time zone instead: Start and End are its first occurrence then, Every its step.
	// None: by elapsed time, or once.
	Calendar civil.Calendar
}
