package lender

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
)

// keeps is how long a host shows a pilot that has ended, as Slurm does (MinJobAge).
const keeps = 5 * time.Minute

// Job is a pilot at its host.
type Job struct {
	Name   string
	Length time.Duration
	Asked  quantity.Instant
	// Began is when it started, Ends when its host ends it, Ended when it was gone; 0: that has not been.
	Began, Ends, Ended quantity.Instant
	// Preempted: others have its room.
	Preempted bool

	gap int // that it runs in
	// stay is how long those have its room who took it; 0: for as long as there is any.
	stay time.Duration
}

// host is one host scheduler.
type host struct {
	pool *Pool
	jobs []*Job // in the order in which they were asked for
	// taken is the room that others took back, each of one pilot.
	taken []theft
}

// theft is one place of a gap that others have.
type theft struct {
	gap   int
	until quantity.Instant
}

func within(list []Span, at quantity.Instant) bool {
	return slices.ContainsFunc(list, func(s Span) bool { return s.Holds(at) })
}

// silent is why the host does not answer.
func (h *host) silent(now quantity.Instant) error {
	if within(h.pool.Silent, now) {
		return errkind.Errorf(errkind.Unavailable, "the host does not answer")
	}
	return nil
}

// submit queues a pilot. Errors: Unavailable while the host is silent, Exhausted while it takes none.
func (h *host) submit(now quantity.Instant, name string, length time.Duration) error {
	if err := h.silent(now); err != nil {
		return err
	}
	if within(h.pool.Refuses, now) {
		return errkind.Errorf(errkind.Exhausted, "the host takes no more jobs of this user")
	}
	h.jobs = append(h.jobs, &Job{Name: name, Length: length, Asked: now})
	return nil
}

// find is a pilot that has not ended; nil: there is none.
func (h *host) find(name string) *Job {
	if i := slices.IndexFunc(h.jobs, func(j *Job) bool { return j.Name == name && j.Ended == 0 }); i >= 0 {
		return h.jobs[i]
	}
	return nil
}

// free is how many pilots a gap holds beside those in it.
func (h *host) free(now quantity.Instant, gap int) int {
	n := h.pool.Gaps[gap].Count
	for _, j := range h.jobs {
		if j.Began != 0 && j.Ended == 0 && j.gap == gap {
			n--
		}
	}
	for _, t := range h.taken {
		if t.gap == gap && t.until > now {
			n--
		}
	}
	return max(0, n)
}

// start starts what waits where a gap holds it, in the order in which it was asked for, each in the gap that ends first.
func (h *host) start(now quantity.Instant) (begun []*Job) {
	for _, j := range h.jobs {
		if j.Began != 0 || j.Ended != 0 {
			continue
		}
		best := -1
		for i := range h.pool.Gaps {
			g := &h.pool.Gaps[i]
			if g.Holds(now) && g.shown().Sub(now) >= j.Length && h.free(now, i) > 0 &&
				(best < 0 || g.shown() < h.pool.Gaps[best].shown()) {
				best = i
			}
		}
		if best >= 0 {
			j.Began, j.Ends, j.gap = now, now.Add(j.Length), best
			begun = append(begun, j)
		}
	}
	return begun
}

// preempt takes the room of pilots for others: of those that began last, which it returns. Room that others have is not given back before
// they go.
func (h *host) preempt(now quantity.Instant, p *Preemption) (gone []*Job) {
	for _, j := range h.jobs {
		if j.Began != 0 && j.Ended == 0 && !j.Preempted && (p.of == 0 || p.of == j.gap+1) {
			gone = append(gone, j)
		}
	}
	slices.SortStableFunc(gone, func(a, b *Job) int { return cmp.Or(cmp.Compare(b.Began, a.Began), cmp.Compare(a.Name, b.Name)) })
	gone = gone[:min(len(gone), p.Count)]
	for _, j := range gone {
		j.Preempted, j.Ends, j.stay = true, min(j.Ends, now.Add(p.Grace)), p.For
	}
	return gone
}

// end notes that a pilot is gone. Others have the room of a preempted one.
func (h *host) end(now quantity.Instant, j *Job) {
	j.Ended = now
	if !j.Preempted {
		return
	}
	until := h.pool.Gaps[j.gap].End
	if j.stay > 0 {
		until = min(until, now.Add(j.stay))
	}
	h.taken = append(slices.DeleteFunc(h.taken, func(t theft) bool { return t.until <= now }), theft{j.gap, until})
}

// look is what the host shows: its pilots, those that ended a while ago left out, and its gaps in order. Errors: Unavailable.
func (h *host) look(now quantity.Instant) (seen []Job, gaps []supply.Gap, err error) {
	if err := h.silent(now); err != nil {
		return nil, nil, err
	}
	h.jobs = slices.DeleteFunc(h.jobs, func(j *Job) bool { return j.Ended != 0 && now.Sub(j.Ended) >= keeps })
	for _, j := range h.jobs {
		seen = append(seen, *j)
	}
	if h.pool.Blind {
		return seen, nil, nil
	}
	for i := range h.pool.Gaps {
		g := &h.pool.Gaps[i]
		if n := h.free(now, i); g.End > now && g.Start.Add(-h.pool.Ahead) <= now && n > 0 {
			gaps = append(gaps, supply.Gap{Start: g.Start, End: g.shown(), Count: n})
		}
	}
	slices.SortStableFunc(gaps, func(a, b supply.Gap) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	return seen, gaps, nil
}
