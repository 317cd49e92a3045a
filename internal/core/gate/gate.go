// Package gate is where jobs are accepted: it owns a job's spec, the queues, and which zone is a job's home under which
// epoch. It is a deterministic state machine (see package protocol); durable state changes only in Apply.
//
// A gate is composed of what it owns: the jobs (gate/jobs), the queues' settings (gate/queues), the names that earlier lives have not left
// yet (gate/names) and what slices were reported (gate/stock). People are answered at its desk (gate/desk). Where there are several zones,
// homes are drawn (federation/homes) and zones may be drained (federation/drain). Its own is what passes between them, and between gate
// and homes.
package gate

import (
	"slices"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/federation/drain"
	"sluice.dev/sluice/internal/core/federation/homes"
	"sluice.dev/sluice/internal/core/gate/desk"
	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/gate/names"
	"sluice.dev/sluice/internal/core/gate/queues"
	"sluice.dev/sluice/internal/core/gate/stock"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Gate is one gate. It implements protocol.Actor and is not safe for concurrent use.
type Gate struct {
	cfg  Config
	self protocol.Address

	jobs   *jobs.Register
	queues *queues.Queues
	names  *names.Names
	stock  *stock.Stock
	desk   *desk.Desk
	homes  *homes.Homes  // nil: there is one zone, and nothing is drawn
	drains *drain.Drains // nil: no zone was ever drained, nor asked to be

	// woken is the earliest wake-up that was asked for and has not come.
	woken quantity.Instant
	// pass replaces what follows every input; nil but in tests, which put the plain pass in its place.
	pass func(now quantity.Instant, out *protocol.Out) quantity.Instant
}

// New makes a gate without jobs.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	g := &Gate{
		cfg: cfg, self: protocol.Address{Role: protocol.Gate, ID: string(cfg.ID)},
		jobs: jobs.New(cfg.Retain, cfg.Retry, cfg.Archive), queues: queues.New(len(cfg.Zones), cfg.listeners(), cfg.Retry),
		stock: stock.New(cfg.Zones, cfg.Retry),
	}
	g.names = names.New(g.self, cfg.Archive != nil, cfg.Retry)
	if len(cfg.Zones) > 1 || cfg.Search != nil {
		g.homes = homes.New(cfg.Zones, cfg.Horizon, g.stock, g.queues, g.Drained, cfg.Search)
	}
	g.desk = desk.New(desk.Config{
		Self: g.self, Gates: cfg.Gates, Place: slices.Index(cfg.Gates, cfg.ID), Zones: len(cfg.Zones), Horizon: cfg.Horizon,
		MaxJobs: cfg.MaxJobs, External: cfg.External,
	}, desk.Parts{Jobs: g.jobs, Queues: g.queues, Names: g.names, Stock: g.stock, Homes: g.homes, Drained: g.Drained}, (*office)(g))
	return g, nil
}

// draining makes room for zones that are drained.
func (g *Gate) draining() *drain.Drains {
	if g.drains == nil {
		var zones []job.ZoneID
		for i := range g.cfg.Zones {
			zones = append(zones, g.cfg.Zones[i].ID)
		}
		g.drains = drain.New(g.self, g.cfg.Gates, zones, g.cfg.Retry, g.jobs, g.gone, (*office)(g))
	}
	return g.drains
}

// Digest is a hash of the durable state.
func (g *Gate) Digest() uint64 {
	return g.jobs.Sum() + g.queues.Sum() + g.names.Sum() + g.drains.Sum()
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
		g.tell(g.jobs.Accept(f), true)
	case protocol.QueueSet:
		g.queues.Set(f.Body.(*protocol.Queue))
		g.homes.Forget()
	case protocol.JobForgotten:
		if j := g.jobs.Find(f.Job); j != nil {
			g.jobs.Remove(j)
			g.names.Raise(j.Generation())
		}
		if f.Body.(*protocol.Forgetting).Archived {
			g.jobs.NoteArchived(-1, 0)
		}
		g.names.Forget(f)
	case protocol.JobPurged:
		if !g.names.Purge(f) {
			break
		}
		if j := g.jobs.Find(f.Job); j != nil {
			g.tell(j, true) // it has waited for this
		}
	case protocol.JobArchived:
		g.applyArchived(f)
	case protocol.ZoneDrained, protocol.JobDeparted:
		g.draining().Apply(f)
		g.homes.Forget()
	default:
		g.applyJob(f)
	}
}

