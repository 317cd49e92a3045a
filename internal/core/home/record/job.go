package record

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/home/backoff"
	"sluice.dev/sluice/internal/core/home/ending"
	"sluice.dev/sluice/internal/core/home/learn"
	"sluice.dev/sluice/internal/core/home/list"
	"sluice.dev/sluice/internal/core/home/output"
	"sluice.dev/sluice/internal/core/home/progress"
	"sluice.dev/sluice/internal/core/home/queues"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// Job is one job, as most are: accepted, and waiting. Each further concern has a part of its own, made when needed: its claims and what
// came of them (work), what it has taught, how it ends, its trouble with nodes. Invariant: sum is the hash of its durable state.
type Job struct {
	accepted
	// Beside is what the owner of the book keeps of the job in addition.
	Beside any
	// q is its queue.
	q *Queue

	capture.Mark
	// sum of the record, and of its spec.
	sum, specSum uint64
	work         *work
	lessons      *learn.Lessons
	end          *end
	trouble      *trouble
	// enrolledIn is its roster in the queue, ownedIn that of its owner there.
	enrolledIn, ownedIn *list.Roster[*Job]

	// alive is 1 + its place among the live jobs, deadline that among the alarms for the owner's deadline.
	alive, deadline int
	// stirred: its alarms are to be set anew. waits: it is in its template's list of those that have not begun.
	stirred dirty.Mark
	waits   bool
}

// accepted is what every job has: durable, as protocol.Record has it.
type accepted struct {
	ID         job.ID
	Spec       *job.Spec
	Submitted  quantity.Instant
	Epoch      uint32
	Generation job.Generation
	Paused     bool
}

// Queue is a queue with what its jobs have taught, and their lists.
type Queue struct {
	queues.Queue
	// templates that finished jobs of it have taught.
	templates learn.Templates[*Job]
	// rosters have all its jobs, by state; waiting those of each template that have not begun, no template without any.
	rosters rosters
	// owners are the same of each owner.
	owners  map[string]*rosters
	waiting map[string]*waiting
}

// Templates that finished jobs of it have taught.
func (q *Queue) Templates() *learn.Templates[*Job] { return &q.templates }

// Count is how many jobs of a queue are in a state, once they are listed.
func (q *Queue) Count(s job.State) int { return q.rosters[s].Len() }

// work is what was sold of a job and what came of it.
type work struct {
	progress progress.Progress
	history  progress.History
	claims   standing.Claims
	output   output.Output
	scores   job.Scores
	slots    [Resting - Leases]int // by Alarm
	busy     int                   // 1 + its place among the busy jobs
}

// end is how a job ends.
type end struct {
	ending.Ending
	// closing is the verdict to be sent to the gate, nil if none; acked: the gate has it. leaving: it goes to the archive.
	closing *outbox.Item[*Job]
	acked   bool
	leaving *filing.Sheet[*Job]
}

// trouble is what nodes had with a job.
type trouble struct {
	backoff.State
	slots [alarms - Resting]int // by Alarm
}

// makeWork makes room for what is sold of it.
func (j *Job) makeWork() *work {
	if j.work == nil {
		j.work = &work{}
		j.work.progress.Init()
		j.work.claims.Init()
	}
	return j.work
}

// Queue that it is in.
func (j *Job) Queue() *Queue { return j.q }

// Progress is what of its work is done, sold and asked for; nil if nothing ever was.
func (j *Job) Progress() *progress.Progress {
	if j.work == nil {
		return nil
	}
	return &j.work.progress
}

// History is what came of its claims; nil if there never was one.
func (j *Job) History() *progress.History {
	if j.work == nil {
		return nil
	}
	return &j.work.history
}

// Scores are what its trials were worth.
func (j *Job) Scores() job.Scores {
	if j.work == nil {
		return nil
	}
	return j.work.scores
}

// ClaimSet are its claims that are not settled; nil if it never had any.
func (j *Job) ClaimSet() *standing.Claims {
	if j.work == nil {
		return nil
	}
	return &j.work.claims
}

// Output is what it has committed and is not known to be in its place; nil if nothing ever was.
func (j *Job) Output() *output.Output {
	if j.work == nil {
		return nil
	}
	return &j.work.output
}

// Ending is how it ends; nil if nothing has ended it.
func (j *Job) Ending() *ending.Ending {
	if j.end == nil {
		return nil
	}
	return &j.end.Ending
}

// Backoff is what nodes had with it lately; nil if nothing.
func (j *Job) Backoff() *backoff.State {
	if j.trouble == nil {
		return nil
	}
	return &j.trouble.State
}

// Lessons are what it has taught; nil if nothing.
func (j *Job) Lessons() *learn.Lessons { return j.lessons }

// MakeProgress is Progress, made if there is none.
func (j *Job) MakeProgress() *progress.Progress { return &j.makeWork().progress }

// MakeEnding is Ending, for who ends it.
func (j *Job) MakeEnding() *ending.Ending { return &j.makeEnd().Ending }

func (j *Job) makeEnd() *end {
	if j.end == nil {
		j.end = &end{}
	}
	return j.end
}

// MakeBackoff is Backoff, for who has trouble with it.
func (j *Job) MakeBackoff() *backoff.State {
	if j.trouble == nil {
		j.trouble = &trouble{}
	}
	return &j.trouble.State
}

// Claims are its unsettled claims, by token.
func (j *Job) Claims() []protocol.Claim { return j.ClaimSet().All() }

// Busy is how many subjobs run or are asked for.
func (j *Job) Busy() int { return len(j.Claims()) + j.Progress().Asking() }

