// Package gate is where jobs are accepted: it owns a job's spec, the queues, and which zone is a job's home under which
// epoch. It is a deterministic state machine (see package protocol); durable state changes only in Apply.
package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config of a gate.
type Config struct {
	// Zone that is home to every job. Required.
	Zone job.ZoneID
	// Retain is how long a job is kept after its end. Default 168 h.
	Retain time.Duration
	// Retry is how often an unanswered message is repeated. Default 1 s.
	Retry time.Duration
	// Horizon is the longest window a job may count on. Default 1 h.
	Horizon time.Duration
	// MaxJobs bounds the unfinished jobs of all queues together. Default 100,000.
	MaxJobs int
	// External accepts jobs whose own agents cut them: the market asks agents (mechanism jasda).
	External bool
}

// Validate lists every problem of c.
func (c Config) Validate() error {
	var errs []error
	if c.Zone == "" {
		errs = append(errs, errors.New("gate: it needs a zone"))
	}
	if c.Retain < 0 || c.Retry < 0 || c.Horizon < 0 || c.MaxJobs < 0 {
		errs = append(errs, fmt.Errorf("gate: retain %v, retry %v, horizon %v and maxJobs %d must not be negative", c.Retain, c.Retry, c.Horizon, c.MaxJobs))
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
	jobs    []*entry // by id
	entries capture.Parts
	queues  []*protocol.Queue
	// farewells are the names that earlier lives have not left yet, by name; floor is the highest generation that was ever
	// forgotten, so that the next life of any name is above every one that anybody may still hear of.
	farewells []*farewell
	floor     job.Generation
	sum       uint64

	// open are the jobs that somebody still has to hear about, by id; unfinished counts those without a verdict.
	open       []*entry
	unfinished int

	// Soft: the slices of every node that has reported, and queue settings the zone has not confirmed.
	inventory []nodeSlices
	deletions []deletion
	unsent    []*protocol.Queue
	unsentAt  quantity.Instant
	woken     quantity.Instant
}

// entry is one job at the gate.
type entry struct {
	capture.Mark
	id      job.ID
	spec    *job.Spec
	specSum uint64 // of spec, which is long and never changes
	request string
	digest  string
	zone    job.ZoneID
	epoch   uint32
	// generation of its present life; since is that of the first one of the same work, which was submitted then.
	generation, since job.Generation
	submitted         quantity.Instant
	// begun is when this life was asked for, requeued by which request if it is not the first.
	begun    quantity.Instant
	requeued string
	homed    bool
	held     bool
	// dropping is why its owner cancelled it, empty if nobody did; cancelled is the request.
	dropping, cancelled string
	verdict             job.Verdict
	ended               quantity.Instant

	// Soft: when the zone was last told, and whether it has confirmed held.
	sent      quantity.Instant
	heldKnown bool
}

type nodeSlices struct {
	node   string
	slices []protocol.Slice
}

// New makes a gate without jobs.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Retain = cmp.Or(cfg.Retain, 168*time.Hour)
	cfg.Retry = cmp.Or(cfg.Retry, time.Second)
	cfg.Horizon = cmp.Or(cfg.Horizon, time.Hour)
	cfg.MaxJobs = cmp.Or(cfg.MaxJobs, 100_000)
	return &Gate{
		cfg: cfg, self: protocol.Address{Role: protocol.Gate},
		queues: []*protocol.Queue{{Name: DefaultQueue, Weight: 1}},
	}, nil
}

// Digest is a hash of the durable state.
func (g *Gate) Digest() uint64 { return g.sum }

func (e *entry) hash() uint64 {
	h := digest.New().Text(string(e.id)).Int(int64(e.specSum)).Text(e.request).Text(e.digest).Text(string(e.zone)).Int(int64(e.epoch), int64(e.submitted))
	h = h.Int(int64(e.generation), int64(e.since), int64(e.begun)).Text(e.requeued).Text(e.cancelled)
	return e.verdict.Mix(h.Bool(e.homed, e.held).Text(e.dropping)).Int(int64(e.ended)).Sum()
}

// fact decides f: it is applied at once and made durable before any effect of the step leaves.
func (g *Gate) fact(out *protocol.Out, f protocol.Fact) {
	f.Actor = g.self
	out.Facts = append(out.Facts, f)
	g.Apply(f)
}

