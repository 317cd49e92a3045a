package zone

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
	leases []lease
	// publishAsked is when nodes were last asked about output that is not published, publishTries how often since anything was
	// published or committed, publishTurn the publication asked about last.
	publishAsked quantity.Instant
	publishTries int
	publishTurn  int
	slots        struct{ leases, continuing, publishing, busy int }
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

	// dropping is the verdict the job ends with once its claims are settled; its State is Waiting (zero) while none.
	dropping job.Verdict
	// closing is the verdict as the gate is told of it, nil if it need not be; acked that it has it. leaving: it goes to the
	// archive.
	closing *outbox.Item[*state]
	acked   bool
	leaving *filing.Sheet[*state]
}

// What is read of jobs that have no such record. None of them is ever written to: TestMain sees to it.
var (
	unsold    work    //nolint:gochecknoglobals // read-only by use
	unlearned lessons //nolint:gochecknoglobals // read-only by use
	unsealed  fate    //nolint:gochecknoglobals // read-only by use
)

// work is what was sold of the job, for reading.
func (s *state) work() *work {
	if s.sold == nil {
		return &unsold
	}
	return s.sold
}

// makeWork makes room for it.
func (s *state) makeWork() *work {
	if s.sold == nil {
		s.sold = &work{}
	}
	return s.sold
}

// learned is what the job has taught, for reading.
func (s *state) learned() *protocol.Learned {
	if s.lessons == nil {
		return &unlearned.Learned
	}
	return &s.lessons.Learned
}

// learn replaces what was learned of the job.
func (s *state) learn(l *protocol.Learned) {
	known := s.lessons
	switch {
	case known == nil:
		known = &lessons{safeSum: safeSum(l)}
	case known.Safe != l.Safe:
		known.safeSum = safeSum(l)
	}
	known.Learned, s.lessons = *l, known
}

// fate is how the job ends, for reading.
func (s *state) fate() *fate {
	if s.sealed == nil {
		return &unsealed
	}
	return s.sealed
}

// makeFate makes room for it.
func (s *state) makeFate() *fate {
	if s.sealed == nil {
		s.sealed = &fate{}
	}
	return s.sealed
}

// newState is the job of a record, with what its floor asks of it.
func newState(q *queue, r *protocol.Record) *state {
	s := &state{
		accepted: accepted{Job: r.Job, Epoch: r.Epoch, Generation: r.Generation.Number(), Spec: r.Spec, Submitted: r.Submitted, Held: r.Held},
		q:        q,
	}
	s.floor.Demand = (*demand)(s)
	s.keepRigid()
	if !r.Learned.Zero() {
		s.learn(&r.Learned)
	}
	if r.Verdict != (job.Verdict{}) || r.Ended != 0 {
		*s.makeFate() = fate{verdict: r.Verdict, ended: r.Ended}
	}
	if !r.Worked() {
		return s
	}
	w := s.makeWork()
	*w = work{
		committed: slices.Clone(r.Committed), claimed: slices.Clone(r.Claimed), skipped: slices.Clone(r.Skipped), claims: slices.Clone(r.Claims),
		resume: r.Resume, attained: r.Attained, started: r.Started, past: slices.Clone(r.Past), unpublished: slices.Clone(r.Unpublished),
		served: r.Served, forgiven: r.Forgiven,
	}
	for i := range w.past {
		w.pastSum += pastSum(w.past, i)
		w.fruitless += fruitlessOf(&w.past[i])
	}
	return s
}

// outsider is a job that is not the zone's, for one question about it.
func (z *Zone) outsider(r *protocol.Record) *state {
	q := z.queues[r.Queue]
	if q == nil {
		q = z.newQueue(r.Queue) // for this question alone
	}
	return newState(q, r)
}

// record is the job as a snapshot and the archive keep it. It shares nothing with the job that is ever changed in place.
func (s *state) record() *protocol.Record {
	w, f := s.work(), s.fate()
	r := &protocol.Record{
		Job: s.Job, Epoch: s.Epoch, Generation: s.Generation, Spec: s.Spec, Queue: s.q.Name, Submitted: s.Submitted, Held: s.Held,
		Committed: slices.Clone(w.committed), Claimed: slices.Clone(w.claimed), Skipped: slices.Clone(w.skipped), Claims: slices.Clone(w.claims),
		Learned: *s.learned(), Resume: w.resume, Attained: w.attained, Started: w.started, Past: slices.Clone(w.past),
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
func (s *state) AppendFacts(out []protocol.Fact) []protocol.Fact {
	if s.sold == nil && s.lessons == nil && s.sealed == nil && !s.Held && s.q.Name == s.Spec.Queue {
		return append(out, protocol.Fact{Kind: protocol.HomeTaken, Job: s.Job, Epoch: s.Epoch, Generation: s.Generation, Spec: s.Spec, At: s.Submitted})
	}
	return append(out, protocol.Fact{Kind: protocol.HomeKept, Job: s.Job, Record: s.record()})
}

// fruitlessOf is 1 for a subjob that committed nothing.
func fruitlessOf(p *protocol.Past) int {
	if p.Committed.Empty() {
		return 1
	}
	return 0
}
