package pressure

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostSteps is how many of Airlock's latest steps a node keeps, for people.
const mostSteps = 256

// history is Airlock's record for people: its latest steps in a ring, and totals since the node came up. Soft, read by views alone; no
// decision depends on it. Noting allocates only the ring, with the first step.
type history struct {
	steps []step
	// next is the ring's next place once it is full, forgotten the number of steps overwritten since.
	next      int
	forgotten int64
	decisions int64

	// reading is the last one, at its moment.
	reading airlock.Reading
	at      quantity.Instant
	room    quantity.Amount
	// tallied is up to when stood (subjob-time) and overLine are counted.
	tallied         quantity.Instant
	stood, overLine time.Duration

	readdressed, reclaimed, killed int64
}

// deed is what was done to a subjob, or became of it.
type deed uint8

const (
	suspended deed = iota + 1
	recovered
	readdressed
	reclaimed
	refused
	ended

	deeds = iota + 1
)

var deedNames = [deeds]string{"", "suspended", "recovered", "readdressed", "reclaimed", "refused", "ended"}

// deedOf are the deeds of steps.
var deedOf = [...]deed{
	airlock.Suspend: suspended, airlock.Resume: recovered, airlock.Readdress: readdressed, airlock.Reclaim: reclaimed,
}

// step is one that was taken with a subjob.
type step struct {
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
	place                      airlock.Ranking
	// spared is the lowest that outranks all whom the decision hit; of job "" where nobody was hit in another's stead.
	spared      job.ID
	sparedPlace airlock.Ranking

	outcome  job.Outcome
	progress int64
	stood    time.Duration
}

// tally counts the time since it was last called, for which so many were suspended: what is counted changes within a step of the node
// alone, and each begins with it. The reading is good until it is old.
func (h *history) tally(now quantity.Instant, standing int, old quantity.Instant) {
	if h.tallied != 0 && now > h.tallied {
		h.stood += time.Duration(standing) * now.Sub(h.tallied)
		if end := min(now, old); h.reading.Over() && end > h.tallied {
			h.overLine += end.Sub(h.tallied)
		}
	}
	h.tallied = now
}

// of is a step that is to be kept.
func (h *history) of(now quantity.Instant, l *leases.Lease, what deed) step {
	t, stand := l.Terms(), l.Stand()
	e := step{at: now, job: t.Job, generation: t.Generation, token: t.Token, slice: t.Slice, deed: what}
	if what == readdressed {
		h.readdressed++
	}
	if what == reclaimed {
		h.reclaimed++
	}
	if stand.Since != 0 && stand.Times > 0 && what != suspended {
		e.stood = now.Sub(stand.Since)
	}
	return e
}

// keep puts a step into the ring, and returns it there.
func (h *history) keep(e step) *step {
	if len(h.steps) < mostSteps {
		if h.steps == nil {
			h.steps = make([]step, 0, mostSteps)
		}
		h.steps = append(h.steps, e)
		return &h.steps[len(h.steps)-1]
	}
	at := &h.steps[h.next]
	*at, h.next, h.forgotten = e, (h.next+1)%mostSteps, h.forgotten+1
	return at
}

// all yields the steps, the oldest first.
func (h *history) all(yield func(*step) bool) {
	for _, part := range [2][]step{h.steps[h.next:], h.steps[:h.next]} {
		for i := range part {
			if !yield(&part[i]) {
				return
			}
		}
	}
}

// note keeps the steps of a decision, before they are taken.
func (h *history) note(now quantity.Instant, t *table, cfg *airlock.Config, d *airlock.Decision) {
	if !slices.ContainsFunc(d.Actions, func(a airlock.Action) bool { return a.Task < len(t.of) }) {
		return // another node's alone
	}
	h.decisions++
	spared := spared(now, t.tasks, cfg, d)
	for _, a := range d.Actions {
		if a.Task >= len(t.of) {
			continue
		}
		e := h.of(now, t.of[a.Task], deedOf[a.Step])
		e.decision, e.cause, e.relief = h.decisions, a.Cause, a.Relief
		e.reading, e.deficit, e.underway, e.covered = d.Reading, d.Deficit, d.Underway, d.Covered
		e.place = airlock.RankingOf(now, &t.tasks[a.Task])
		if spared >= 0 && hits(a) {
			e.spared, e.sparedPlace = t.jobAt(spared), airlock.RankingOf(now, &t.tasks[spared])
		}
		h.keep(e)
	}
}

// hits says whether a step hits a subjob in another's stead.
func hits(a airlock.Action) bool { return a.Cause == airlock.Deficit || a.Cause == airlock.Brink }

// spared is the lowest of those that outrank all whom a decision hits, by its place in the table; -1: it hits nobody, or nobody does.
func spared(now quantity.Instant, tasks []airlock.Task, cfg *airlock.Config, d *airlock.Decision) int {
	top, brink := -1, false
	for _, a := range d.Actions {
		if !hits(a) {
			continue
		}
		if brink = a.Cause == airlock.Brink; top < 0 || cfg.Outranks(now, &tasks[a.Task], &tasks[top]) {
			top = a.Task
		}
	}
	low := -1
	for i := range tasks {
		t := &tasks[i]
		counts := t.State == airlock.Running || t.State == airlock.Resuming || brink && t.State != airlock.Reclaiming
		if top < 0 || !counts || !cfg.Outranks(now, t, &tasks[top]) {
			continue
		}
		if low < 0 || cfg.Outranks(now, &tasks[low], t) {
			low = i
		}
	}
	return low
}
