package home

import (
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config is the configuration of a ledger; what its fields mean is said of those of the same names where it is embedded.
type Config struct {
	Self protocol.Address
	// Gates that jobs come from; none: one.
	Gates protocol.Gates
	// Archive has jobs that are over leave; nil: none does.
	Archive                      *filing.Config
	Retry, AskTTL, Skew, Backoff time.Duration
	MaxKills                     int
	// Trust is how declarations are held against what was observed; nil where nobody bids.
	Trust *trust.Settings
	// Refill is how many credits of each slice are shared out in PurseTime.
	Refill    int64
	PurseTime time.Duration
}

// Ledger has the jobs that are at home in one place: their progress, claims and what was learned of them. It alone changes any of
// it, by facts. It is not safe for concurrent use.
type Ledger struct {
	cfg    Config
	self   protocol.Address
	watch  Watcher
	supply Supply

	// Durable, changed by Apply alone.
	jobs    map[job.ID]*Job
	records capture.Parts[*Job] // the jobs as captures go over them
	// enlisted: the rosters of the queues are kept.
	enlisted bool
	queues   map[string]*Queue
	// buried are the jobs that were dropped last.
	buried graves
	sum    uint64
	// specs are what jobs that are alike share; they follow from the facts.
	specs job.Pool
	// weights of all queues that have jobs without a final verdict, together.
	weights int64

	// live are the jobs without a final verdict, busy those with standing claims.
	live, busy crowd
	// parting is how many of busy are given up to other zones, and so not live.
	parting int

	// The rest a crash forgets. since is when this ledger came up: a node gets the time to report before its claims are given up.
	since quantity.Instant
	// stepped is when the latest step was, hearing until when no claim is given up after a pause.
	stepped, hearing quantity.Instant
	// asks in order of id, and so of expiry.
	asks    []*Ask
	nextAsk uint64
	// What is to be looked at again when time has come: jobs by the deadline of their owner, by their leases (answers that
	// are overdue, nodes that are silent), by the window they may continue into, by output that is not published, by
	// their pause after a failure, and those that avoid slices.
	deadlines, leases, continuing, publishing, resting, avoiding alarm.Heap[*Job]
	// closing has the gate told of verdicts until it confirms them, leaving the jobs go to the archive that may (nil: none do).
	closing outbox.Box[*Job]
	leaving *filing.Tray[*Job]
	// found is the job called sought, nil if there is none: the last that was looked up, since what is said of one job comes in a row.
	sought job.ID
	found  *Job
	// stirred are the jobs whose leases changed since their alarms were set; looking is room for a list of jobs.
	stirred dirty.Set[*Job]
	looking []*Job
	// plain is what the plain ledger remembers; nil but for oracles.
	plain *plainly
}

// New makes a ledger without jobs.
func New(cfg Config, w Watcher, s Supply) *Ledger {
	h := &Ledger{cfg: cfg, self: cfg.Self, watch: w, supply: s, jobs: map[job.ID]*Job{}, queues: map[string]*Queue{}}
	h.closing = outbox.New[*Job](cfg.Retry, mostClosing)
	if cfg.Archive != nil {
		h.leaving = filing.New[*Job](*cfg.Archive, cfg.Retry)
	}
	return h
}

// Digest is a hash of the durable state.
func (h *Ledger) Digest() uint64 { return h.sum }

// changed marks a job as possibly eligible where it was not before.
func (h *Ledger) changed(j *Job) {
	h.watch.Changed(j)
	h.stir(j)
}

// touch marks a job whose answers to windows may be others than before.
func (h *Ledger) touch(j *Job) {
	h.watch.Touched(j)
	h.stir(j)
}

// stir marks a job whose leases have changed: its alarms are set anew.
func (h *Ledger) stir(j *Job) {
	if j.sold != nil {
		h.stirred.Add(&j.stirred, j)
	}
}

// enliven adds a job to those without a final verdict, retire takes it out.
func (h *Ledger) enliven(j *Job) {
	h.live.add(j, aliveSlot)
	h.populate(j.q, 1)
	h.watch.Opened(j)
	if j.deadline() != quantity.Never {
		h.deadlines.Set(&j.slots.deadline, j, j.deadline())
	}
}

func (h *Ledger) retire(j *Job) {
	if j.alive == 0 {
		return
	}
	h.live.drop(j, aliveSlot)
	h.unlist(j)
	h.populate(j.q, -1)
	h.watch.Closed(j)
	h.deadlines.Set(&j.slots.deadline, j, quantity.Never)
	if j.trouble != nil {
		j.trouble.backoff = backoff{}
		h.avoiding.Set(&j.trouble.slots.avoiding, j, quantity.Never)
	}
	h.stir(j)
}

// Send sends a message in the ledger's name.
func (h *Ledger) Send(out *protocol.Out, m protocol.Message) {
	m.From = h.self
	out.Effects = append(out.Effects, m)
}

func nodeOf(c *protocol.Claim) protocol.Address {
	return protocol.Address{Role: protocol.Node, ID: string(c.Node)}
}
