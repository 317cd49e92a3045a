// Package jobs keeps the jobs of a gate. The sum is that of all their digests, and the counts are those without a verdict, in all and of
// each queue. Beside what is durable it knows which jobs' homes have messages due, which jobs have been kept long enough, and which leave
// to the archive. It must not know zones, queues' settings or the content of messages.
package jobs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// MostTold bounds the unconfirmed messages of one retry interval: a restart with a million jobs does not burst.
const MostTold = 4096

// mostForgotten bounds the jobs that one step forgets. The next follows at once.
const mostForgotten = 256

// Register are all jobs of one gate.
type Register struct {
	retain time.Duration
	// Durable. all are the jobs as captures go over them, homeless those whose home was not drawn yet; specs are what jobs that are alike
	// share.
	jobs     map[job.ID]*Job
	all      capture.Parts[*Job]
	homeless map[job.ID]*Job
	specs    job.Pool
	archived archived
	sum      uint64
	// unfinished counts the jobs without a verdict, unfinishedOf those of each queue.
	unfinished   int
	unfinishedOf map[string]int
	// Soft: jobs with messages due to their homes, and when jobs have been kept long enough.
	telling  outbox.Box[*Job]
	expiring alarm.Heap[*Job]
	leaving  *filing.Tray[*Job] // nil: nothing is archived
	// found is the job called sought, nil if there is none: the last lookup. told is a buffer for the jobs of a step's messages.
	sought job.ID
	found  *Job
	told   []*Job
}

// archived is what the gate knows of the archive: its second witness. Durable.
type archived struct {
	// jobs counts those that the archive alone has, changes is how many the archive itself had counted when it last took one.
	jobs, changes int64
}

// New makes an empty register, with how long jobs are kept after their end; archive is nil if they leave to none.
func New(retain, retry time.Duration, archive *filing.Config) *Register {
	r := &Register{
		retain: retain, jobs: map[job.ID]*Job{}, homeless: map[job.ID]*Job{}, unfinishedOf: map[string]int{},
		telling: outbox.New[*Job](retry, MostTold),
	}
	if archive != nil {
		r.leaving = filing.New[*Job](*archive, retry)
	}
	return r
}

// Find caches its last answer: messages about one job come in a row.
func (r *Register) Find(id job.ID) *Job {
	if r.sought != id {
		r.sought, r.found = id, r.jobs[id]
	}
	return r.found
}

// All are the jobs by name.
func (r *Register) All() []*Job { return byName(r.jobs) }

// Homeless are those whose home was not drawn yet, by name.
func (r *Register) Homeless() []*Job { return byName(r.homeless) }

func byName(of map[job.ID]*Job) (all []*Job) {
	for _, id := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[id])
	}
	return all
}

// Waits says whether any job has no home.
func (r *Register) Waits() bool { return len(r.homeless) > 0 }

// Unfinished counts the jobs without a verdict, in all and of a queue.
func (r *Register) Unfinished(queue string) (all, of int) { return r.unfinished, r.unfinishedOf[queue] }

// Share makes what jobs that are alike have in common one thing.
func (r *Register) Share(spec *job.Spec) *job.Spec {
	spec, _ = r.specs.Share(spec)
	return spec
}

// Accept folds the first fact of a job.
func (r *Register) Accept(f *protocol.Fact) *Job {
	if r.Find(f.Job) != nil {
		invariant.Check(false, "gate: job %s is accepted twice", f.Job)
	}
	if f.Body.(*protocol.Acceptance).Recalled {
		r.NoteArchived(-1, 0)
	}
	j := accepted(f, &r.specs)
	r.jobs[j.id] = j
	r.sought, r.found = j.id, j
	if j.zone == "" {
		r.homeless[j.id] = j
	}
	r.all.Add(j)
	r.count(j, 1)
	r.resum(j)
	return j
}

// Fold folds a later one.
func (r *Register) Fold(j *Job, f *protocol.Fact) {
	r.all.Change(j)
	was := j.Over()
	if was && f.Kind == protocol.JobRequeued {
		r.keep(j)
		r.count(j, 1)
	}
	j.fold(f, &r.specs)
	if j.zone == "" && !j.Over() {
		r.homeless[j.id] = j
	} else {
		delete(r.homeless, j.id)
	}
	if f.Kind == protocol.JobClosed {
		if !was {
			r.count(j, -1)
		}
		b := j.sequel
		r.expiring.Set(&b.expires, j, b.ended.Add(r.retain))
		b.leaving = r.leaving.Put(b.leaving, j, b.ended)
	}
	r.resum(j)
}

