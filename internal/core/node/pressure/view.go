package pressure

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/timeline"
)

// Strain is the host's memory in numbers, and what was done about it.
func (p *Pressure) Strain(now quantity.Instant) status.Strain {
	h, c := &p.history, p.leases.Counts()
	s := status.Strain{
		At: h.at, Old: p.old == 0 || now >= p.old, MemoryReading: readingOf(&h.reading), Room: h.room, Standing: c.Standing,
		Suspended: c.Suspended, Recovered: c.Recovered, Readdressed: h.readdressed, Reclaimed: h.reclaimed, Killed: h.killed,
		Decisions: h.decisions, Stood: h.stood, OverLine: h.overLine,
	}
	if p.strain == nil {
		return s
	}
	for i := range p.strain.Uses {
		s.Parked += p.strain.Uses[i].Parked
	}
	lines := p.lock.Config()
	s.Calm, s.Severe, s.Emergency = line(s.Capacity, lines.Calm), line(s.Capacity, lines.Severe), line(s.Capacity, lines.Emergency)
	return s
}

// Airlock returns the node's view of its host's memory, and what it did of late. The value is the caller's.
func (p *Pressure) Airlock(now quantity.Instant, node job.NodeID) status.Airlock {
	c := p.cfg.WithDefaults()
	a := status.Airlock{
		Node: node, Strain: p.Strain(now), Short: p.inventory.Short(), Full: p.inventory.Full(), Left: p.left,
		Timer: c.Timer, Entries: int(c.Entries), Order: c.Order.String(), Stands: p.standing(now),
		Steps: p.steps(node, func(*step) bool { return true }), Forgotten: p.history.forgotten,
	}
	if a.Watched = p.watch != 0 && !a.Strain.Old; !a.Strain.Old {
		a.Stuck = p.stuckBelow(now)
	}
	return a
}

// stuckBelow is the job of the lowest, where nothing that is legal would help it now.
func (p *Pressure) stuckBelow(now quantity.Instant) job.ID {
	snapshot := p.snapshot()
	if d := p.lock.Decide(now, &snapshot); d.Blocked >= 0 {
		return p.table.jobAt(d.Blocked)
	}
	return ""
}

// AirlockSteps are the steps that were taken with a life of a job, as far as they are kept, in order.
func (p *Pressure) AirlockSteps(node job.NodeID, id job.ID, g job.Generation) []status.AirlockStep {
	return p.steps(node, func(e *step) bool { return e.job == id && e.generation == g })
}

// Kept says how much room is kept for what had to leave, and until when at most, for people.
func (p *Pressure) Kept() string {
	return fmt.Sprintf("%d MiB more would not fit below the severe line; it is kept until %s at most", p.left>>20, timeline.Clock(p.until))
}

// steps are those that count, the oldest first.
func (p *Pressure) steps(node job.NodeID, counts func(*step) bool) (out []status.AirlockStep) {
	for e := range p.history.all {
		if counts(e) {
			out = append(out, p.stepOf(node, e))
		}
	}
	return out
}

func (p *Pressure) stepOf(node job.NodeID, e *step) status.AirlockStep {
	s := status.AirlockStep{
		At: e.at, Decision: e.decision, Node: node, Job: e.job, Generation: e.generation, Token: e.token, Slice: e.slice,
		Step: deedNames[e.deed], Relief: e.relief, Memory: readingOf(&e.reading), Deficit: e.deficit, Underway: e.underway,
		Covered: e.covered, Place: placeOf(&e.place), Stood: e.stood, Progress: e.progress,
	}
	switch {
	case e.deed == ended:
		s.Why = e.outcome.String()
	case e.deed == refused:
		s.Why = "it can't be suspended here"
	case e.cause != 0:
		s.Why = e.cause.String()
	default:
		s.Why = "the machine's watcher decided so"
	}
	if e.spared != "" {
		s.Spared, s.SparedToken, s.SparedPlace = e.spared, e.sparedPlace.Token, placeOf(&e.sparedPlace)
		s.Below = p.lock.Config().Below(&e.place, &e.sparedPlace)
	}
	return s
}

// standing are the leases to which something is being done, the lowest token first.
func (p *Pressure) standing(now quantity.Instant) (out []status.Stand) {
	if p.strain == nil {
		return nil
	}
	p.snapshot()
	for i, l := range p.table.of {
		t, stand := &p.table.tasks[i], l.Stand()
		what := stateNames[state(l)]
		if stand.Since == 0 && !stand.Reclaimed && l.Phase() != leases.Resuming || what == "" {
			continue
		}
		place := airlock.RankingOf(now, t)
		s := status.Stand{
			Job: l.Job(), Token: l.Token(), Slice: l.Terms().Slice, State: what, Since: stand.Since, Times: int(stand.Times),
			Resident: t.Resident, Parked: t.Parked, Why: l.Why(), Place: placeOf(&place),
		}
		if s.Why == "" {
			s.Why = p.lastWhy(l)
		}
		if s.Since != 0 && !stand.Reclaimed {
			s.Until = s.Since.Add(p.lock.Config().Timer)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b status.Stand) int { return a.Token.Compare(b.Token) })
	return out
}

// stateNames are what is being done to a subjob; empty: nothing.
var stateNames = [...]string{
	airlock.Running: "", airlock.Suspending: "suspending", airlock.Suspended: "suspended", airlock.Resuming: "resuming",
	airlock.Readdressing: "yielding", airlock.Reclaiming: "ending", airlock.Ending: "",
}

// lastWhy is why the last step was taken with a lease, with the memory as it was.
func (p *Pressure) lastWhy(l *leases.Lease) string {
	why := inventory.ShortOfMemory
	for e := range p.history.all {
		if e.token == l.Token() && e.cause != 0 {
			why = e.cause.String() + ": " + e.reading.String()
		}
	}
	return why
}

// Explain says what is being done to a lease, since when and until when, for people; empty: nothing.
func (p *Pressure) Explain(l *leases.Lease) string {
	stand := l.Stand()
	if stand.Since == 0 && !stand.Reclaimed {
		return ""
	}
	since, ends := timeline.Clock(stand.Since), timeline.Clock(stand.Since.Add(p.lock.Config().Timer))
	switch {
	case stand.Reclaimed:
		return "ended: " + l.Why()
	case stand.Asked:
		return fmt.Sprintf("asked to yield since %s, ended at %s: %s", since, ends, l.Why())
	case l.Phase().Still():
		nth := ordinals[min(int(stand.Times), len(ordinals)-1)]
		return fmt.Sprintf("suspended since %s, for the %s time; it goes on or is ended at %s: %s", since, nth, ends,
			inventory.ShortOfMemory)
	default:
		return ""
	}
}

var ordinals = [...]string{"", "first", "second", "third", "next"} //nolint:gochecknoglobals // a table, written to by nobody

func readingOf(r *airlock.Reading) status.MemoryReading {
	out := status.MemoryReading{Level: r.Level.String(), Used: r.Used, Capacity: r.Capacity, Growth: r.Growth, Share: r.Share,
		Stall: r.Stall}
	if r.Growth > 0 && r.Capacity > 0 {
		out.Exhausted = r.Exhausted
	}
	return out
}

func placeOf(p *airlock.Ranking) status.SurvivalPlace {
	return status.SurvivalPlace{
		Outgrown: p.Outgrown, Class: p.Class.String(), Priority: p.Priority, Value: int(p.Value), Ran: p.Ran, Footprint: p.Footprint,
		Planned: p.Planned,
	}
}
