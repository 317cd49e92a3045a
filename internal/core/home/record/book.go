// Package record is the durable state of the jobs that are at home in one place, and what follows from it: their registers, lists and
// alarms. It changes by facts alone, and sends nothing.
package record

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/home/dropped"
	"sluice.dev/sluice/internal/core/home/list"
	"sluice.dev/sluice/internal/core/home/queues"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Config is the configuration of a book.
type Config struct {
	Self protocol.Address
	// Archive makes finished jobs leave; nil: none does.
	Archive *filing.Config
	Retry   time.Duration
	// Refill is how many credits of each slice are shared out in PurseTime.
	Refill    int64
	PurseTime time.Duration
}

// Book has the jobs that are at home in one place. Invariant: sum is the sum of the hashes of its jobs, queues and templates, which Apply
// alone changes; the registers (live, busy, lists) hold exactly the jobs whose state says so. It is not safe for concurrent use.
type Book struct {
	cfg   Config
	watch Watcher

	// Durable.
	jobs    map[job.ID]*Job
	records capture.Parts[*Job] // the jobs as captures go over them
	queues  map[string]*Queue
	dropped dropped.Jobs
	sum     uint64
	// specs are what jobs that are alike share; they follow from the facts.
	specs job.Pool

	// Agenda is when jobs are to be looked at again, Closed those that are over, Purses what the queues pay with.
	Agenda Agenda
	Closed Closed
	Purses queues.Purses
	lists  lists
	// live are the jobs without a final verdict, busy those with standing claims; leaving is how many of busy are given up to other zones,
	// and so not live.
	live, busy list.Set[*Job]
	leaving    int
	// found is the job called sought, nil if there is none: the last lookup, since messages about one job come in a row.
	sought job.ID
	found  *Job
	// stirred are the jobs whose leases changed since their alarms were set.
	stirred dirty.Set[*Job]
}

// New makes an empty book.
func New(cfg Config, w Watcher, s interface{ Slices() int }) *Book {
	return &Book{
		cfg: cfg, watch: w, jobs: map[job.ID]*Job{}, queues: map[string]*Queue{},
		Closed: newClosed(cfg.Archive, cfg.Retry), Purses: queues.NewPurses(cfg.Refill, cfg.PurseTime, s),
	}
}

// Digest is a hash of the durable state.
func (b *Book) Digest() uint64 { return b.sum + b.dropped.Sum() }

// Job of a name; nil if it is not here.
func (b *Book) Job(id job.ID) *Job {
	if b.sought != id {
		b.sought, b.found = id, b.jobs[id]
	}
	return b.found
}

// Jobs are all jobs, in no order that means anything.
func (b *Book) Jobs() iter.Seq[*Job] { return b.records.All() }

// Kept is how many jobs there are.
func (b *Book) Kept() int { return len(b.jobs) }

// Live are the jobs without a verdict, in no order that means anything.
func (b *Book) Live() []*Job { return b.live }

// Busy are the jobs with claims, in no order that means anything.
func (b *Book) Busy() []*Job { return b.busy }

// Waiting is how many jobs wait for their first start or their next window.
func (b *Book) Waiting() int { return len(b.live) - (len(b.busy) - b.leaving) }

// Dropped is the last generation of a job that was dropped; 0 if none is remembered.
func (b *Book) Dropped(id job.ID) job.Generation { return b.dropped.Last(id) }

// Queue of a name. One that nobody has set up is made.
func (b *Book) Queue(name string) *Queue {
	q := b.queues[name]
	if q == nil {
		q = newQueue(name)
		b.queues[name] = q
	}
	return q
}

func newQueue(name string) *Queue {
	return &Queue{Queue: queues.New(name), waiting: map[string]*waiting{}}
}

// Known says whether a queue's settings are these.
func (b *Book) Known(q *protocol.Queue) bool {
	return b.queues[q.Name] != nil && b.queues[q.Name].Queue.Queue == *q
}

