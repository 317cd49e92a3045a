// Package zone is the home of jobs: it owns their progress, claims and what was learned of them, and runs the market
// that turns idle slice-time into windows and windows into subjobs (SJA as published: one market at the zone, every
// waiting job is asked). It is a deterministic state machine: durable state changes only in Apply, everything else it
// knows (views of slices, rounds, counts of refusals) is soft and forgotten by a crash. It knows no clock, no store and
// no transport.
package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Zone is one zone. It implements protocol.Actor and is not safe for concurrent use.
type Zone struct {
	cfg  Config
	self protocol.Address

	// Durable, changed by Apply alone.
	jobs   map[job.ID]*state
	queues map[string]*queue
	sum    uint64

	// Indexes over jobs by id, kept by Apply: all; those without a final verdict; those with standing claims; those whose
	// owner gave a deadline; live rigid ones.
	all, live, busy, dated, rigid []*state

	soft
}

// soft is what a crash forgets.
type soft struct {
	// since is when this zone came up: a node gets the time to report before its claims are given up.
	since quantity.Instant
	// slices by capacity, then id: small windows are announced first, so that small pieces go to small slices.
	slices []*slice
	asks   []*ask
	// plans are ForRigid reservations asked for and not seen in a view yet.
	plans []plan
	// withdrawals are those asked to be withdrawn.
	withdrawals []withdrawal
	// keeping are the gangs that their queue's cap is kept for; kept is room for the next such list.
	keeping, kept []*state
	// planned is the rigid job that is planned, nil if there is none.
	planned *state
	// reckoned are the jobs whose running subjobs were counted last.
	reckoned []*state
	// generation counts the changes that can make a job eligible where it was not before.
	generation                   uint64
	nextAsk, nextWindow, nextRnd uint64
	candidates                   []candidate
	// closing are jobs whose final verdict the gate has not confirmed; resting those that pause after a failure.
	closing, resting []*state
	// woken is the earliest wake-up already asked for.
	woken quantity.Instant
}

// state is one job: its durable record and what is only known until the next crash.
type state struct {
	protocol.Record
	sum uint64
	// q is the job's queue.
	q *queue

	// generation of the last change that can make the job eligible.
	generation uint64
	// notBefore pauses the job after a subjob without progress.
	notBefore quantity.Instant
	// asked are the ranges in asks that no node has answered yet, asking how many asks those are.
	asked  job.Ranges
	asking int
	// dropping is the verdict the job ends with once its claims are settled; its State is Waiting (zero) while none.
	dropping job.Verdict
	// closedAt is when Closed was last sent; acked that the gate has it.
	closedAt quantity.Instant
	acked    bool
	// leases is what is known of the standing claims, in their order.
	leases []lease
	counts counts
	// planned: its place is later, and better than what the market could give it now.
	planned bool
	// going is what its running subjobs have had so far, in MiB-milliseconds.
	going int64
}

// lease is what the zone has heard of one claim since it came up.
type lease struct {
	token job.Token
	// known: the node has confirmed it. sent: when Redeem, Stop or Extend was last sent.
	known bool
	sent  quantity.Instant
	// running since, 0 if not heard of; progress last reported.
	running  quantity.Instant
	progress int64
	// tried is the end of the lease for which a continuation or extension was last considered.
	tried quantity.Instant
	// ask is an extension that is not answered yet, before what the claim was without it.
	ask    uint64
	before protocol.Claim
}

// queue is a queue's settings and use.
type queue struct {
	protocol.Queue
	// attained is the sum over its jobs, in MiB-milliseconds.
	attained int64
	// held is the number of slices its claims hold.
	held int
	// going is what its running subjobs have had so far, in MiB-milliseconds.
	going int64
	// kept is the gang that waits for the cap to have room; what comes after it in the queue waits too.
	kept *state
}

// New makes a zone without jobs.
func New(cfg Config) (*Zone, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Zone{
		cfg: cfg, self: protocol.Address{Role: protocol.Zone, ID: string(cfg.ID)},
		jobs: map[job.ID]*state{}, queues: map[string]*queue{},
	}, nil
}

// Digest is a hash of the durable state.
func (z *Zone) Digest() uint64 { return z.sum }

// queue returns the named queue; an unknown one has weight 1 and no caps.
func (z *Zone) queue(name string) *queue {
	q := z.queues[name]
	if q == nil {
		q = &queue{Queue: protocol.Queue{Name: name, Weight: 1}}
		z.queues[name] = q
	}
	return q
}

func byID(a *state, id job.ID) int { return cmp.Compare(a.Job, id) }

// insert puts s into a slice ordered by id; remove takes it out.
func insert(list []*state, s *state) []*state {
	i, found := slices.BinarySearchFunc(list, s.Job, byID)
	if found {
		list[i] = s
		return list
	}
	return slices.Insert(list, i, s)
}

func remove(list []*state, id job.ID) []*state {
	if i, found := slices.BinarySearchFunc(list, id, byID); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// claim finds a standing claim; -1 if there is none under this token.
func (s *state) claim(t job.Token) int {
	i, found := slices.BinarySearchFunc(s.Claims, t, func(c protocol.Claim, t job.Token) int { return c.Token.Compare(t) })
	if !found {
		return -1
	}
	return i
}

// lease finds what is known of a standing claim.
func (s *state) lease(t job.Token) *lease {
	for i := range s.leases {
		if s.leases[i].token == t {
			return &s.leases[i]
		}
	}
	return nil
}

// freed tells the other jobs of a capped queue that it holds a slice less.
func (z *Zone) freed(q *queue) {
	if q.Cap == 0 {
		return
	}
	for _, s := range z.live {
		if s.q == q {
			z.changed(s)
		}
	}
}

// changed marks a job as possibly eligible where it was not before.
func (z *Zone) changed(s *state) {
	z.generation++
	s.generation = z.generation
}

// deadline is the owner's, Never if none was given.
func (s *state) deadline() quantity.Instant {
	if s.Spec.Deadline == 0 {
		return quantity.Never
	}
	return s.Spec.Deadline
}