// Filed is a job as the archive has it, which nobody keeps.
func (r *Register) Filed(facts []protocol.Fact) *Job {
	j := accepted(&facts[0], &r.specs)
	for i := range facts[1:] {
		j.fold(&facts[1+i], &r.specs)
	}
	return j
}

// Remove takes a job out of memory.
func (r *Register) Remove(j *Job) {
	r.all.Remove(j)
	r.sum -= j.sum
	delete(r.jobs, j.id)
	r.sought, r.found = j.id, nil
	delete(r.homeless, j.id)
	if j.Over() {
		r.keep(j)
	} else {
		r.count(j, -1)
	}
	j.telling = r.telling.Confirm(j.telling)
}

// keep removes a finished job from the alarms that end its stay.
func (r *Register) keep(j *Job) {
	r.expiring.Set(&j.sequel.expires, j, quantity.Never)
	j.sequel.leaving = r.leaving.Drop(j.sequel.leaving)
}

func (r *Register) count(j *Job, more int) {
	r.unfinished += more
	if n := r.unfinishedOf[j.spec.Queue] + more; n != 0 {
		r.unfinishedOf[j.spec.Queue] = n
	} else {
		delete(r.unfinishedOf, j.spec.Queue)
	}
}

// resum takes a job into the digest as it is now.
func (r *Register) resum(j *Job) {
	sum := j.hash()
	r.sum += sum - j.sum
	j.sum = sum
}

// Tell queues a job's unconfirmed state for its home, if untold; news is sent at once.
func (r *Register) Tell(j *Job, untold, news bool) {
	switch {
	case !untold:
		j.telling = r.telling.Confirm(j.telling)
	case news || j.telling == nil:
		j.telling = r.telling.Say(j.telling, j)
	}
}

// Untold are the jobs with messages due to their homes, in no order.
func (r *Register) Untold() []*Job { return r.telling.All() }

// Told are those of them whose turn it is, by name. Valid until the next call.
func (r *Register) Told(now quantity.Instant) []*Job {
	r.told = sorted(r.telling.Take(now, r.told[:0]))
	return r.told
}

// Expired are jobs whose retention is over, by name, a bounded number of them.
func (r *Register) Expired(now quantity.Instant) (due []*Job) {
	for len(due) < mostForgotten {
		j, ok := r.expiring.Due(now)
		if !ok {
			break
		}
		due = append(due, j)
	}
	return sorted(due)
}

// Leaving are those that are to leave to the archive now, by name.
func (r *Register) Leaving(now quantity.Instant) []*Job { return sorted(r.leaving.Due(now)) }

func sorted(all []*Job) []*Job {
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.id, b.id) })
	return all
}

// Wake is when Told, Expired or Leaving have something due.
func (r *Register) Wake() quantity.Instant {
	return min(r.telling.Wake(), r.expiring.Next(), r.leaving.Wake())
}

// NoteArchived notes jobs that have left, or come back (a negative number), and the archive's count then; 0: not known.
func (r *Register) NoteArchived(jobs, changes int64) {
	r.sum -= r.archived.hash()
	r.archived.jobs += jobs
	r.archived.changes = max(r.archived.changes, changes)
	r.sum += r.archived.hash()
}

// Archived is how many jobs the archive alone has, and how many changes it has counted.
func (r *Register) Archived() (jobs, changes int64) { return r.archived.jobs, r.archived.changes }

// hash is 0 while nothing was archived.
func (a *archived) hash() uint64 {
	if *a == (archived{}) {
		return 0
	}
	return digest.New().Text("archived").Int(a.jobs, a.changes).Sum()
}

// ArchivedFacts say for a snapshot what is known of the archive.
func (r *Register) ArchivedFacts(out []protocol.Fact) []protocol.Fact {
	if n := r.archived.jobs; n != 0 {
		out = append(out, protocol.Fact{Kind: protocol.JobArchived, Body: &protocol.Archiving{Changes: n}})
	}
	if n := r.archived.changes; n != 0 {
		out = append(out, protocol.Fact{Kind: protocol.JobArchived, Body: &protocol.Archiving{Changes: n, Most: true}})
	}
	return out
}

// Sum is the digest of all of it.
func (r *Register) Sum() uint64 { return r.sum }

// Capture begins one of all jobs, with what else there is.
func (r *Register) Capture(actor protocol.Address, small []protocol.Fact) capture.Run {
	return r.all.Begin(actor, small)
}
