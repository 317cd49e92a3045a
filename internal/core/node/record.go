package node

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostSteps is how many of Airlock's latest steps a node keeps, for people.
const mostSteps = 256

// record is what people are told of Airlock: its latest steps in a ring, and what it came to since the node came up. Soft, read by views
// alone, and nothing is decided by it. Noting allocates nothing but the ring, with the first step.
type record struct {
	steps []noted
	// next is where the ring goes on once it is full, forgotten how many steps are not in it any more.
	next      int
	forgotten int64
	decisions int64

	// reading is the last one, at its moment.
	reading airlock.Reading
	at      quantity.Instant
	room    quantity.Amount
	// tallied is up to when stood (subjob-time) and overLine are counted; standing is how many stand still since then.
	tallied         quantity.Instant
	standing        int
	stood, overLine time.Duration

	suspended, recovered, readdressed, reclaimed, killed int64
}

// deed is what was done to a subjob, or became of it.
type deed uint8

const (
	stoodStill deed = iota + 1
	wentOn
	wasAsked
	wasEnded
	couldNotStand
	hasEnded

	deeds = iota + 1
)

var deedNames = [deeds]string{"", "suspended", "recovered", "readdressed", "reclaimed", "refused", "ended"}

// deedOf are the deeds of steps.
var deedOf = [...]deed{airlock.Suspend: stoodStill, airlock.Resume: wentOn, airlock.Readdress: wasAsked, airlock.Reclaim: wasEnded}

// noted is one step.
type noted struct {
	at         quantity.Instant
	decision   int64
	job        job.ID
	generation job.Generation
	token      job.Token
	slice      job.SliceID
	deed       deed
	cause      airlock.Cause // 0: none of the node's
	relief     quantity.Amount

	reading                    airlock.Reading
	deficit, underway, covered quantity.Amount
	place                      airlock.Place
	// spared is the lowest that outranks all whom the decision hit; of job "" where nobody was hit in another's stead.
	spared      job.ID
	sparedPlace airlock.Place

	outcome  job.Outcome
	progress int64
	stood    time.Duration
}

// tally counts the time since it was last called. What is counted changes within a step alone, and each begins with it.
func (m *memory) tally(now quantity.Instant) {
	r := &m.record
	if r.tallied != 0 && now > r.tallied {
		r.stood += time.Duration(r.standing) * now.Sub(r.tallied)
		if end := min(now, m.old); r.reading.Over() && end > r.tallied { // a word that is old says nothing of now
			r.overLine += end.Sub(r.tallied)
		}
	}
	r.tallied = now
}

// still: a lease in this phase stands still, or is about to.
func (p phase) still() bool { return p == leaseSuspending || p == leaseSuspended }

// turned keeps count of what stands still, has, and went on.
func (r *record) turned(from, to phase) {
	switch {
	case to.still() && !from.still():
		r.standing++
	case from.still() && !to.still():
		r.standing--
	}
	if to == leaseSuspended {
		r.suspended++
	}
	if from == leaseSuspended && to == leaseResuming {
		r.recovered++
	}
}

// read takes in the reading of a word.
func (m *memory) read(now quantity.Instant, d *airlock.Decision) {
	m.reading, m.at, m.room = d.Reading, now, d.Room
}

// note keeps the steps of a decision, before they are taken.
func (n *Node) note(now quantity.Instant, d *airlock.Decision) {
	m := &n.memory
	if !slices.ContainsFunc(d.Actions, func(a airlock.Action) bool { return a.Task < len(m.leases) }) {
		return // another node's alone
	}
	m.decisions++
	spared := n.spared(now, d)
	for _, a := range d.Actions {
		if a.Task >= len(m.leases) {
			continue
		}
		e := m.of(now, m.leases[a.Task], deedOf[a.Step])
		e.decision, e.cause, e.relief = m.decisions, a.Cause, a.Relief
		e.reading, e.deficit, e.underway, e.covered = d.Reading, d.Deficit, d.Underway, d.Covered
		e.place = airlock.PlaceOf(now, &m.tasks[a.Task])
		if spared >= 0 && hits(a) {
			e.spared, e.sparedPlace = m.jobAt(spared), airlock.PlaceOf(now, &m.tasks[spared])
		}
		m.keep(e)
	}
}

// jobAt is the job of a task in the table.
func (m *memory) jobAt(task int) job.ID {
	if task < len(m.leases) {
		return m.leases[task].job
	}
	return m.strain.Others[task-len(m.leases)].Job
}

// noteWatched keeps what the machine's watcher has done since its last word, as the decision that the node would have made of it. It goes
// by the leases before they follow.
func (n *Node) noteWatched(now quantity.Instant, s *protocol.Strain, d *airlock.Decision) {
	for i := range s.Uses {
		l := n.lease(s.Uses[i].Token)
		if l == nil || !l.runs() && l.phase != leaseStopping {
			continue
		}
		a := l.doneTo(&s.Uses[i], &d.Reading, n.planned(l))
		if a.Step == 0 {
			continue
		}
		if len(d.Actions) == 0 {
			n.table()
		}
		if a.Task = slices.Index(n.memory.leases, l); a.Task >= 0 {
			d.Actions = append(d.Actions, a)
		}
	}
	if len(d.Actions) == 0 {
		return
	}
	n.memory.lock.Account(now, n.memory.tasks, d)
	n.note(now, d)
}

