package gate

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Jobs that are over leave to the archive (docs/adr/0022-archive.md). What is said of one then is answered from the facts that the
// driver finds there and hands on with the message: they are folded into an entry that nobody keeps.

func archive() protocol.Address { return protocol.Address{Role: protocol.Archive} }

// archived is what the gate knows of the archive: its second witness. Durable.
type archived struct {
	// jobs counts those that the archive alone has, changes is how many the archive itself had counted when it last took one.
	jobs, changes int64
}

// Archived is how many jobs the archive alone has, and how many changes it has counted: one that has fewer of either is not the one
// that they left to.
func (g *Gate) Archived() (jobs, changes int64) { return g.archived.jobs, g.archived.changes }

// Forgotten is the last life of a job that was forgotten and is on its way out, 0 for none: what the archive still has of that life or
// an earlier one is nobody's.
func (g *Gate) Forgotten(id job.ID) job.Generation {
	if f := g.farewells[id]; f != nil {
		return f.last
	}
	return 0
}

// addArchived notes jobs that have left, or come back (a negative number), and what the archive had counted then; 0: it was not said.
func (g *Gate) addArchived(jobs, changes int64) {
	g.sum -= g.archived.hash()
	g.archived.jobs += jobs
	g.archived.changes = max(g.archived.changes, changes)
	g.sum += g.archived.hash()
}

// hash is 0 while nothing was archived.
func (a *archived) hash() uint64 {
	if *a == (archived{}) {
		return 0
	}
	return digest.New().Text("archived").Int(a.jobs, a.changes).Sum()
}

// appendFacts says it for a snapshot.
func (a *archived) appendFacts(out []protocol.Fact) []protocol.Fact {
	if a.jobs != 0 {
		out = append(out, protocol.Fact{Kind: protocol.JobArchived, Count: a.jobs})
	}
	if a.changes != 0 {
		out = append(out, protocol.Fact{Kind: protocol.JobArchived, Count: a.changes, Flag: true})
	}
	return out
}

// applyArchived lets go of a job; without one it is a snapshot's count.
func (g *Gate) applyArchived(f *protocol.Fact) {
	switch e := g.find(f.Job); {
	case f.Job == "" && f.Flag:
		g.addArchived(0, f.Count)
	case f.Job == "":
		g.addArchived(f.Count, 0)
	case e != nil:
		g.drop(e)
		g.addArchived(1, f.Count)
	}
}

// Recalls implements protocol.Archivist.
func (g *Gate) Recalls(m *protocol.Message) (name job.ID, ok bool) {
	name = m.Job
	switch m.Kind {
	case protocol.Submit:
		spec := m.Body.(*protocol.Submission).Spec
		if spec == nil {
			return "", false
		}
		name = spec.Name
	case protocol.Requeue:
		if planted.In(planted.ForgetRecall) {
			return "", false
		}
	case protocol.PauseJob:
		if m.From.Role == protocol.Zone {
			return "", false
		}
	case protocol.Cancel, protocol.Delete, protocol.Adopted, protocol.Closed, protocol.Outdated:
	default:
		return "", false
	}
	return name, g.find(name) == nil
}

// about is the job that a message is about, as it is here or in the archive; nil if there is none. What the archive has of a job
// that was forgotten is on its way out.
func (g *Gate) about(in *protocol.Message) *entry {
	name := in.Job
	if in.Kind == protocol.Submit {
		name = in.Body.(*protocol.Submission).Spec.Name
	}
	if e := g.find(name); e != nil || len(in.Filed) == 0 {
		return e
	}
	e := g.accepted(&in.Filed[0])
	for i := range in.Filed[1:] {
		e.fold(&in.Filed[1+i], &g.specs)
	}
	if f := g.farewells[name]; f != nil && e.generation <= f.last {
		return nil
	}
	return e
}

// takeBack makes an archived job one that is here: its facts are written again.
func (g *Gate) takeBack(e *entry, out *protocol.Out) *entry {
	if g.find(e.id) != nil {
		return e
	}
	for i, f := range e.AppendFacts(nil) {
		f.Flag = f.Flag || i == 0 // what JobAccepted says of an archived job
		g.fact(out, f)
	}
	return g.find(e.id)
}

// file sends the archive what is to leave.
func (g *Gate) file(now quantity.Instant, out *protocol.Out) {
	due := g.leaving.Due(now)
	slices.SortFunc(due, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	for _, e := range due {
		if planted.In(planted.LeaveUnconfirmed) {
			g.filed(&protocol.Message{Job: e.id, Generation: e.generation}, &protocol.Archival{}, out)
			continue
		}
		filed := e.AppendFacts(nil)
		for i := range filed {
			filed[i].Actor = g.self
		}
		g.send(out, protocol.Message{Kind: protocol.File, To: archive(), Job: e.id, Generation: e.generation, Filed: filed})
	}
}

// filed lets go of a job that the archive has. What it has of an earlier life changes nothing.
func (g *Gate) filed(in *protocol.Message, a *protocol.Archival, out *protocol.Out) {
	if e := g.find(in.Job); e != nil && e.over() && e.generation == in.Generation.Number() {
		g.fact(out, protocol.Fact{Kind: protocol.JobArchived, Job: e.id, Generation: e.generation, Count: int64(a.Count)})
	}
}

// outdated forgets an archived job. A part that was left behind by a job which is here again, in a later life, goes as soon as
// its home has taken its own back.
func (g *Gate) outdated(in *protocol.Message, out *protocol.Out) {
	if e := g.find(in.Job); e != nil {
		if e.homed && in.Generation.Number() < e.generation {
			g.send(out, protocol.Message{Kind: protocol.Purge, To: archive(), Job: e.id, Generation: e.generation})
		}
		return
	}
	if e := g.about(in); e != nil && e.generation == in.Generation.Number() {
		g.forget(e, out)
	}
}
