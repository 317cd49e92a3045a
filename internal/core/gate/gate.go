// Package gate is where jobs are accepted: it owns a job's spec, the queues, and which zone is a job's home under which
// epoch. It is a deterministic state machine (see package protocol); durable state changes only in Apply.
package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config of a gate.
type Config struct {
	// ID of the gate, and all Gates with it: it has the jobs whose names are its own, and the first has the queues' settings. Both are empty for one alone.
	ID    job.GateID
	Gates protocol.Gates
	// Zones that are home to jobs, at least one. Their order is part of what queues' caps mean: new ones go last.
	Zones []Zone
	// Retain is how long a job is kept after its end. Default 168 h.
	Retain time.Duration
	// Retry is after how long an unanswered message is repeated; it doubles up to 64 times that. Default search.Config.Retry.
	Retry time.Duration
	// Horizon is the longest window a job may count on. Default 1 h.
	Horizon time.Duration
	// MaxJobs bounds the unfinished jobs of all queues together. Default 1,048,576.
	MaxJobs int
	// Archive has jobs that are over leave to the archive; nil: they stay until their retention is over.
	Archive *filing.Config
	// Search has tickets search among zones (mechanism laminar), checked; nil: none do.
	Search *search.Config
	// External accepts jobs whose own agents cut them: agents are asked.
	External bool
}