// Queues are all queues, by name, with their jobs counted.
func (b *Book) Queues() []*Queue {
	b.List()
	all := make([]*Queue, 0, len(b.queues))
	for _, q := range b.queues { //sluice:sorted the list is sorted next
		all = append(all, q)
	}
	slices.SortFunc(all, func(x, y *Queue) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// List begins the lists of jobs, from when on they are kept.
func (b *Book) List() { b.lists.begin(b.records.All(), b.records.Len(), b.queues) }

// Newest are the newest jobs that match a query, the oldest of them first, and how many more do.
func (b *Book) Newest(q status.JobQuery) (found []*Job, older int) {
	var in []*list.Roster[*Job]
	for _, all := range b.Queues() {
		if q.Queue != "" && q.Queue != all.Name {
			continue
		}
		of := &all.rosters
		if q.Owner != "" {
			if of = all.owners[q.Owner]; of == nil {
				continue
			}
		}
		for state := range of {
			if r := &of[state]; r.Len() > 0 && q.States.Has(job.State(state)) {
				in = append(in, r)
			}
		}
	}
	return list.Newest(in, q.Before, q.Limit)
}

// Outsider is a job that is not at home here, for one question about it.
func (b *Book) Outsider(r *protocol.Record) *Job {
	q := b.queues[r.Queue]
	if q == nil {
		q = newQueue(r.Queue) // for this question alone
	}
	return b.make(q, r)
}

// make makes the job of a record.
func (b *Book) make(q *Queue, r *protocol.Record) *Job {
	j := b.watch.Make(r.Spec)
	j.fill(q, r)
	return j
}

// Capture implements capture.Source. Dropped jobs go first: one folds before a later life of its job.
func (b *Book) Capture() capture.Run {
	var small []protocol.Fact
	for id, last := range b.dropped.All() {
		small = append(small, protocol.Fact{Kind: protocol.HomeDropped, Job: id, Generation: last, Body: &protocol.HomeDrop{}})
	}
	for _, name := range slices.Sorted(maps.Keys(b.queues)) {
		q := b.queues[name]
		settings := q.Queue.Queue
		small = append(small, protocol.Fact{Kind: protocol.QueueKnown, Body: &settings})
		if s := q.Calibration(); s != (protocol.Calibration{}) {
			small = append(small, protocol.Fact{Kind: protocol.QueueCalibrated, Body: &s})
		}
		for _, l := range q.templates.Lessons(name) {
			small = append(small, protocol.Fact{Kind: protocol.Taught, Body: &l})
		}
	}
	return b.records.Begin(b.cfg.Self, small)
}

// Changed marks a job as possibly eligible where it was not before.
func (b *Book) Changed(j *Job) {
	b.watch.Changed(j)
	b.Stir(j)
}

// ChangedAll marks all jobs without a verdict.
func (b *Book) ChangedAll() {
	for _, j := range b.live {
		b.Changed(j)
	}
}

// ChangedIn marks the jobs without a verdict of a queue.
func (b *Book) ChangedIn(q *Queue) {
	for _, j := range b.live {
		if j.q == q {
			b.Changed(j)
		}
	}
}

// Touch marks a job whose answers to windows may be others than before.
func (b *Book) Touch(j *Job) {
	b.watch.Touched(j)
	b.Stir(j)
}

// Stir marks a job whose leases have changed: its alarms are to be set anew.
func (b *Book) Stir(j *Job) {
	if j.work != nil {
		b.stirred.Add(&j.stirred, j)
	}
}

// Stirred sets the alarms of the jobs that were marked.
func (b *Book) Stirred(arm func(*Job)) { b.stirred.Drain(arm) }

// ArmOutput sets the alarm for when nodes are asked again about a job's output.
func (b *Book) ArmOutput(j *Job) { b.Agenda.Set(Publishing, j, j.Output().Again(b.cfg.Retry)) }

// Freed tells the other jobs of a capped queue that it holds a slice less.
func (b *Book) Freed(q *Queue) {
	if q.Cap != 0 {
		b.ChangedIn(q)
	}
}

// enliven adds a job to those without a final verdict, retire takes it out.
func (b *Book) enliven(j *Job) {
	b.live.Add(j, func(j *Job) *int { return &j.alive })
	b.Purses.Open(&j.q.Queue, 1)
	b.watch.Opened(j)
	if j.Spec.Deadline != 0 {
		b.Agenda.Set(Deadline, j, j.Spec.Deadline)
	}
}

func (b *Book) retire(j *Job) {
	if j.alive == 0 {
		return
	}
	b.live.Drop(j, func(j *Job) *int { return &j.alive })
	b.lists.begun(j)
	b.Purses.Open(&j.q.Queue, -1)
	b.watch.Closed(j)
	b.Agenda.Set(Deadline, j, quantity.Never)
	if j.trouble != nil {
		j.trouble.Forgive()
		b.Agenda.Set(Avoiding, j, quantity.Never)
	}
	b.Stir(j)
}

// rest notes that a job has no claims any more.
func (b *Book) rest(j *Job) {
	b.countLeaving(j, -1)
	b.busy.Drop(j, busySlot)
}

var busySlot = func(j *Job) *int { return &j.makeWork().busy } //nolint:gochecknoglobals // a constant function

// countLeaving counts a busy job that is given up to another zone.
func (b *Book) countLeaving(j *Job, n int) {
	if j.Ending().Leaving() != "" && j.work != nil && j.work.busy != 0 {
		b.leaving += n
	}
}
