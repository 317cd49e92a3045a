package gate

import (
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A job has lives, each with a generation of its own. Requeueing begins the next one of the same work; deleting ends the
// last one for good, and replacing is deleting and accepting in one step. A name has its next job at once, but that one is
// sent to its home only when nothing of the former is left there or on disk (docs/adr/0017-lives.md).

// farewell is a name that earlier lives have not left yet: their files and their home's record are to go.
type farewell struct {
	id    job.ID
	last  job.Generation
	zone  job.ZoneID
	epoch uint32

	// Soft: who has confirmed (executor, home, archive), and that the others are to be told.
	purged, forgotten, discarded bool
	telling                      *outbox.Item[*farewell]
}

func (f *farewell) hash() uint64 {
	return digest.New().Text("farewell").Text(string(f.id)).Int(int64(f.last), int64(f.epoch)).Text(string(f.zone)).Sum()
}

// deletion is an answer that may be asked for again.
type deletion struct {
	request string
	id      job.ID
}

// rememberedDeletions are answered again, in this boot: after it the job is not there, which is what was asked for.
const rememberedDeletions = 64

// floorHash is 0 for a gate that has forgotten nothing.
func (g *Gate) floorHash() uint64 {
	if g.floor == 0 {
		return 0
	}
	return digest.New().Text("floor").Int(int64(g.floor)).Sum()
}

// next is the generation of the next job of a name that is free.
func (g *Gate) next() job.Generation { return g.floor + 1 }

func (g *Gate) raiseFloor(to job.Generation) {
	g.sum -= g.floorHash()
	g.floor = max(g.floor, to)
	g.sum += g.floorHash()
}

// applyForgotten takes a job off the list. The name keeps a farewell until JobPurged, unless the fact is from a version that
// left it to the next boot to remove files.
func (g *Gate) applyForgotten(f *protocol.Fact) {
	if e := g.find(f.Job); e != nil {
		g.drop(e)
		g.raiseFloor(e.generation)
	}
	if f.Flag {
		g.addArchived(-1, 0)
	}
	g.raiseFloor(f.Generation)
	if f.Job == "" || f.Generation == 0 {
		return
	}
	bye := &farewell{id: f.Job, last: f.Generation, zone: f.Zone, epoch: f.Epoch}
	if was := g.farewells[f.Job]; was != nil {
		g.sum -= was.hash()
		g.leaves.Confirm(was.telling)
	}
	g.farewells[f.Job] = bye
	g.sum += bye.hash()
	bye.telling = g.leaves.Say(nil, bye)
}

// drop takes a job out of memory.
func (g *Gate) drop(e *entry) {
	g.entries.Remove(e)
	g.sum -= e.sum
	delete(g.jobs, e.id)
	g.sought, g.found = e.id, nil
	delete(g.homeless, e.id)
	if e.over() {
		g.keep(e)
	} else {
		g.count(e, -1)
	}
	e.telling = g.telling.Confirm(e.telling)
}

func (g *Gate) applyPurged(f *protocol.Fact) {
	bye := g.farewells[f.Job]
	if bye == nil || bye.last > f.Generation {
		return
	}
	g.sum -= bye.hash()
	g.leaves.Confirm(bye.telling)
	delete(g.farewells, f.Job)
	if e := g.find(f.Job); e != nil && !planted.In(planted.ForgetUntold) {
		g.tell(e, true) // it has waited for this
	}
}

func (g *Gate) farewellFacts(out []protocol.Fact) []protocol.Fact {
	if g.floor > 0 {
		out = append(out, protocol.Fact{Kind: protocol.JobForgotten, Generation: g.floor})
	}
	for _, id := range slices.Sorted(maps.Keys(g.farewells)) {
		f := g.farewells[id]
		out = append(out, protocol.Fact{Kind: protocol.JobForgotten, Job: f.id, Generation: f.last, Zone: f.zone, Epoch: f.epoch})
	}
	return out
}

// accept makes a job; whatever stood under its name is forgotten in the same step.
func (g *Gate) accept(now quantity.Instant, in *protocol.Message, s *protocol.Submission, out *protocol.Out) {
	if e := g.about(in); e != nil {
		g.forget(e, out)
	}
	spec, _ := g.specs.Share(s.Spec)
	g.fact(out, protocol.Fact{
		Kind: protocol.JobAccepted, Job: s.Spec.Name, Spec: spec, Request: s.Request, Digest: s.Digest,
		Zone: g.drawHome(now, spec, s.Spec.Name, g.next(), 1), Epoch: 1, Generation: g.next(), At: now,
	})
	g.reply(out, protocol.Message{To: in.From, Job: s.Spec.Name, Generation: g.find(s.Spec.Name).generation, Body: out.Receipt(protocol.Receipt{Request: s.Request, Changed: true})})
}

// forget lets go of a job that is over. Its home, the executor and the archive are told until all have confirmed.
func (g *Gate) forget(e *entry, out *protocol.Out) {
	cold := g.find(e.id) == nil
	g.fact(out, protocol.Fact{Kind: protocol.JobForgotten, Job: e.id, Generation: e.generation, Zone: e.zone, Epoch: e.epoch, Flag: cold})
}

// requeue begins another life of a job that was cancelled, has failed or has expired.
func (g *Gate) requeue(now quantity.Instant, in *protocol.Message, r *protocol.Requeueing, out *protocol.Out) {
	e := g.about(in)
	if e != nil && e.became().requeued == r.Request && r.Request != "" {
		g.reply(out, protocol.Message{To: in.From, Job: e.id, Generation: e.generation, Body: &protocol.Receipt{Request: r.Request}})
		return
	}
	if err := g.requeueable(now, e, in, r); err != nil {
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: r.Request, Err: err}})
		return
	}
	e = g.takeBack(e, out)
	f := protocol.Fact{Kind: protocol.JobRequeued, Job: e.id, Generation: max(e.generation, g.floor) + 1, Request: r.Request, At: now}
	if r.Deadline != 0 && r.Deadline != e.spec.Deadline {
		s := *e.spec
		s.Deadline = r.Deadline
		f.Spec = &s
	}
	g.fact(out, f)
	g.rehomeReopened(now, e, out)
	g.reply(out, protocol.Message{To: in.From, Job: e.id, Generation: e.generation, Body: &protocol.Receipt{Request: r.Request, Changed: true}})
}