// Learned is what the job has taught.
func (j *Job) Learned() *protocol.Learned { return j.lessons.Known() }

// Safe is the profile that plans use.
func (j *Job) Safe() *trp.Table { return learn.Safe(j.Learned(), j.Spec) }

// Trust is how far its declarations are believed.
func (j *Job) Trust() protocol.Trust { return learn.Trust(&j.Learned().Trust, j.q.Trust()) }

// ListKey is its place in lists of jobs.
func (j *Job) ListKey() status.JobKey { return status.JobKey{Submitted: j.Submitted, Name: j.ID} }

// Width is how many slices one subjob of the job holds.
func (j *Job) Width() int { return max(1, j.Spec.Slices) }

// Active reports whether a job has no verdict, and has work left to sell.
func (j *Job) Active() bool { return j.alive > 0 }

// Complete says that all of the job is committed, whether or not all of it is published.
func (j *Job) Complete() bool {
	n, known := j.Progress().Length(j.Spec)
	return known && j.Progress().Committed().Len() == n
}

// AtRest says whether the job is given up to another zone, and nothing of it will change here any more. Once true it stays so: what would
// end the job is guarded by it.
func (j *Job) AtRest() bool {
	e := j.Ending()
	return e.Leaving() != "" && !e.Final() && len(j.Claims()) == 0 && len(j.Output().List()) == 0 && j.Progress().Asking() == 0
}

// Phase is the state people see.
func (j *Job) Phase() job.State {
	switch {
	case j.Ending().Final():
		return j.end.Verdict().State
	case len(j.Claims()) > 0 || j.Complete():
		return job.Running
	case j.Paused:
		return job.Paused
	}
	return job.Waiting
}

// View is what the atomizer may know. Ranges that a node was asked for count as claimed.
func (j *Job) View() atomizer.View {
	p := j.Progress()
	v := atomizer.View{
		Spec: j.Spec, Committed: p.Committed(), Claimed: p.Taken(), Running: j.Busy(), Learned: j.Learned(), Resume: p.Resume(),
		Skipped: p.Skipped().Len(),
	}
	return v
}

// begins says whether a job of a template is still to begin.
func (j *Job) begins() bool {
	return j.Spec.Template != "" && j.alive > 0 && j.History().Started() == 0 && len(j.Claims()) == 0 && len(j.Progress().Committed()) == 0
}

// fill makes a job that has nothing yet the one of a record.
func (j *Job) fill(q *Queue, r *protocol.Record) {
	j.accepted = accepted{
		ID: r.Job, Epoch: r.Epoch, Generation: r.Generation.Number(), Spec: r.Spec, Submitted: r.Submitted, Paused: r.Paused,
	}
	j.q = q
	if !r.Learned.Zero() {
		j.lessons = j.lessons.Learned(&r.Learned)
	}
	if r.Verdict != (job.Verdict{}) || r.Ended != 0 {
		j.MakeEnding().Restore(r)
	}
	if r.Worked() {
		j.work = &work{}
		j.work.progress.Restore(r)
		j.work.history.Restore(r)
		j.work.claims.Restore(r)
		j.work.output.Restore(r)
		j.work.scores = r.Scores.Clone()
	}
}

// Record is the job as a snapshot and the archive keep it. It shares nothing with the job that is ever changed in place.
func (j *Job) Record() *protocol.Record {
	r := &protocol.Record{
		Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Spec: j.Spec, Queue: j.q.Name, Submitted: j.Submitted, Paused: j.Paused,
		Claims: slices.Clone(j.Claims()), Learned: *j.Learned(), Verdict: j.Ending().Verdict(), Ended: j.Ending().Ended(),
	}
	j.Progress().Save(r)
	j.History().Save(r)
	j.Output().Save(r)
	r.Scores = j.Scores().Clone()
	return r
}

// AppendFacts implements capture.Part. A job to which nothing has happened, as most are, is one fact: its arrival.
func (j *Job) AppendFacts(out []protocol.Fact) []protocol.Fact {
	if j.work == nil && j.lessons == nil && j.end == nil && !j.Paused && j.q.Name == j.Spec.Queue {
		return append(out, protocol.Fact{Kind: protocol.HomeTaken, Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, At: j.Submitted,
			Body: &protocol.Taking{Spec: j.Spec}})
	}
	out = append(out, protocol.Fact{Kind: protocol.HomeKept, Job: j.ID, Body: &protocol.Keeping{Record: j.Record()}})
	if why := j.Ending().Leaving(); why != "" {
		out = append(out, protocol.Fact{Kind: protocol.HomeLeaving, Job: j.ID, Generation: j.Generation, Body: &protocol.Reason{Text: why}})
	}
	return out
}

// hash is the job's part of the digest. Its long parts that seldom change have sums of their own, so that a fact costs what it changes and
// not the record: the spec (job.Pool), the profile that was learned (learn.Lessons), and the past (progress.History).
func (j *Job) hash() uint64 {
	p, y, e := j.Progress(), j.History(), j.Ending()
	h := digest.New().Text(string(j.ID)).Int(int64(j.Epoch), int64(j.Generation), int64(j.specSum), int64(j.Submitted), p.Forgiven()).
		Text(j.q.Name).Bool(j.Paused)
	h = j.lessons.Mix(digest.List(p.Mix(h), j.Claims()))
	h = y.Mix(p.Resume().Mix(h))
	h = e.Verdict().Mix(j.Output().Mix(h)).Int(int64(e.Ended()), int64(y.Served()))
	h = j.Scores().Mix(h)
	if e.Leaving() != "" { // seldom, and written since there are drains
		h = h.Text(e.Leaving())
	}
	return h.Sum()
}
