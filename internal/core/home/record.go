package home

import (
	"slices"

	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Most jobs wait and are nothing but accepted. What is known of a job beyond that has a record for each concern, which is made
// when it is needed: what was sold of it (work), what it has taught (lessons), how it ends (fate), what nodes had with it (trouble).
// Each has two methods: one to read it, which where there is none gives a shared one without anything in it, and one that
// makes it, for whoever writes.

// work is what was sold of a job and what came of it.
type work struct {
	// Durable, as protocol.Record has them.
	committed, claimed, skipped job.Ranges
	claims                      []protocol.Claim
	resume                      job.Token
	attained                    int64
	started                     quantity.Instant
	past                        []protocol.Past
	unpublished                 []protocol.Publication
	served                      quantity.Instant
	forgiven                    int64
	// pastSum is the sum over the past of each entry's hash with its place, fruitless how many of them committed nothing.
	pastSum   uint64
	fruitless int

	// asked are the ranges in asks that no node has answered yet, asking how many asks those are.
	asked  job.Ranges
	asking int
	// leases is what is known of the standing claims, in their order.
	leases []Lease
	// publishAsked is when nodes were last asked about output that is not published, publishTries how often since anything was
	// published or committed, publishTurn the publication asked about last.
	publishAsked quantity.Instant
	publishTries int
	publishTurn  int
	// settled is when the last claim was, or the job's present life began, since the ledger came up; 0: before.
	settled quantity.Instant
	slots   struct{ leases, continuing, publishing, busy int }
	// one is room for what most jobs have no more of at a time.
	one struct {
		claim   [1]protocol.Claim
		lease   [1]Lease
		claimed [1]job.Range
	}
}

// lessons are what was learned of a job.
type lessons struct {
	protocol.Learned
	// safeSum is the hash of Safe.
	safeSum uint64
}

// fate is how a job ends.
type fate struct {
	// Durable, as protocol.Record has them.
	verdict job.Verdict
	ended   quantity.Instant
	// moving is why the job is given up to another zone (leave.go); empty while it is not.
	moving string

	// dropping is the verdict the job ends with once its claims are settled; its State is Waiting (zero) while none. stopped is since when
	// its subjobs have been told to stop for that, dropped since when its owner has wanted it Cancelled, by the gate's clock; 0: nobody
	// has. It ends OverBy a while after that.
	dropping         job.Verdict
	stopped, dropped quantity.Instant
	// closing is the verdict as the gate is told of it, nil if it need not be; acked that it has it. leaving: it goes to the
	// archive.
	closing *outbox.Item[*Job]
	acked   bool
	leaving *filing.Sheet[*Job]
}

// What is read of jobs that have no such record. None of them is ever written to: TestMain sees to it.
var (
	unsold    work    //nolint:gochecknoglobals // read-only by use
	unlearned lessons //nolint:gochecknoglobals // read-only by use
	unsealed  fate    //nolint:gochecknoglobals // read-only by use
)

// work is what was sold of the job, for reading.
func (j *Job) work() *work {
	if j.sold == nil {
		return &unsold
	}
	return j.sold
}

// makeWork makes room for it.
func (j *Job) makeWork() *work {
	if j.sold == nil {
		w := &work{}
		w.claims, w.leases, w.claimed = w.one.claim[:0], w.one.lease[:0], w.one.claimed[:0]
		j.sold = w
	}
	return j.sold
}

// Learned is what the job has taught, for reading.
func (j *Job) Learned() *protocol.Learned {
	if j.lessons == nil {
		return &unlearned.Learned
	}
	return &j.lessons.Learned
}

// learn replaces what was learned of the job.
func (j *Job) learn(l *protocol.Learned) {
	known := j.lessons
	switch {
	case known == nil:
		known = &lessons{safeSum: safeSum(l)}
	case known.Safe != l.Safe:
		known.safeSum = safeSum(l)
	}
	known.Learned, j.lessons = *l, known
}

// fate is how the job ends, for reading.
func (j *Job) fate() *fate {
	if j.sealed == nil {
		return &unsealed
	}
	return j.sealed
}

// makeFate makes room for it.
func (j *Job) makeFate() *fate {
	if j.sealed == nil {
		j.sealed = &fate{}
	}
	return j.sealed
}

// fill makes a job that has nothing yet the one of a record.
func (j *Job) fill(q *Queue, r *protocol.Record) {
	j.accepted = accepted{ID: r.Job, Epoch: r.Epoch, Generation: r.Generation.Number(), Spec: r.Spec, Submitted: r.Submitted, Held: r.Held}
	j.q = q
	if !r.Learned.Zero() {
		j.learn(&r.Learned)
	}
	if r.Verdict != (job.Verdict{}) || r.Ended != 0 {
		*j.makeFate() = fate{verdict: r.Verdict, ended: r.Ended}
	}
	if !r.Worked() {
		return
	}
	w := j.makeWork()
	*w = work{
		committed: slices.Clone(r.Committed), claimed: slices.Clone(r.Claimed), skipped: slices.Clone(r.Skipped), claims: slices.Clone(r.Claims),
		resume: r.Resume, attained: r.Attained, started: r.Started, past: slices.Clone(r.Past), unpublished: slices.Clone(r.Unpublished),
		served: r.Served, forgiven: r.Forgiven,
	}
	for i := range w.past {
		w.pastSum += pastSum(w.past, i)
		w.fruitless += fruitlessOf(&w.past[i])
	}
}

// Outsider is a job that is not at home here, for one question about it.
func (h *Ledger) Outsider(r *protocol.Record) *Job {
	q := h.queues[r.Queue]
	if q == nil {
		q = newQueue(r.Queue) // for this question alone
	}
	return h.make(q, r)
}

// make makes the job of a record.
func (h *Ledger) make(q *Queue, r *protocol.Record) *Job {
	j := h.watch.Make(r.Spec)
	j.fill(q, r)
	return j
}

// Record is the job as a snapshot and the archive keep it. It shares nothing with the job that is ever changed in place.
func (j *Job) Record() *protocol.Record {
	w, f := j.work(), j.fate()
	r := &protocol.Record{
		Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Spec: j.Spec, Queue: j.q.Name, Submitted: j.Submitted, Held: j.Held,
		Committed: slices.Clone(w.committed), Claimed: slices.Clone(w.claimed), Skipped: slices.Clone(w.skipped), Claims: slices.Clone(w.claims),
		Learned: *j.Learned(), Resume: w.resume, Attained: w.attained, Started: w.started, Past: slices.Clone(w.past),
		Verdict: f.verdict, Ended: f.ended, Unpublished: slices.Clone(w.unpublished), Served: w.served, Forgiven: w.forgiven,
	}
	if planted.In(planted.ForgetPast) {
		for i := range max(0, len(r.Past)-1) {
			r.Past[i].Committed = job.Range{}
		}
	}
	return r
}

// AppendFacts implements capture.Part. A job to which nothing has happened is said as it came, which most are.
func (j *Job) AppendFacts(out []protocol.Fact) []protocol.Fact {
	if j.sold == nil && j.lessons == nil && j.sealed == nil && !j.Held && j.q.Name == j.Spec.Queue {
		return append(out, protocol.Fact{Kind: protocol.HomeTaken, Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Spec: j.Spec, At: j.Submitted})
	}
	out = append(out, protocol.Fact{Kind: protocol.HomeKept, Job: j.ID, Record: j.Record()})
	if j.Leaving() != "" {
		out = append(out, protocol.Fact{Kind: protocol.HomeLeaving, Job: j.ID, Generation: j.Generation, Text: j.Leaving()})
	}
	return out
}

// fruitlessOf is 1 for a subjob that committed nothing.
func fruitlessOf(p *protocol.Past) int {
	if p.Committed.Empty() {
		return 1
	}
	return 0
}
