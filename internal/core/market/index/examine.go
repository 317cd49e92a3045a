package index

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// examiner makes entries. Invariant: an indexed entry answers every window as the job's atomizer does when asked.
type examiner struct {
	*Estimator
	// mostClasses bounds the classes that answers are kept for; with more of them every job is asked each time.
	mostClasses int
	alike       alike
	// room is for an entry that is being made.
	room Entry
}

// examine finds what a job answers to windows of every class: for each the shortest that it can use. Jobs whose answers move by
// themselves are asked each time: in a queue with a cap, or too long for the longest window there usually is.
func (x *examiner) examine(now quantity.Instant, j *Job, e *Entry) {
	classes := x.board.Classes()
	*e = Entry{answers: e.answers[:0], ineligible: j.Ineligible(now)}
	if len(classes) > x.mostClasses || j.Spec().External || j.Volatile() {
		return
	}
	if e.ineligible != explain.Eligible {
		e.indexed = true
		return
	}
	e.answers = slices.Grow(e.answers, len(classes))[:len(classes)]
	useful := false
	for i, c := range classes {
		a, ok := x.answer(j, c)
		if !ok {
			return
		}
		e.answers[i] = a
		useful = useful || a.need != Never
	}
	if e.indexed = true; !useful {
		return
	}
	e.rankBy(j)
	if e.moves = j.Busy() > 0; e.moves {
		e.key.Attained, _, _ = j.Use(now)
	}
}

// rankBy makes an entry one that is ranked, by what the job has attained with all that is over.
func (e *Entry) rankBy(j *Job) {
	e.ranked = true
	e.key = policy.Candidate{
		Job: j.Name(), Priority: j.Spec().Priority, Submitted: j.Submitted(), Attained: j.Attained(), Weight: 1,
		Laxity: math.MaxInt64,
	}
}

// answer finds what a job says to windows of a class; ok is false if that is not simple enough to keep. What it needs is
// not computed but found by asking the atomizer itself, with windows of different length: its answer is monotone in the
// length, and grid, checkpoint and the end of the work make a formula wrong in a few cases of a hundred.
func (x *examiner) answer(j *Job, c *window.Class) (a answer, ok bool) {
	a = answer{need: Never, laxity: x.Laxity(j, c, 0), index: x.Index(j, c)}
	v := j.View()
	ask := func(d time.Duration) (atomizer.Piece, atomizer.Refusal) {
		end := quantity.Instant(d)
		if d == window.Endless {
			end = quantity.Never
		}
		return atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), End: end})
	}
	switch {
	case Wide(j.Spec()):
		a.refusal = RefuseWide(j.Spec())
		return a, true
	case j.Spec().Kind == job.Rigid:
		p, r := ask(window.Endless)
		if r.Why != atomizer.Interested {
			a.refusal = r
			return a, true
		}
		_, a.refusal = ask(0)
		a.need = p.Length
		if j.Spec().Walltime == 0 {
			a.need = window.Endless
		}
		return a, true
	}
	// What no window is long enough for is refused as unsafe, barred or out of work in every window.
	yes := func(d time.Duration) bool { _, r := ask(d); return r.Why == atomizer.Interested }
	if _, a.refusal = ask(0); a.refusal.Why != atomizer.TooShort {
		return a, true
	}
	longest, guess := x.Longest(j), a.refusal.Need
	if guess > longest || !yes(guess) {
		if !yes(longest) {
			return x.lastResort(j, c, a)
		}
		guess = 0
	}
	a.need = leastLength(yes, guess, longest)
	return a, true
}

// lastResort is the answer of a job that the longest window there usually is would be too short for, by its usual run time: in that one
// it tries its least useful piece (Fit).
func (x *examiner) lastResort(j *Job, c *window.Class, a answer) (answer, bool) {
	v, longest := j.View(), x.Longest(j)
	v.Hopeful = true
	_, r := atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), End: quantity.Instant(longest)})
	if r.Why != atomizer.Interested {
		_, most := j.Queue()
		return a, 0 < most && most <= longest && r == a.refusal // others are longer yet, where something known ends them
	}
	a.need = longest
	return a, true
}

// leastLength is the least length that is accepted; most is, 0 is not, and so is a guess other than 0, which if it is right
// is confirmed by one question.
func leastLength(yes func(time.Duration) bool, guess, most time.Duration) time.Duration {
	low, high := time.Duration(0), most // low is refused, high accepted
	if guess > 0 {
		if high = guess; !yes(guess - 1) {
			return guess
		}
		high--
	}
	for low+1 < high {
		if middle := low + (high-low)/2; yes(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// adopt makes an entry that was examined that of a job. The room that it was examined in is good for the next one.
func (x *examiner) adopt(j *Job, is *Entry) {
	was := j.entry
	j.entry = *is
	switch {
	case j.unsold():
		j.entry.answers, j.entry.shares = x.alike.share(is.answers), true
	case was.shares:
		is.answers = nil
	default:
		is.answers = was.answers
	}
}

// add completes a job's answers by that for a new class.
func (x *examiner) add(j *Job, a answer) {
	if !j.entry.shares {
		j.entry.answers = append(j.entry.answers, a)
		return
	}
	x.room.answers = append(append(x.room.answers[:0], j.entry.answers...), a)
	j.entry.answers = x.alike.share(x.room.answers)
}

// mostAlike lists are held for jobs to share. When there are more it begins anew: lists live as long as jobs that have them.
const mostAlike = 4096

// alike holds the lists of answers that jobs share, by their hash: jobs that are alike answer alike, as long as nothing was sold to them.
// Invariant: nobody writes to a list that is shared. A job that runs or has run answers by what is left of it, and has a list of its own.
// The zero value is empty.
type alike map[uint64][]answer

// share is a list that says the same, for jobs that share theirs.
func (a *alike) share(list []answer) []answer {
	h := digest.New()
	for i := range list {
		x := &list[i]
		h = h.Int(int64(x.need), int64(x.refusal.Why), int64(x.refusal.Least), int64(x.refusal.Need), int64(x.laxity), x.index)
	}
	sum := h.Sum()
	if known := (*a)[sum]; slices.Equal(known, list) {
		return known
	}
	if *a == nil || len(*a) >= mostAlike {
		*a = alike{}
	}
	own := slices.Clip(slices.Clone(list))
	(*a)[sum] = own
	return own
}