// applyArchived drops a job; without one it is a snapshot's count.
func (g *Gate) applyArchived(f *protocol.Fact) {
	a := f.Body.(*protocol.Archiving)
	switch j := g.jobs.Find(f.Job); {
	case f.Job == "" && a.Most:
		g.jobs.NoteArchived(0, a.Changes)
	case f.Job == "":
		g.jobs.NoteArchived(a.Changes, 0)
	case j != nil:
		g.jobs.Remove(j)
		g.jobs.NoteArchived(1, a.Changes)
	}
}

func (g *Gate) applyJob(f *protocol.Fact) {
	j := g.jobs.Find(f.Job)
	if j == nil {
		invariant.Check(false, "gate: fact %d is about job %q, which it does not have", f.Kind, f.Job)
	}
	if f.Kind == protocol.JobHomed {
		if from, _, moves := j.Moves(); moves {
			g.draining().Depart(j, from)
		}
	}
	g.jobs.Fold(j, f)
	switch f.Kind {
	case protocol.JobHomed, protocol.JobCancelling, protocol.JobPaused, protocol.JobRequeued, protocol.JobDrawn, protocol.Rehomed:
		g.tell(j, true)
	default:
		g.tell(j, false)
	}
}

// tell sends a job's home what it has not confirmed; news is sent at once. A job that waits for an earlier life to leave is sent after
// that.
func (g *Gate) tell(j *jobs.Job, news bool) {
	somebody := j.Zone() != "" || g.waits(j)
	g.jobs.Tell(j, !j.Known() && somebody && !j.Over() && !g.names.Leaves(j.ID()), news)
}

// waits says whether the old home of a job that moves is to surrender it.
func (g *Gate) waits(j *jobs.Job) bool {
	_, _, moves := j.Moves()
	return moves && g.draining().Waits(j)
}

// gone says whether a zone has left the configuration.
func (g *Gate) gone(zone job.ZoneID) bool { return zone != "" && g.at(zone) < 0 }

// at is the place of a zone in the configuration, -1 if it has none.
func (g *Gate) at(zone job.ZoneID) int {
	switch {
	case g.homes != nil:
		return g.homes.At(zone)
	case g.cfg.Zones[0].ID == zone:
		return 0
	}
	return -1
}

// draw is the home of a life of a job; empty while no zone is known that could run it.
func (g *Gate) draw(now quantity.Instant, spec *job.Spec, id job.ID, of job.Generation, epoch uint32) job.ZoneID {
	if g.homes == nil {
		return g.cfg.Zones[0].ID
	}
	return g.homes.Draw(now, spec, id, of, epoch)
}

// drawHomes draws the homes of jobs that were accepted before a zone was known that could run them.
func (g *Gate) drawHomes(now quantity.Instant, out *protocol.Out) {
	if !g.jobs.Waits() {
		return
	}
	for _, j := range g.jobs.Homeless() {
		if home := g.draw(now, j.Spec(), j.ID(), j.Generation(), j.Epoch()); home != "" {
			g.fact(out, protocol.Fact{Kind: protocol.JobDrawn, Job: j.ID(), Epoch: j.Epoch(), Body: &protocol.InZone{Zone: home}})
		}
	}
}

// Capture implements capture.Source. Names that are on their way out go first: one folds before the next job of its name.
func (g *Gate) Capture() capture.Run {
	small := g.jobs.ArchivedFacts(g.queues.AppendFacts(nil))
	return g.jobs.Capture(g.self, g.names.AppendFacts(g.drains.AppendFacts(small)))
}

// Check says everything that keeps a job from being accepted.
func (g *Gate) Check(now quantity.Instant, spec *job.Spec) error { return g.desk.Check(now, spec) }

// Queues lists the settings of all queues by name.
func (g *Gate) Queues() []protocol.Queue { return g.queues.All() }

// Life is the present life of the job of this name, 0 if there is none.
func (g *Gate) Life(id job.ID) job.Generation {
	if j := g.jobs.Find(id); j != nil {
		return j.Generation()
	}
	return 0
}