// Apply folds one fact into the durable state. It is the only place where that changes.
func (g *Gate) Apply(f protocol.Fact) {
	switch f.Kind {
	case protocol.JobAccepted:
		e := &entry{
			id: f.Job, spec: f.Spec, specSum: f.Spec.Mix(digest.New()).Sum(), request: f.Request, digest: f.Digest, zone: f.Zone, epoch: f.Epoch,
			generation: f.Generation.Number(), since: f.Generation.Number(), submitted: f.At, begun: f.At, heldKnown: true,
		}
		g.jobs, g.open = insert(g.jobs, e), insert(g.open, e)
		g.unfinished++
		g.sum += e.hash()
		g.entries.Add(e)
	case protocol.QueueSet:
		i, found := g.findQueue(f.Queue.Name)
		if found {
			g.sum -= g.queueSum(i)
			g.queues[i] = f.Queue
		} else {
			g.queues = slices.Insert(g.queues, i, f.Queue)
		}
		g.sum += g.queueSum(i)
		g.unsent = slices.DeleteFunc(g.unsent, func(q *protocol.Queue) bool { return q.Name == f.Queue.Name })
		g.unsent, g.unsentAt = append(g.unsent, f.Queue), 0
	case protocol.JobForgotten:
		g.applyForgotten(&f)
	case protocol.JobPurged:
		g.applyPurged(&f)
	default:
		e := g.find(f.Job)
		invariant.Check(e != nil, "gate: fact %d is about job %q, which it does not have", f.Kind, f.Job)
		g.entries.Change(e)
		g.sum -= e.hash()
		g.applyJob(e, &f)
		g.sum += e.hash()
	}
}

func (g *Gate) applyJob(e *entry, f *protocol.Fact) {
	switch f.Kind {
	case protocol.JobHomed:
		e.homed = true
	case protocol.JobDropping:
		e.dropping, e.cancelled, e.sent = f.Text, f.Request, 0
	case protocol.JobHeld:
		e.held, e.heldKnown, e.sent = f.Flag, false, 0
	case protocol.JobClosed:
		e.verdict, e.ended, e.heldKnown = f.Verdict, f.At, true
		g.unfinished--
	case protocol.JobRequeued:
		g.applyRequeued(e, f)
	}
}

// queueSum is 0 for the default queue as it is without any fact.
func (g *Gate) queueSum(i int) uint64 {
	if q := g.queues[i]; *q == (protocol.Queue{Name: DefaultQueue, Weight: 1}) {
		return 0
	}
	return g.queues[i].Mix(digest.New()).Sum()
}

// Capture implements capture.Source. Farewells go first: one folds before the next job of its name.
func (g *Gate) Capture() capture.Run {
	var small []protocol.Fact
	for i, q := range g.queues {
		if g.queueSum(i) != 0 {
			c := *q
			small = append(small, protocol.Fact{Kind: protocol.QueueSet, Queue: &c})
		}
	}
	return g.entries.Begin(g.self, g.farewellFacts(small))
}

// AppendFacts implements capture.Part.
func (e *entry) AppendFacts(out []protocol.Fact) []protocol.Fact {
	out = append(out, protocol.Fact{
		Kind: protocol.JobAccepted, Job: e.id, Generation: e.since, Spec: e.spec, Request: e.request, Digest: e.digest,
		Zone: e.zone, Epoch: e.epoch, At: e.submitted,
	})
	if e.generation > e.since {
		out = append(out, protocol.Fact{Kind: protocol.JobRequeued, Job: e.id, Generation: e.generation, Request: e.requeued, At: e.begun})
	}
	if e.homed {
		out = append(out, protocol.Fact{Kind: protocol.JobHomed, Job: e.id, Epoch: e.epoch})
	}
	if e.held {
		out = append(out, protocol.Fact{Kind: protocol.JobHeld, Job: e.id, Flag: true})
	}
	if e.dropping != "" {
		out = append(out, protocol.Fact{Kind: protocol.JobDropping, Job: e.id, Text: e.dropping, Request: e.cancelled})
	}
	if e.verdict.State.Final() {
		out = append(out, protocol.Fact{Kind: protocol.JobClosed, Job: e.id, Verdict: e.verdict, At: e.ended})
	}
	return out
}

func byID(e *entry, id job.ID) int { return cmp.Compare(e.id, id) }

func (g *Gate) find(id job.ID) *entry {
	if i, found := slices.BinarySearchFunc(g.jobs, id, byID); found {
		return g.jobs[i]
	}
	return nil
}

func insert(list []*entry, e *entry) []*entry {
	i, found := slices.BinarySearchFunc(list, e.id, byID)
	invariant.Check(!found, "gate: job %s is accepted twice", e.id)
	return slices.Insert(list, i, e)
}

func remove(list []*entry, id job.ID) []*entry {
	if i, found := slices.BinarySearchFunc(list, id, byID); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func (g *Gate) findQueue(name string) (int, bool) {
	return slices.BinarySearchFunc(g.queues, name, func(q *protocol.Queue, name string) int { return cmp.Compare(q.Name, name) })
}