// doneTo is what its watcher did to a lease for which planned memory was expected, and why as far as can be told. Its Step is 0 if the
// watcher did nothing that the node does not know already.
func (l *lease) doneTo(u *protocol.Use, r *airlock.Reading, planned quantity.Amount) airlock.Action {
	a := airlock.Action{Token: u.Token}
	switch s := u.Stand.State; {
	case s == protocol.StandsStill && !l.phase.still() && l.phase != leaseStopping:
		a.Step, a.Cause = airlock.Suspend, airlock.Deficit
	case s == protocol.GoesOn && l.phase.still():
		a.Step, a.Cause = airlock.Resume, airlock.Eased
		switch {
		case r.Level >= airlock.Severe:
			a.Cause = airlock.Overtime
		case !r.Fits(u.Parked):
			a.Cause = airlock.Waited
		}
	case s == protocol.IsToYield && l.phase != leaseStopping:
		a.Step, a.Cause = airlock.Readdress, airlock.Deficit
		grown := airlock.Task{Resident: u.Resident, Parked: u.Parked, Planned: planned}
		switch {
		case l.stand.since != 0 && r.Level == airlock.Calm && !r.Fits(u.Parked) && grown.Outgrown():
			a.Cause = airlock.Cramped
		case l.stand.since != 0:
			a.Cause = airlock.Waited
		}
	case s == protocol.IsEnded && !l.stand.reclaimed:
		a.Step, a.Cause = airlock.Reclaim, airlock.Overtime
		if r.Level == airlock.Emergency {
			a.Cause = airlock.Brink
		}
	}
	return a
}

// hits says whether a step hits a subjob in another's stead.
func hits(a airlock.Action) bool { return a.Cause == airlock.Deficit || a.Cause == airlock.Brink }

// spared is the lowest of those that outrank all whom a decision hits, by its place in the table; -1: it hits nobody, or nobody does.
func (n *Node) spared(now quantity.Instant, d *airlock.Decision) int {
	m, cfg := &n.memory, n.memory.lock.Config()
	top, brink := -1, false
	for _, a := range d.Actions {
		if !hits(a) {
			continue
		}
		if brink = a.Cause == airlock.Brink; top < 0 || cfg.Outranks(now, &m.tasks[a.Task], &m.tasks[top]) {
			top = a.Task
		}
	}
	low := -1
	for i := range m.tasks {
		t := &m.tasks[i]
		counts := t.State == airlock.Running || t.State == airlock.Resuming || brink && t.State != airlock.Reclaiming
		if top < 0 || !counts || !cfg.Outranks(now, t, &m.tasks[top]) {
			continue
		}
		if low < 0 || cfg.Outranks(now, &m.tasks[low], t) {
			low = i
		}
	}
	return low
}

// noteOne keeps what became of a subjob, or what another than the node did to it: with the memory as it was last heard of.
func (n *Node) noteOne(now quantity.Instant, l *lease, what deed) *noted {
	m := &n.memory
	e := m.of(now, l, what)
	e.reading = m.reading
	n.table()
	for i := range m.leases {
		if m.leases[i] == l {
			e.place = airlock.PlaceOf(now, &m.tasks[i])
		}
	}
	return m.keep(e)
}

// noteEnd keeps how a subjob ended to which something was done, and counts those that were ended for their slice's memory.
func (n *Node) noteEnd(now quantity.Instant, l *lease, r *job.Result) {
	if r.Outcome == job.MemoryKilled {
		n.memory.killed++
	}
	if l.stand == (stand{}) {
		return
	}
	e := n.noteOne(now, l, hasEnded)
	e.outcome, e.progress = r.Outcome, r.Progress
}

// of is a step that is to be kept.
func (m *memory) of(now quantity.Instant, l *lease, what deed) noted {
	e := noted{at: now, job: l.job, generation: l.generation, token: l.token, slice: l.slice, deed: what}
	if what == wasAsked {
		m.readdressed++
	}
	if what == wasEnded {
		m.reclaimed++
	}
	if l.stand.since != 0 && l.stand.times > 0 && what != stoodStill {
		e.stood = now.Sub(l.stand.since)
	}
	return e
}

// keep puts a step into the ring, and returns it there.
func (r *record) keep(e noted) *noted {
	if len(r.steps) < mostSteps {
		if r.steps == nil {
			r.steps = make([]noted, 0, mostSteps)
		}
		r.steps = append(r.steps, e)
		return &r.steps[len(r.steps)-1]
	}
	at := &r.steps[r.next]
	*at, r.next, r.forgotten = e, (r.next+1)%mostSteps, r.forgotten+1
	return at
}