// Validate lists every problem of c.
func (c Config) Validate() error {
	var errs []error
	errs = append(errs, validateZones(c.Zones)...)
	if !slices.Contains(c.Gates, c.ID) && (len(c.Gates) > 0 || c.ID != "") {
		errs = append(errs, fmt.Errorf("gate: %q is none of the gates %v", c.ID, c.Gates))
	}
	if c.Retain < 0 || c.Retry < 0 || c.Horizon < 0 || c.MaxJobs < 0 {
		errs = append(errs, fmt.Errorf("gate: retain %v, retry %v, horizon %v and maxJobs %d must not be negative", c.Retain, c.Retry, c.Horizon, c.MaxJobs))
	}
	if c.Archive != nil {
		errs = append(errs, c.Archive.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// DefaultQueue always exists.
const DefaultQueue = "default"

// Gate is one gate. It implements protocol.Actor and is not safe for concurrent use.
type Gate struct {
	cfg  Config
	self protocol.Address

	// Durable, changed by Apply alone. entries are the jobs as captures go over them.
	jobs    map[job.ID]*entry
	entries capture.Parts[*entry]
	drains
	// homeless are the jobs whose home was not drawn yet.
	homeless map[job.ID]*entry
	queues   []*queue // by name
	// farewells are the names that earlier lives have not left yet; floor is the highest generation that was ever forgotten, so
	// that the next life of any name is above every one that anybody may still hear of.
	farewells map[job.ID]*farewell
	floor     job.Generation
	archived  archived
	sum       uint64
	// specs are what jobs that are alike share; they follow from the facts.
	specs job.Pool

	// unfinished counts the jobs without a verdict, unfinishedOf those of each queue.
	unfinished   int
	unfinishedOf map[string]int

	// Soft: what is not confirmed (jobs by their home, farewells, queue settings by the zone), when jobs have been kept long
	// enough, and what nodes have reported.
	telling   outbox.Box[*entry]
	leaves    outbox.Box[*farewell]
	settings  outbox.Box[setting]
	expiring  alarm.Heap[*entry]
	leaving   *filing.Tray[*entry] // nil: nothing is archived
	inventory inventory
	places    map[job.ZoneID]int // of the zones in the configuration
	// chances of the zones to be home to jobs of settings that the pool shares, while neither a queue nor an inventory changes.
	chances   map[*job.Spec][]int
	deletions []deletion
	dealer    *dealer // nil: homes are drawn by the kinds of slices alone
	woken     quantity.Instant
	// found is the job called sought, nil if there is none: the last that was looked up.
	sought job.ID
	found  *entry
	// told and parting are room for what is said in a step.
	told    []*entry
	parting []*farewell
	// pass replaces what follows every input; nil but in tests, which put the plain pass in its place.
	pass func(now quantity.Instant, out *protocol.Out) quantity.Instant
}

// What is said at most in one interval of Config.Retry and not confirmed: a restart with a million jobs does not burst.
const (
	mostTold      = 4096
	mostDismissed = 256
	// mostForgotten bounds the jobs that one step forgets. The next follows at once.
	mostForgotten = 256
)

// queue is a queue's settings.
type queue struct {
	*protocol.Queue
	// telling its settings to each zone; nil: that zone has them. Soft.
	telling []*outbox.Item[setting]
}

// setting is a queue's settings for one zone, by its place in the configuration, or behind all zones for one of the other gates.
type setting struct {
	queue *queue
	zone  int
}

// entry is one job at the gate. Most jobs wait and are nothing but accepted: what comes later has a place of its own.
type entry struct {
	capture.Mark
	id              job.ID
	spec            *job.Spec
	submittedSum    uint64
	sum             uint64 // its part of the digest
	request, digest string
	zone            job.ZoneID
	// generation of its present life; since is that of the first one of the same work, which was submitted then.
	generation, since job.Generation
	submitted         quantity.Instant
	epoch             uint32
	homed, held       bool
	sequel            *sequel

	// Soft: whether the home has confirmed held, and what it has to be told; nil: nothing.
	heldKnown bool
	telling   *outbox.Item[*entry]
}

// sequel is what has become of a job that was cancelled, requeued or is over.
type sequel struct {
	// begun is when this life was asked for, requeued by which request if it is not the first.
	begun    quantity.Instant
	requeued string
	// moving: its home is another zone than it was, and has not taken it over; nil else.
	moving *moving
	// dropping is why its owner cancelled it, empty if nobody did; cancelled is the request, dropped when that was, 0 if it is not known.
	dropping, cancelled string
	dropped             quantity.Instant
	verdict             job.Verdict
	ended               quantity.Instant

	// Soft: its place among those whose retention ends, and among those that leave to the archive.
	expires int
	leaving *filing.Sheet[*entry]
}

// became is the job's sequel, as it is while nothing has become of it.
func (e *entry) became() sequel {
	if e.sequel == nil {
		return sequel{begun: e.submitted}
	}
	return *e.sequel
}

// follow makes room for a sequel.
func (e *entry) follow() *sequel {
	if e.sequel == nil {
		e.sequel = &sequel{begun: e.submitted}
	}
	return e.sequel
}

// over says that the job has a verdict.
func (e *entry) over() bool { return e.sequel != nil && e.sequel.verdict.State.Final() }

// New makes a gate without jobs.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Retain = cmp.Or(cfg.Retain, 168*time.Hour)
	cfg.Retry = cmp.Or(cfg.Retry, cfg.Search.Retry())
	cfg.Horizon = cmp.Or(cfg.Horizon, time.Hour)
	cfg.MaxJobs = cmp.Or(cfg.MaxJobs, 1<<20)
	g := &Gate{
		cfg: cfg, self: protocol.Address{Role: protocol.Gate, ID: string(cfg.ID)}, jobs: map[job.ID]*entry{}, homeless: map[job.ID]*entry{}, drains: newDrains(&cfg), farewells: map[job.ID]*farewell{},
		queues: []*queue{newQueue(&cfg, &protocol.Queue{Name: DefaultQueue, Weight: 1})}, unfinishedOf: map[string]int{}, places: map[job.ZoneID]int{}, chances: map[*job.Spec][]int{},
		telling: outbox.New[*entry](cfg.Retry, mostTold), leaves: outbox.New[*farewell](cfg.Retry, mostDismissed),
		settings: outbox.New[setting](cfg.Retry, mostDismissed), inventory: newInventory(&cfg),
	}
	for i := range cfg.Zones {
		g.places[cfg.Zones[i].ID] = i
	}
	if cfg.Search != nil {
		g.dealer = newDealer(cfg.Search, g.places)
	}
	if cfg.Archive != nil {
		g.leaving = filing.New[*entry](*cfg.Archive, cfg.Retry)
	}
	return g, nil
}

// Digest is a hash of the durable state.
func (g *Gate) Digest() uint64 { return g.sum }

// hash is the entry's part of the digest. What was submitted is long and never changes but by a requeue, and has a sum of its own, so
// that a fact costs what it changes.
func (e *entry) hash() uint64 {
	b := e.became()
	h := digest.New().Int(int64(e.submittedSum), int64(e.epoch), int64(e.generation), int64(e.since), int64(b.begun)).Text(b.requeued).Text(b.cancelled)
	if b.moving != nil {
		h = h.Text("moves from").Text(string(b.moving.from))
	}
	if b.dropped != 0 {
		h = h.Int(int64(b.dropped))
	}
	return b.verdict.Mix(h.Bool(e.homed, e.held).Text(b.dropping)).Int(int64(b.ended)).Sum()
}

// resum takes an entry into the digest as it is now.
func (g *Gate) resum(e *entry) {
	sum := e.hash()
	g.sum += sum - e.sum
	e.sum = sum
}

// sumSubmitted is what hash takes of what was submitted, of which the spec has a sum already.
func (e *entry) sumSubmitted(spec uint64) uint64 {
	h := digest.New().Int(int64(spec)).Text(string(e.id)).Text(e.request).Text(e.digest).Text(string(e.zone))
	return h.Int(int64(e.submitted)).Sum()
}

// fact decides f: it is applied at once and made durable before any effect of the step leaves.
func (g *Gate) fact(out *protocol.Out, f protocol.Fact) {
	f.Actor = g.self
	out.Facts = append(out.Facts, f)
	g.apply(&f)
}

// Apply folds one fact into the durable state. It is the only place where that changes.
func (g *Gate) Apply(f protocol.Fact) { g.apply(&f) }

// apply neither keeps nor changes the fact.
func (g *Gate) apply(f *protocol.Fact) {
	switch f.Kind {
	case protocol.JobAccepted:
		g.applyAccepted(f)
	case protocol.QueueSet:
		i, found := g.findQueue(f.Queue.Name)
		if found {
			g.sum -= g.queueSum(i)
			g.queues[i].Queue = f.Queue
		} else {
			g.queues = slices.Insert(g.queues, i, newQueue(&g.cfg, f.Queue))
		}
		g.sum += g.queueSum(i)
		clear(g.chances)
		g.announce(g.queues[i])
	case protocol.JobForgotten:
		g.applyForgotten(f)
	case protocol.JobPurged:
		g.applyPurged(f)
	case protocol.JobArchived:
		g.applyArchived(f)
	case protocol.ZoneDrained:
		g.applyDrained(f.Zone)
	case protocol.JobDeparted:
		g.applyDeparted(f)
	default:
		e := g.find(f.Job)
		if e == nil {
			invariant.Check(false, "gate: fact %d is about job %q, which it does not have", f.Kind, f.Job)
		}
		g.entries.Change(e)
		g.applyJob(e, f)
		g.resum(e)
	}
}

func (g *Gate) applyAccepted(f *protocol.Fact) {
	if g.find(f.Job) != nil {
		invariant.Check(false, "gate: job %s is accepted twice", f.Job)
	}
	if f.Flag {
		g.addArchived(-1, 0)
	}
	e := g.accepted(f)
	g.jobs[e.id] = e
	g.sought, g.found = e.id, e
	if e.zone == "" {
		g.homeless[e.id] = e
	}
	g.entries.Add(e)
	g.count(e, 1)
	g.resum(e)
	g.tell(e, true)
}

// accepted is a job that nothing has become of.
func (g *Gate) accepted(f *protocol.Fact) *entry {
	spec, sum := g.specs.Share(f.Spec)
	e := &entry{
		id: f.Job, spec: spec, request: f.Request, digest: f.Digest, zone: f.Zone, epoch: f.Epoch,
		generation: f.Generation.Number(), since: f.Generation.Number(), submitted: f.At, heldKnown: true,
	}
	e.submittedSum = e.sumSubmitted(sum)
	return e
}

func (g *Gate) applyJob(e *entry, f *protocol.Fact) {
	was := e.over()
	if was && f.Kind == protocol.JobRequeued {
		g.keep(e)
		g.count(e, 1)
	}
	if m := e.became().moving; m != nil && f.Kind == protocol.JobHomed {
		g.depart(&departure{of: departed{e.id, m.from}, last: e.generation, epoch: e.epoch - 1})
	}
	e.fold(f, &g.specs)
	if e.zone == "" && !e.over() {
		g.homeless[e.id] = e
	} else {
		delete(g.homeless, e.id)
	}
	if f.Kind == protocol.JobClosed {
		if !was {
			g.count(e, -1)
		}
		b := e.sequel
		g.expiring.Set(&b.expires, e, b.ended.Add(g.cfg.Retain))
		b.leaving = g.leaving.Put(b.leaving, e, b.ended)
	}
	switch f.Kind {
	case protocol.JobHomed, protocol.JobDropping, protocol.JobHeld, protocol.JobRequeued, protocol.JobDrawn, protocol.Rehomed:
		g.tell(e, true)
	default:
		g.tell(e, false)
	}
}

// fold changes the entry alone.
func (e *entry) fold(f *protocol.Fact, specs *job.Pool) {
	switch f.Kind {
	case protocol.JobHomed:
		if e.homed = true; e.sequel != nil {
			e.sequel.moving = nil
		}
	case protocol.JobDrawn:
		e.move(f.Zone, specs)
	case protocol.Rehomed:
		e.follow().moving = &moving{from: e.zone}
		e.epoch, e.homed, e.heldKnown = f.Epoch, false, true
		e.move(f.Zone, specs)
	case protocol.JobDropping:
		b := e.follow()
		b.dropping, b.cancelled, b.dropped = f.Text, f.Request, f.At
	case protocol.JobHeld:
		e.held, e.heldKnown = f.Flag, false
	case protocol.JobClosed:
		b := e.follow()
		if b.moving != nil { // it ended before it was surrendered, and stays where it was
			e.epoch, e.homed = e.epoch-1, true
			e.move(b.moving.from, specs)
			b.moving = nil
		}
		b.verdict, b.ended, e.heldKnown = f.Verdict, f.At, true
	case protocol.JobRequeued:
		e.generation = f.Generation
		*e.follow() = sequel{begun: f.At, requeued: f.Request}
		if f.Spec != nil {
			var sum uint64
			e.spec, sum = specs.Share(f.Spec)
			e.submittedSum = e.sumSubmitted(sum)
		}
		e.homed, e.held, e.heldKnown = false, false, true
	}
}

// keep takes a job that is over out of what ends its stay.
func (g *Gate) keep(e *entry) {
	g.expiring.Set(&e.sequel.expires, e, quantity.Never)
	e.sequel.leaving = g.leaving.Drop(e.sequel.leaving)
}

// count keeps how many jobs are unfinished.
func (g *Gate) count(e *entry, more int) {
	g.unfinished += more
	if n := g.unfinishedOf[e.spec.Queue] + more; n != 0 {
		g.unfinishedOf[e.spec.Queue] = n
	} else {
		delete(g.unfinishedOf, e.spec.Queue)
	}
}

// queueSum is 0 for the default queue as it is without any fact.
func (g *Gate) queueSum(i int) uint64 {
	if q := g.queues[i]; *q.Queue == (protocol.Queue{Name: DefaultQueue, Weight: 1}) {
		return 0
	}
	return g.queues[i].Mix(digest.New()).Sum()
}

// Capture implements capture.Source. Farewells go first: one folds before the next job of its name.
func (g *Gate) Capture() capture.Run {
	var small []protocol.Fact
	for i, q := range g.queues {
		if g.queueSum(i) != 0 {
			c := *q.Queue
			small = append(small, protocol.Fact{Kind: protocol.QueueSet, Queue: &c})
		}
	}
	small = g.archived.appendFacts(small)
	small = g.drainFacts(small)
	return g.entries.Begin(g.self, g.farewellFacts(small))
}

// AppendFacts implements capture.Part.
func (e *entry) AppendFacts(out []protocol.Fact) []protocol.Fact {
	b, home, epoch := e.became(), e.zone, e.epoch
	if b.moving != nil {
		home, epoch = b.moving.from, epoch-1
	}
	out = append(out, protocol.Fact{
		Kind: protocol.JobAccepted, Job: e.id, Generation: e.since, Spec: e.spec, Request: e.request, Digest: e.digest,
		Zone: home, Epoch: epoch, At: e.submitted,
	})
	if e.generation > e.since {
		out = append(out, protocol.Fact{Kind: protocol.JobRequeued, Job: e.id, Generation: e.generation, Request: b.requeued, At: b.begun})
	}
	if b.moving != nil {
		out = append(out, protocol.Fact{Kind: protocol.Rehomed, Job: e.id, Zone: e.zone, Epoch: e.epoch})
	}
	if e.homed {
		out = append(out, protocol.Fact{Kind: protocol.JobHomed, Job: e.id, Epoch: e.epoch})
	}
	if e.held {
		out = append(out, protocol.Fact{Kind: protocol.JobHeld, Job: e.id, Flag: true})
	}
	if b.dropping != "" {
		out = append(out, protocol.Fact{Kind: protocol.JobDropping, Job: e.id, Text: b.dropping, Request: b.cancelled, At: b.dropped})
	}
	if e.over() {
		out = append(out, protocol.Fact{Kind: protocol.JobClosed, Job: e.id, Verdict: b.verdict, At: b.ended})
	}
	return out
}

// find remembers what it was asked last: what is said of one job comes in a row.
func (g *Gate) find(id job.ID) *entry {
	if g.sought != id {
		g.sought, g.found = id, g.jobs[id]
	}
	return g.found
}

func newQueue(cfg *Config, q *protocol.Queue) *queue {
	return &queue{Queue: q, telling: make([]*outbox.Item[setting], cfg.listeners())}
}

func (g *Gate) findQueue(name string) (int, bool) {
	return slices.BinarySearchFunc(g.queues, name, func(q *queue, name string) int { return cmp.Compare(q.Name, name) })
}
