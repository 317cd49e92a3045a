package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Strain is the host's memory in numbers, and what was done about it.
func (n *Node) Strain(now quantity.Instant) status.Strain {
	m := &n.memory
	s := status.Strain{
		At: m.at, Old: m.old == 0 || now >= m.old, MemoryReading: readingOf(&m.reading), Room: m.room, Standing: m.standing,
		Suspended: m.suspended, Recovered: m.recovered, Readdressed: m.readdressed, Reclaimed: m.reclaimed, Killed: m.killed,
		Decisions: m.decisions, Stood: m.stood, OverLine: m.overLine,
	}
	if m.strain == nil {
		return s
	}
	for i := range m.strain.Uses {
		s.Parked += m.strain.Uses[i].Parked
	}
	c := m.lock.Config()
	s.Calm, s.Severe, s.Emergency = lineOf(s.Capacity, c.Calm), lineOf(s.Capacity, c.Severe), lineOf(s.Capacity, c.Emergency)
	return s
}

func lineOf(capacity quantity.Amount, permille int64) quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(capacity), permille, 1000))
}

// Airlock is what the node makes of its host's memory, and did of late. The value is the caller's.
func (n *Node) Airlock(now quantity.Instant) status.Airlock {
	m, c := &n.memory, n.cfg.Airlock.WithDefaults()
	a := status.Airlock{
		Node: n.cfg.ID, Strain: n.Strain(now), Short: m.short, Full: m.full, Left: m.left, Timer: c.Timer, Entries: int(c.Entries), Order: c.Order.String(),
		Stands: n.enduring(now), Steps: n.steps(func(*noted) bool { return true }), Forgotten: m.forgotten,
	}
	if a.Watched = m.watch != 0 && !a.Strain.Old; !a.Strain.Old {
		a.Stuck = n.stuckBelow(now)
	}
	return a
}

// stuckBelow is the job of the lowest, where nothing that is legal would help it now.
func (n *Node) stuckBelow(now quantity.Instant) job.ID {
	snapshot := n.table()
	if d := n.memory.lock.Decide(now, &snapshot); d.Blocked >= 0 {
		return n.memory.jobAt(d.Blocked)
	}
	return ""
}

// Endured are the steps that were taken with a life of a job, as far as they are kept, in their order.
func (n *Node) Endured(id job.ID, g job.Generation) []status.AirlockStep {
	return n.steps(func(e *noted) bool { return e.job == id && e.generation == g })
}

// steps are those that count, the oldest first.
func (n *Node) steps(counts func(*noted) bool) []status.AirlockStep {
	r := &n.memory.record
	var out []status.AirlockStep
	for _, part := range [2][]noted{r.steps[r.next:], r.steps[:r.next]} {
		for i := range part {
			if counts(&part[i]) {
				out = append(out, n.stepOf(&part[i]))
			}
		}
	}
	return out
}

func (n *Node) stepOf(e *noted) status.AirlockStep {
	s := status.AirlockStep{
		At: e.at, Decision: e.decision, Node: n.cfg.ID, Job: e.job, Generation: e.generation, Token: e.token, Slice: e.slice, Step: deedNames[e.deed], Relief: e.relief,
		Memory: readingOf(&e.reading), Deficit: e.deficit, Underway: e.underway, Covered: e.covered, Place: placeOf(&e.place), Stood: e.stood, Progress: e.progress,
	}
	switch {
	case e.deed == hasEnded:
		s.Why = e.outcome.String()
	case e.deed == couldNotStand:
		s.Why = "it can't be made to stand still here"
	case e.cause != 0:
		s.Why = e.cause.String()
	default:
		s.Why = "the machine's watcher decided so"
	}
	if e.spared != "" {
		s.Spared, s.SparedToken, s.SparedPlace = e.spared, e.sparedPlace.Token, placeOf(&e.sparedPlace)
		s.Below = n.memory.lock.Config().Below(&e.place, &e.sparedPlace)
	}
	return s
}

// enduring are the leases to which something is being done, the lowest token first.
func (n *Node) enduring(now quantity.Instant) []status.Stand {
	if n.memory.strain == nil {
		return nil
	}
	n.table()
	var out []status.Stand
	for i, l := range n.memory.leases {
		t := &n.memory.tasks[i]
		state := standNames[l.suspension()]
		if l.stand.since == 0 && !l.stand.reclaimed && l.phase != leaseResuming || state == "" {
			continue
		}
		s := status.Stand{
			Job: l.job, Token: l.token, Slice: l.slice, State: state, Since: l.stand.since, Times: int(l.stand.times), Resident: t.Resident, Parked: t.Parked, Why: l.why,
			Place: placeOf(ptr(airlock.PlaceOf(now, t))),
		}
		if s.Why == "" {
			s.Why = n.lastWhy(l)
		}
		if s.Since != 0 && !l.stand.reclaimed {
			s.Until = s.Since.Add(n.memory.lock.Config().Timer)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b status.Stand) int { return a.Token.Compare(b.Token) })
	return out
}

// standNames are what is being done to a subjob; empty: nothing.
var standNames = [...]string{
	airlock.Running: "", airlock.Suspending: "suspending", airlock.Suspended: "suspended", airlock.Resuming: "resuming",
	airlock.Readdressing: "yielding", airlock.Reclaiming: "ending", airlock.Ending: "",
}

// lastWhy is why the last step was taken with a lease, with the memory as it was.
func (n *Node) lastWhy(l *lease) string {
	r := &n.memory.record
	for _, part := range [2][]noted{r.steps[:r.next], r.steps[r.next:]} {
		for i := len(part) - 1; i >= 0; i-- {
			if e := &part[i]; e.token == l.token && e.cause != 0 {
				return e.cause.String() + ": " + e.reading.String()
			}
		}
	}
	return shortOfMemory
}

func ptr[T any](v T) *T { return &v }

func readingOf(r *airlock.Reading) status.MemoryReading {
	out := status.MemoryReading{Level: r.Level.String(), Used: r.Used, Capacity: r.Capacity, Growth: r.Growth, Share: r.Share, Stall: r.Stall}
	if r.Growth > 0 && r.Capacity > 0 {
		out.Exhausted = r.Exhausted
	}
	return out
}

func placeOf(p *airlock.Place) status.SurvivalPlace {
	return status.SurvivalPlace{Outgrown: p.Outgrown, Class: p.Class.String(), Priority: p.Priority, Value: int(p.Value), Ran: p.Ran, Footprint: p.Footprint, Planned: p.Planned}
}