// Archived is how many jobs the archive alone has, and how many changes it has counted: one that has fewer of either is not the one
// that they left to.
func (g *Gate) Archived() (jobs, changes int64) { return g.jobs.Archived() }

// Forgotten is the last life of a job that was forgotten and is on its way out, 0 for none: what the archive still has of that life or
// an earlier one is nobody's.
func (g *Gate) Forgotten(id job.ID) job.Generation { return g.names.Last(id) }

// Draw is where a job would have its home if it were accepted now; empty if no zone is known that could run it.
func (g *Gate) Draw(spec *job.Spec) job.ZoneID {
	switch {
	case g.queues.Find(spec.Queue) == nil:
		return ""
	case g.homes == nil:
		return g.cfg.Zones[0].ID
	}
	return g.homes.ByKinds(spec, g.names.Next())
}

// Home is the home of the job of this name: empty if there is no such job, or none was drawn yet.
func (g *Gate) Home(id job.ID) job.ZoneID {
	j := g.jobs.Find(id)
	if j == nil {
		return ""
	}
	if from, _, moves := j.Moves(); moves && !g.gone(from) { // it knows why it waits
		return from
	}
	return j.Zone()
}

// Stray is the first job, by name, that is not over and whose home is none of the configured zones, if there is any: nothing may be
// decided then. What is over, or is to be forgotten, may be of a drained zone that has left: it kept nothing of it.
func (g *Gate) Stray() (id job.ID, home job.ZoneID, found bool) {
	look := func(name job.ID, at job.ZoneID, kept bool) {
		if g.gone(at) && (kept || !g.Drained(at)) && (!found || name < id) {
			id, home, found = name, at, true
		}
	}
	for _, j := range g.jobs.All() {
		look(j.ID(), j.Zone(), !j.Over())
		if from, _, moves := j.Moves(); moves {
			look(j.ID(), from, false)
		}
	}
	g.names.Leaving(func(n names.Name) { look(n.ID, n.Zone, false) })
	g.drains.Departures(func(d drain.Departure) { look(d.Job, d.From, false) })
	return id, home, found
}

// Drained reports whether a zone was drained for good.
func (g *Gate) Drained(zone job.ZoneID) bool { return g.drains.Drained(zone) }

// Drawn completes a zone's report of its search with what the gate has heard, and how often it draws the zone.
func (g *Gate) Drawn(now quantity.Instant, zone job.ZoneID, s *status.Search) {
	if g.homes != nil {
		g.homes.Drawn(now, zone, s)
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
	case protocol.PauseJob:
		if m.From.Role == protocol.Zone {
			return "", false
		}
	case protocol.Cancel, protocol.Delete, protocol.Adopted, protocol.Closed, protocol.Outdated:
	default:
		return "", false
	}
	return name, g.jobs.Find(name) == nil
}

func (g *Gate) send(out *protocol.Out, m protocol.Message) {
	m.From = g.self
	out.Effects = append(out.Effects, m)
}

// office is the gate as its desk and its drains see it (desk.Office, drain.Office).
type office Gate

func (g *office) Fact(out *protocol.Out, f protocol.Fact)    { (*Gate)(g).fact(out, f) }
func (g *office) Send(out *protocol.Out, m protocol.Message) { (*Gate)(g).send(out, m) }
func (g *office) Tell(j *jobs.Job)                           { (*Gate)(g).tell(j, true) }
func (g *office) Anywhere(j *jobs.Job) job.ZoneID            { return (*Gate)(g).draining().Anywhere(j) }

func (g *office) DrawHomes(now quantity.Instant, out *protocol.Out) { (*Gate)(g).drawHomes(now, out) }

func (g *office) Draw(now quantity.Instant, spec *job.Spec, id job.ID, of job.Generation) job.ZoneID {
	return (*Gate)(g).draw(now, spec, id, of, 1)
}

func (g *office) Redraw(now quantity.Instant, j *jobs.Job, epoch uint32) job.ZoneID {
	return (*Gate)(g).draw(now, j.Spec(), j.ID(), j.Generation(), epoch)
}

func (g *office) Reopened(now quantity.Instant, j *jobs.Job, out *protocol.Out) {
	if (*Gate)(g).gone(j.Zone()) {
		(*Gate)(g).draining().Reopened(now, j, out)
	}
}
