package play

import (
	"fmt"
	"math"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/workload"
)

// witness watches a run beside the metrics: it counts what ended how, follows explicit jobs, and checks what must always
// be true from the events alone, knowing nothing of the mechanism. Its memory grows with live jobs and slices.
type witness struct {
	// names of explicit jobs by number, filled as they come.
	names map[int64]string
	fates map[string]outcome.Fate

	now      quantity.Instant
	slices   []recent
	jobs     []watched
	live     int64
	finished int64
	broken   []string
}

// watched is the job in a slot, until the slot is used again.
type watched struct {
	used, over bool
	number     int64
	work, done time.Duration
}

// recent are the last holds of a slice. A hold is reported when its worth is known, so a short one may be reported before a long one that
// it followed.
type recent struct {
	holds [8]hold
	next  int
}

type hold struct{ from, to quantity.Instant }

// maxBroken is how many broken invariants are written out.
const maxBroken = 20

func newWitness(names map[int64]string, slices int) *witness {
	return &witness{names: names, fates: map[string]outcome.Fate{}, slices: make([]recent, slices), now: math.MinInt64}
}

func (w *witness) broke(format string, args ...any) {
	if len(w.broken) < maxBroken {
		w.broken = append(w.broken, fmt.Sprintf(format, args...))
	}
}

func (w *witness) clock(at quantity.Instant) {
	if at < w.now {
		w.broke("time went back from %v to %v", time.Duration(w.now), time.Duration(at))
	}
	w.now = at
}

// job is the job in a slot.
func (w *witness) job(s measure.Slot) *watched {
	for int(s) >= len(w.jobs) {
		w.jobs = append(w.jobs, watched{})
	}
	j := &w.jobs[s]
	if !j.used {
		w.broke("slot %d is spoken of and never held a job", s)
	}
	return j
}

// fate changes what is known of an explicit job.
func (w *witness) fate(j *watched, change func(*outcome.Fate)) {
	name, explicit := w.names[j.number]
	if !explicit {
		return
	}
	f, known := w.fates[name]
	if !known {
		f = outcome.Fate{Began: quantity.Never, Ended: quantity.Never}
	}
	change(&f)
	w.fates[name] = f
}

// Arrived implements measure.Observer.
func (w *witness) Arrived(at quantity.Instant, s measure.Slot, j *workload.Job) {
	w.clock(at)
	for int(s) >= len(w.jobs) {
		w.jobs = append(w.jobs, watched{})
	}
	old := &w.jobs[s]
	if old.used && !old.over {
		w.broke("job %d arrives in slot %d, which holds job %d", j.Number, s, old.number)
	}
	*old = watched{used: true, number: j.Number, work: j.Work * time.Duration(j.Slices)}
	w.live++
	w.fate(old, func(*outcome.Fate) {})
}

// Began implements measure.Observer.
func (w *witness) Began(at quantity.Instant, s measure.Slot, _ uint8, _ int32) {
	w.clock(at)
	w.fate(w.job(s), func(f *outcome.Fate) { f.Began, f.Pieces = min(f.Began, at), f.Pieces+1 })
}

// Ended implements measure.Observer.
func (w *witness) Ended(at quantity.Instant, p *measure.Piece) {
	w.clock(at)
	j := w.job(p.Slot)
	// Of a run on several slices each has the work; slices of two classes are reported separately.
	if j.done += p.Work * time.Duration(p.Slices); j.done > j.work+j.work/1000+time.Second { // rounding to whole units
		w.broke("job %d has %v of work done, and is %v long", j.number, j.done, j.work)
	}
	if length := p.End.Sub(p.Start); length < 0 || p.Useful+p.Overhead > length {
		w.broke("a piece of job %d took %v and was of use for %v with %v of overhead", j.number, length, p.Useful, p.Overhead)
	}
	if int(p.First) >= len(w.slices) {
		w.broke("job %d ran on slice %d of %d", j.number, p.First, len(w.slices))
		return
	}
	r := &w.slices[p.First]
	for _, h := range r.holds {
		if p.Start < h.to && h.from < p.End {
			w.broke("slice %d was held from %v to %v, and by job %d from %v to %v", p.First, time.Duration(h.from), time.Duration(h.to),
				j.number, time.Duration(p.Start), time.Duration(p.End))
		}
	}
	r.holds[r.next] = hold{p.Start, p.End}
	r.next = (r.next + 1) % len(r.holds)
}

// Done implements measure.Observer.
func (w *witness) Done(at quantity.Instant, s measure.Slot, state job.State) {
	w.clock(at)
	j := w.job(s)
	if j.over {
		w.broke("job %d ends twice", j.number)
		return
	}
	j.over = true
	w.live--
	if state == job.Finished {
		w.finished++
	}
	w.fate(j, func(f *outcome.Fate) { f.Ended, f.State = at, state })
}

// Sent implements measure.Observer.
func (w *witness) Sent(int) {}
