// Package zone is the home of jobs: it owns their progress, claims and what was learned of them, and runs the market
// that turns idle slice-time into windows and windows into subjobs (SJA as published: one market at the zone, every
// waiting job is asked). It is a deterministic state machine: durable state changes only in Apply, everything else it
// knows (views of slices, rounds, counts of refusals) is soft and forgotten by a crash. It knows no clock, no store and
// no transport.
package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Zone is one zone. It implements protocol.Actor and is not safe for concurrent use.
type Zone struct {
	cfg  Config
	self protocol.Address

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
	// sites are all slices ever heard of, claims on them counted in.
	sites map[job.SliceID]*slice

	// floor is where windows are offered and sold. It knows nothing that a crash must keep.
	floor *market.Floor
	// planner keeps placements for rigid jobs.
	planner *backfill.Planner

	soft
	// pass replaces what follows every input; nil but in tests, which put the plain pass in its place.
	pass func(now quantity.Instant, out *protocol.Out)
}

// soft is what a crash forgets.
type soft struct {
	// since is when this zone came up: a node gets the time to report before its claims are given up.
	since quantity.Instant
	// kept is the gang of a queue that waits for the cap to have room; what comes after it in the queue waits too. keeping are all
	// of these, spareKept is room for the next such list.
	kept               map[*Queue]*Job
	keeping, spareKept []*Job
	foresight          foresight
	// asks in order of id, and so of expiry.
	asks    []*ask
	nextAsk uint64
	// What is to be looked at again when time has come: jobs by the deadline of their owner, by their leases (answers that
	// are overdue, nodes that are silent), by the window they may continue into, by output that is not published, by
	// their pause after a failure, and those that avoid slices.
	deadlines, leases, continuing, publishing, resting, avoiding alarm.Heap[*Job]
	// closing has the gate told of verdicts until it confirms them, leaving the jobs go to the archive that may (nil: none do).
	closing outbox.Box[*Job]
	leaving *filing.Tray[*Job]
	// stales are when slices that are left alone are to be looked at.
	stales alarm.Heap[*slice]
	// stirred are the jobs whose leases changed since their alarms were set; looking is room for a list of jobs.
	stirred dirty.Set[*Job]
	looking []*Job
	// woken is the earliest wake-up already asked for.
	woken quantity.Instant
}

// Job is one job, as most are: accepted, and waiting. What came of it is in records of their own (record.go).
type Job struct {
	accepted
	// Beside is what whoever made room for it keeps of it beside this.
	Beside any
	// q is its queue.
	q *Queue

	capture.Mark
	// sum of the record, and of its spec.
	sum, specSum uint64
	// sold, lessons and sealed are read by work, learned and fate; nil where there is nothing.
	sold    *work
	lessons *lessons
	sealed  *fate
	// trouble is what nodes had with it lately, read by met; nil if there is none.
	trouble *trouble
	// enrolledIn is its roster in the queue.
	enrolledIn *roster

	// alive is 1 + its place among the live jobs; the slots are its places among the alarms and crowds that they name.
	alive int
	slots struct{ deadline int }
	// stirred: it is in the list of that name.
	stirred dirty.Mark
	// unbegun: it is in its template's list of that name.
	unbegun bool
}

// accepted is what every job has: durable, as protocol.Record has it.
type accepted struct {
	ID         job.ID
	Spec       *job.Spec
	Submitted  quantity.Instant
	Epoch      uint32
	Generation job.Generation
	Held       bool
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
	// won is the ask that it came of, 0 if that was before the zone came up.
	won uint64
	// withdrawn: the node is asked to give it up, if it has not begun, for something better.
	withdrawn bool
}

// Queue is a queue's settings and use.
type Queue struct {
	protocol.Queue
	// attained is the sum over its jobs, those included that the archive alone has, in MiB-milliseconds.
	attained int64
	// held is the number of slices its claims hold, asking that of its unanswered asks.
	held, asking int
	// going is what its running subjobs have had so far.
	going meter
	// standing is what the market has learned of it, and its credits; pledged is what its unanswered asks will take of them.
	standing protocol.Standing
	pledged  int64
	// templates that finished jobs of it have taught, the one that was taught last behind.
	templates []*template
	// unbegun are the jobs of each template that have not begun; no template without any is in it.
	unbegun map[string]*unbegun
	// alive is how many jobs without a final verdict it has, rosters all its jobs.
	alive   int
	rosters rosters
}