func (g *Gate) requeueable(now quantity.Instant, e *entry, in *protocol.Message, r *protocol.Requeueing) error {
	if e == nil {
		return noJob(in.Job)
	}
	verdict := e.became().verdict
	switch verdict.State {
	case job.Cancelled, job.Failed, job.Expired:
	case job.Finished:
		return errkind.Errorf(errkind.Conflict, "job %q is %s: nothing of it is left to run; to run all of it again, submit it with --replace", e.id, verdict.State)
	case job.Impossible:
		return errkind.Errorf(errkind.Conflict, "job %q is %s: %s; to run another one under its name, submit it with --replace", e.id, verdict.State, verdict.Reason)
	default:
		return errkind.Errorf(errkind.Conflict, "job %q is not over: there is nothing to requeue%s", e.id, e.ending())
	}
	s := *e.spec
	s.Name = e.id
	if r.Deadline != 0 {
		s.Deadline = r.Deadline
	}
	if r.Deadline == 0 && passed(now, &s) {
		return errkind.Errorf(errkind.Invalid, "job %q: its deadline, %s, has passed; give it another one (requeue --deadline), or none (--deadline none)", e.id, clock(s.Deadline))
	}
	return g.Check(now, &s)
}

// delete forgets a job that is over, now instead of when its retention is.
func (g *Gate) delete(in *protocol.Message, d *protocol.Deletion, out *protocol.Out) {
	e := g.about(in)
	switch {
	case d.Request != "" && slices.Contains(g.deletions, deletion{d.Request, in.Job}):
		g.reply(out, protocol.Message{To: in.From, Job: in.Job, Body: &protocol.Receipt{Request: d.Request}})
		return
	case e == nil:
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: d.Request, Err: noJob(in.Job)}})
		return
	case !e.over():
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: d.Request, Err: errkind.Errorf(errkind.Conflict, "job %q is not over: cancel it first%s", in.Job, e.ending())}})
		return
	}
	g.forget(e, out)
	if len(g.deletions) == rememberedDeletions {
		g.deletions = slices.Delete(g.deletions, 0, 1)
	}
	g.deletions = append(g.deletions, deletion{d.Request, in.Job})
	g.reply(out, protocol.Message{To: in.From, Job: in.Job, Body: &protocol.Receipt{Request: d.Request, Changed: true}})
}

// left notes that the executor, a home or the archive has nothing more of a job's earlier lives.
func (g *Gate) left(in *protocol.Message, out *protocol.Out) {
	if in.Kind == protocol.Forgotten && g.departed(in, out) {
		return
	}
	f := g.farewells[in.Job]
	if f == nil {
		return
	}
	switch {
	case in.Kind == protocol.Forgotten && in.Generation >= f.last && in.From == g.zone(f.zone):
		if !f.forgotten {
			f.forgotten = true
			g.discard(f, out)
		}
	case in.Kind == protocol.Purged && in.Generation > f.last && in.From.Role == protocol.Archive:
		f.discarded = true
	case in.Kind == protocol.Purged && in.Generation > f.last:
		f.purged = true
	}
	if f.purged && f.forgotten && (f.discarded || g.leaving == nil) {
		g.fact(out, protocol.Fact{Kind: protocol.JobPurged, Job: in.Job, Generation: f.last})
	}
}

// dismiss repeats what nobody has confirmed about earlier lives. The archive is asked last, so that the home finds its part there
// for as long as it is asked.
func (g *Gate) dismiss(f *farewell, out *protocol.Out) {
	if f.forgotten = f.forgotten || g.gone(f.zone); !f.forgotten {
		g.send(out, protocol.Message{Kind: protocol.Forget, To: g.zone(f.zone), Job: f.id, Epoch: f.epoch, Generation: f.last})
	}
	if !f.purged {
		g.send(out, protocol.Message{Kind: protocol.Purge, To: protocol.Address{Role: protocol.Executor}, Job: f.id, Generation: f.last + 1})
	}
	g.discard(f, out)
}

// discard asks the archive once the home has let go.
func (g *Gate) discard(f *farewell, out *protocol.Out) {
	if f.forgotten && !f.discarded && g.leaving != nil {
		g.send(out, protocol.Message{Kind: protocol.Purge, To: archive(), Job: f.id, Generation: f.last + 1})
	}
}

// passed says whether the job's deadline is over. 0 is as good as Never.
func passed(now quantity.Instant, s *job.Spec) bool { return s.Deadline != 0 && s.Deadline <= now }

// clock is an instant for people, in UTC.
func clock(t quantity.Instant) string { return t.Time().UTC().Format("2006-01-02T15:04:05Z07:00") }

// ending tells whoever asks too early that the job is being cancelled.
func (e *entry) ending() string {
	if e.became().dropping == "" {
		return ""
	}
	return fmt.Sprintf("; it is being cancelled, and over within a minute: sluice wait %s", e.id)
}
