package scenario

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/drive/measure"
	"sluice.dev/sluice/internal/drive/workload"
)

// witness watches a run beside the metrics: it counts what ended how, follows explicit jobs, and checks what must always
// be true from the events alone, knowing nothing of the mechanism. Its memory grows with live jobs and slices.
type witness struct {
	classes []measure.Class
	// names of explicit jobs by number; nil for generated work.
	names []string
	fates map[string]Fate

	now      quantity.Instant
	held     []int64
	lastEnd  []quantity.Instant
	jobs     []watched
	live     int64
	finished int64
	broken   []string
}

// watched is a live job.
type watched struct {
	known  bool
	number int64
	work   time.Duration
	done   time.Duration
	held   int64 // slices
}

// maxBroken is how many broken invariants are written out.
const maxBroken = 20

func newWitness(s *Scenario, classes []measure.Class, slices int) *witness {
	w := &witness{classes: classes, held: make([]int64, len(classes)), lastEnd: make([]quantity.Instant, slices), now: -1 << 63}
	for i := range s.Workload.Jobs {
		w.names = append(w.names, s.Workload.Jobs[i].Name)
	}
	if len(w.names) > 0 {
		w.fates = map[string]Fate{}
	}
	return w
}

func (w *witness) check(ok bool, format string, args ...any) {
	if !ok && len(w.broken) < maxBroken {
		w.broken = append(w.broken, fmt.Sprintf(format, args...))
	}
}

func (w *witness) clock(at quantity.Instant) {
	w.check(at >= w.now, "time went back from %v to %v", time.Duration(w.now), time.Duration(at))
	w.now = max(w.now, at)
}

// job is the live job in a slot.
func (w *witness) job(s measure.Slot, what string) *watched {
	for int(s) >= len(w.jobs) {
		w.jobs = append(w.jobs, watched{})
	}
	j := &w.jobs[s]
	w.check(j.known, "slot %d %s and holds no job", s, what)
	return j
}

// fate changes what is known of an explicit job.
func (w *witness) fate(j *watched, change func(*Fate)) {
	if j.number < 0 || j.number >= int64(len(w.names)) {
		return
	}
	f, known := w.fates[w.names[j.number]]
	if !known {
		f = Fate{Began: quantity.Never, Ended: quantity.Never}
	}
	change(&f)
	w.fates[w.names[j.number]] = f
}

// Arrived implements measure.Observer.
func (w *witness) Arrived(at quantity.Instant, s measure.Slot, j *workload.Job) {
	w.clock(at)
	for int(s) >= len(w.jobs) {
		w.jobs = append(w.jobs, watched{})
	}
	w.check(!w.jobs[s].known, "job %d arrives in slot %d, which holds job %d", j.Number, s, w.jobs[s].number)
	w.jobs[s] = watched{known: true, number: j.Number, work: j.Work}
	w.live++
	w.fate(&w.jobs[s], func(*Fate) {})
}

// Began implements measure.Observer.
func (w *witness) Began(at quantity.Instant, s measure.Slot, class uint8, n int32) {
	w.clock(at)
	j := w.job(s, "begins")
	j.held += int64(n)
	if int(class) < len(w.held) {
		w.held[class] += int64(n)
		w.check(w.held[class] <= int64(w.classes[class].Count), "at %v %d slices of %s are held, there are %d", time.Duration(at), w.held[class], w.classes[class].Name, w.classes[class].Count)
	}
	w.fate(j, func(f *Fate) { f.Began, f.Pieces = min(f.Began, at), f.Pieces+1 })
}

// Ended implements measure.Observer.
func (w *witness) Ended(at quantity.Instant, p *measure.Piece) {
	w.clock(at)
	j := w.job(p.Slot, "ends a piece")
	j.held -= int64(p.Slices)
	j.done += p.Work
	w.check(j.done <= j.work+j.work/1000+time.Second, "job %d has %v of work done, and is %v long", j.number, j.done, j.work)
	if int(p.Class) < len(w.held) {
		w.held[p.Class] -= int64(p.Slices)
	}
	if int(p.First) < len(w.lastEnd) {
		last := &w.lastEnd[p.First]
		w.check(p.Start >= *last, "slice %d was held until %v and began again at %v", p.First, time.Duration(*last), time.Duration(p.Start))
		*last = max(*last, p.End)
	}
	w.check(p.Useful+p.Overhead <= p.End.Sub(p.Start), "a piece of job %d took %v and was of use for %v with %v of overhead", j.number, p.End.Sub(p.Start), p.Useful, p.Overhead)
}

// Done implements measure.Observer.
func (w *witness) Done(at quantity.Instant, s measure.Slot, state job.State) {
	w.clock(at)
	j := w.job(s, "is done")
	w.check(j.held == 0, "job %d is %v and still holds %d slices", j.number, state, j.held)
	w.fate(j, func(f *Fate) { f.Ended, f.State = at, state })
	if state == job.Finished {
		w.finished++
	}
	j.known = false
	w.live--
}

// Sent implements measure.Observer.
func (w *witness) Sent(int) {}
