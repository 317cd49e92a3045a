package jobs

import (
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Job is one job at the gate: what it is equals the fold of its facts, which AppendFacts says again. Most jobs wait and are nothing but
// accepted: what comes later has a place of its own.
type Job struct {
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
	homed, paused     bool
	sequel            *sequel

	// Soft: whether the home has confirmed paused, and the message that is due to it; nil: none.
	pauseKnown bool
	telling    *outbox.Item[*Job]
}

// sequel is what has become of a job that was cancelled, requeued or is over.
type sequel struct {
	// begun is when this life was asked for, requeued by which request if it is not the first.
	begun    quantity.Instant
	requeued string
	// moving: its home is another zone than it was, and has not taken it over; nil else.
	moving *moving
	// cancelling is why its owner cancels it, empty if nobody does; cancelled is the request, cancelledAt when it came, 0 if not known.
	cancelling, cancelled string
	cancelledAt           quantity.Instant
	verdict               job.Verdict
	ended                 quantity.Instant

	// Soft: its place among those whose retention ends, and among those that leave to the archive.
	expires int
	leaving *filing.Sheet[*Job]
}

// moving is a job between two homes.
type moving struct {
	from job.ZoneID
	// record that the old home has surrendered; nil: it has not. Soft.
	record *protocol.Record
}

// ID is its name.
func (j *Job) ID() job.ID { return j.id }

// Spec is what was submitted; it is only read.
func (j *Job) Spec() *job.Spec { return j.spec }

// Submitted is when its first life was.
func (j *Job) Submitted() quantity.Instant { return j.submitted }

// Request is the one that submitted it.
func (j *Job) Request() string { return j.request }

// Content is the digest of what was submitted.
func (j *Job) Content() string { return j.digest }

// Zone is its home; empty: none was drawn yet.
func (j *Job) Zone() job.ZoneID { return j.zone }

// Epoch is the one under which that is its home.
func (j *Job) Epoch() uint32 { return j.epoch }

// Homed says that the zone has confirmed it.
func (j *Job) Homed() bool { return j.homed }

// Generation is the number of its present life.
func (j *Job) Generation() job.Generation { return j.generation }

// Since is the generation of the first life of the same work.
func (j *Job) Since() job.Generation { return j.since }

// Begun is when its present life was asked for.
func (j *Job) Begun() quantity.Instant { return j.became().begun }

// Requeued is the request that asked for its present life, if that is not the first.
func (j *Job) Requeued() string { return j.became().requeued }

// Paused says that its owner pauses it.
func (j *Job) Paused() bool { return j.paused }

// Over says that the job has a verdict.
func (j *Job) Over() bool { return j.sequel != nil && j.sequel.verdict.State.Final() }

// Verdict of a job that is over, and when it was given.
func (j *Job) Verdict() (job.Verdict, quantity.Instant) {
	b := j.became()
	return b.verdict, b.ended
}

// Cancelled is the cancellation as sent to the home, nil if there was none; by is the request.
func (j *Job) Cancelled() (c *protocol.Cancellation, by string) {
	if b := j.sequel; b != nil && b.cancelling != "" {
		return &protocol.Cancellation{Text: b.cancelling, At: b.cancelledAt}, b.cancelled
	}
	return nil, ""
}

// Moves says from where it moves to another home, with the record that the old one has surrendered, nil if it has not.
func (j *Job) Moves() (from job.ZoneID, record *protocol.Record, moves bool) {
	if m := j.became().moving; m != nil {
		return m.from, m.record, true
	}
	return "", nil, false
}

// Leaves reports whether a message is from the old home of a job that is to leave it.
func (j *Job) Leaves(in *protocol.Message) bool {
	m := j.became().moving
	return m != nil && in.From.ID == string(m.from) && in.Epoch == j.epoch-1
}

// Surrender keeps the record of a job that moves.
func (j *Job) Surrender(r *protocol.Record) { j.sequel.moving.record = r }

// Know notes whether the home holds to what the gate has of a pause.
func (j *Job) Know(known bool) { j.pauseKnown = known }

// Known reports whether the home has confirmed everything.
func (j *Job) Known() bool {
	return j.homed && j.pauseKnown && (j.sequel == nil || j.sequel.cancelling == "")
}

// became is the job's sequel; the zero one if there is none.
func (j *Job) became() sequel {
	if j.sequel == nil {
		return sequel{begun: j.submitted}
	}
	return *j.sequel
}

// follow makes room for a sequel.
func (j *Job) follow() *sequel {
	if j.sequel == nil {
		j.sequel = &sequel{begun: j.submitted}
	}
	return j.sequel
}

// accepted is a job that was accepted, without any later event.
func accepted(f *protocol.Fact, specs *job.Pool) *Job {
	a := f.Body.(*protocol.Acceptance)
	spec, sum := specs.Share(a.Spec)
	j := &Job{
		id: f.Job, spec: spec, request: a.Request, digest: a.Digest, zone: a.Zone, epoch: f.Epoch,
		generation: f.Generation.Number(), since: f.Generation.Number(), submitted: f.At, pauseKnown: true,
	}
	j.submittedSum = j.sumSubmitted(sum)
	return j
}

// fold changes the job alone.
func (j *Job) fold(f *protocol.Fact, specs *job.Pool) {
	switch f.Kind {
	case protocol.JobHomed:
		if j.homed = true; j.sequel != nil {
			j.sequel.moving = nil
		}
	case protocol.JobDrawn:
		j.move(f.Body.(*protocol.InZone).Zone, specs)
	case protocol.Rehomed:
		j.follow().moving = &moving{from: j.zone}
		j.epoch, j.homed, j.pauseKnown = f.Epoch, false, true
		j.move(f.Body.(*protocol.InZone).Zone, specs)
	case protocol.JobCancelling:
		b, c := j.follow(), f.Body.(*protocol.JobCancel)
		b.cancelling, b.cancelled, b.cancelledAt = c.Text, c.Request, f.At
	case protocol.JobPaused:
		j.paused, j.pauseKnown = f.Body.(*protocol.JobPause).Paused, false
	case protocol.JobClosed:
		b := j.follow()
		if b.moving != nil { // it ended before it was surrendered, and stays where it was
			j.epoch, j.homed = j.epoch-1, true
			j.move(b.moving.from, specs)
			b.moving = nil
		}
		b.verdict, b.ended, j.pauseKnown = f.Body.(*protocol.Final).Verdict, f.At, true
	case protocol.JobRequeued:
		s := f.Body.(*protocol.Sequel)
		j.generation = f.Generation
		*j.follow() = sequel{begun: f.At, requeued: s.Request}
		if s.Spec != nil {
			var sum uint64
			j.spec, sum = specs.Share(s.Spec)
			j.submittedSum = j.sumSubmitted(sum)
		}
		j.homed, j.paused, j.pauseKnown = false, false, true
	}
}

// move names another home.
func (j *Job) move(to job.ZoneID, specs *job.Pool) {
	_, sum := specs.Share(j.spec)
	j.zone = to
	j.submittedSum = j.sumSubmitted(sum)
}

// AppendFacts implements capture.Part.
func (j *Job) AppendFacts(out []protocol.Fact) []protocol.Fact {
	b, home, epoch := j.became(), j.zone, j.epoch
	if b.moving != nil {
		home, epoch = b.moving.from, epoch-1
	}
	out = append(out, protocol.Fact{Kind: protocol.JobAccepted, Job: j.id, Generation: j.since, Epoch: epoch, At: j.submitted,
		Body: &protocol.Acceptance{Spec: j.spec, Request: j.request, Digest: j.digest, Zone: home}})
	if j.generation > j.since {
		out = append(out, protocol.Fact{Kind: protocol.JobRequeued, Job: j.id, Generation: j.generation, At: b.begun,
			Body: &protocol.Sequel{Request: b.requeued}})
	}
	if b.moving != nil {
		out = append(out, protocol.Fact{Kind: protocol.Rehomed, Job: j.id, Epoch: j.epoch, Body: &protocol.InZone{Zone: j.zone}})
	}
	if j.homed {
		out = append(out, protocol.Fact{Kind: protocol.JobHomed, Job: j.id, Epoch: j.epoch})
	}
	if j.paused {
		out = append(out, protocol.Fact{Kind: protocol.JobPaused, Job: j.id, Body: &protocol.JobPause{Paused: true}})
	}
	if b.cancelling != "" {
		out = append(out, protocol.Fact{Kind: protocol.JobCancelling, Job: j.id, At: b.cancelledAt,
			Body: &protocol.JobCancel{Text: b.cancelling, Request: b.cancelled}})
	}
	if j.Over() {
		out = append(out, protocol.Fact{Kind: protocol.JobClosed, Job: j.id, At: b.ended, Body: &protocol.Final{Verdict: b.verdict}})
	}
	return out
}

// hash is the job's part of the digest. What was submitted is long and never changes but by a requeue, and has a sum of its own, so
// that a fact costs what it changes.
func (j *Job) hash() uint64 {
	b := j.became()
	h := digest.New().Int(int64(j.submittedSum), int64(j.epoch), int64(j.generation), int64(j.since), int64(b.begun)).Text(b.requeued).Text(
		b.cancelled)
	if b.moving != nil {
		h = h.Text("moves from").Text(string(b.moving.from))
	}
	if b.cancelledAt != 0 {
		h = h.Int(int64(b.cancelledAt))
	}
	return b.verdict.Mix(h.Bool(j.homed, j.paused).Text(b.cancelling)).Int(int64(b.ended)).Sum()
}

// sumSubmitted is what hash takes of what was submitted, of which the spec has a sum already.
func (j *Job) sumSubmitted(spec uint64) uint64 {
	h := digest.New().Int(int64(spec)).Text(string(j.id)).Text(j.request).Text(j.digest).Text(string(j.zone))
	return h.Int(int64(j.submitted)).Sum()
}

// forHome names the stream of draws of homes.
const forHome = 1

// Number draws one below n for a life of a job, whatever others are drawn.
func Number(id job.ID, of job.Generation, epoch uint32, n int) int {
	draw := prng.New(forHome, prng.Name(string(id)), uint64(of))
	if epoch > 1 { // a job that moves is drawn anew
		draw = prng.New(forHome, prng.Name(string(id)), uint64(of), uint64(epoch))
	}
	return draw.IntN(n)
}