// New makes a zone without jobs.
func New(cfg Config) (*Zone, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	z := &Zone{
		cfg: cfg, self: protocol.Address{Role: protocol.Zone, ID: string(cfg.ID)},
		jobs: map[job.ID]*Job{}, queues: map[string]*Queue{}, sites: map[job.SliceID]*slice{}, soft: soft{kept: map[*Queue]*Job{}},
	}
	z.floor = market.NewFloor(z.floorConfig(), (*seller)(z))
	z.planner = backfill.New(z.plannerConfig(), z.floor, (*placer)(z))
	z.closing = outbox.New[*Job](cfg.Retry, mostClosing)
	if cfg.Archive != nil {
		z.leaving = filing.New[*Job](*cfg.Archive, cfg.Retry)
	}
	return z, nil
}

// Digest is a hash of the durable state.
func (z *Zone) Digest() uint64 { return z.sum }

// queue returns the named queue; an unknown one has weight 1 and no caps.
func (z *Zone) queue(name string) *Queue {
	q := z.queues[name]
	if q == nil {
		q = newQueue(name)
		z.queues[name] = q
	}
	return q
}

func newQueue(name string) *Queue {
	return &Queue{Queue: protocol.Queue{Name: name, Weight: 1}, unbegun: map[string]*unbegun{}}
}

// claim finds a standing claim; -1 if there is none under this token.
func (j *Job) claim(t job.Token) int {
	i, found := slices.BinarySearchFunc(j.work().claims, t, func(c protocol.Claim, t job.Token) int { return c.Token.Compare(t) })
	if !found {
		return -1
	}
	return i
}

// lease finds what is known of a standing claim.
func (j *Job) lease(t job.Token) *lease {
	for i := range j.work().leases {
		if j.work().leases[i].token == t {
			return &j.work().leases[i]
		}
	}
	return nil
}

// freed tells the other jobs of a capped queue that it holds a slice less.
func (z *Zone) freed(q *Queue) {
	if q.Cap > 0 {
		z.changedIn(q)
	}
}

// changedIn marks all jobs of a queue.
func (z *Zone) changedIn(q *Queue) {
	for _, j := range z.live {
		if j.q == q {
			z.changed(j)
		}
	}
}

// changed marks a job as possibly eligible where it was not before.
func (z *Zone) changed(j *Job) {
	z.floor.Changed(&entryOf(j).floor)
	z.touched(j)
}

// touch marks a job whose answers to windows may be others than before.
func (z *Zone) touch(j *Job) {
	z.floor.InvalidateJob(&entryOf(j).floor)
	z.touched(j)
}

// touched has a job looked at that is not the market's alone: rigid ones are planned, and all have leases.
func (z *Zone) touched(j *Job) {
	if j.Spec.Kind == job.Rigid {
		z.planner.InvalidateJob(entryOf(j).rigid)
	}
	z.stir(j)
}

// stir marks a job whose leases have changed: its alarms are set anew.
func (z *Zone) stir(j *Job) {
	if j.sold != nil {
		z.stirred.Add(&j.stirred, j)
	}
}

// enliven adds a job to those without a final verdict, retire takes it out.
func (z *Zone) enliven(j *Job) {
	z.live.add(j, aliveSlot)
	z.floor.Activate(&entryOf(j).floor)
	z.populate(j.q, 1)
	if j.deadline() != quantity.Never {
		z.deadlines.Set(&j.slots.deadline, j, j.deadline())
	}
}

func (z *Zone) retire(j *Job) {
	if j.alive == 0 {
		return
	}
	z.live.drop(j, aliveSlot)
	z.unlist(j)
	z.populate(j.q, -1)
	z.floor.Retire(&entryOf(j).floor)
	z.deadlines.Set(&j.slots.deadline, j, quantity.Never)
	if j.trouble != nil {
		j.trouble.backoff = backoff{}
		z.avoiding.Set(&j.trouble.slots.avoiding, j, quantity.Never)
	}
	z.touched(j)
}

// deadline is the owner's, Never if none was given.
func (j *Job) deadline() quantity.Instant {
	if j.Spec.Deadline == 0 {
		return quantity.Never
	}
	return j.Spec.Deadline
}
