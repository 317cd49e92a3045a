package sim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/oom"
)

// hosts are the nodes' machines, by party.
type hosts struct {
	*ground
	jobs    *arrivals
	machine *machine
	*HostMemory
	of      []hostState
	tallied measure.Survival
	// pending are storms that strike again.
	pending []relapse
}

type hostState struct {
	// cache is what blows there and is no process's.
	cache []gust
	// next is when it is looked at again, 0: it isn't; used at the last look, 0: there was none.
	next   quantity.Instant
	used   quantity.Amount
	growth quantity.Amount
	struck int
	killer oom.Killer
	// pressure is the share of time in which all that ran were stalled for want of memory, over the last ten seconds, in millionths;
	// scanned: something was moved to swap at the last look.
	pressure int64
	scanned  bool
	// waiting is what programs have that stay there between subjobs.
	waiting quantity.Amount
}

// waits notes what a program has that begins to wait, or that a waiting one is over.
func (h *hosts) waits(p int, by quantity.Amount) {
	if h.HostMemory != nil {
		h.of[p].waiting += by
	}
}

// again plans the next look at a host, after beatsOff beats at the latest.
func (h *hosts) again(p, beatsOff int) {
	at := h.now.Add(h.Beat * time.Duration(beatsOff))
	if host := &h.of[p]; host.next == 0 || host.next > at {
		host.next = at
		h.events.Put(at, event{kind: beats, index: int32(p)})
	}
}

// alive are the processes on a host, by token.
func (h *hosts) alive(p int) []*run {
	return slices.DeleteFunc(h.machine.of(p), func(r *run) bool { return r.result != nil || r.killed != nil })
}

// wants is what a run uses, wherever it lies.
func (h *hosts) wants(r *run) quantity.Amount {
	size := r.does.Peak[0]
	if r.news.slot != none {
		at := h.now
		if r.memory.since != 0 {
			at = r.memory.since
		}
		j := &h.jobs.list[r.news.slot].job
		unit := min(r.entered(j, at), j.Units) - 1
		size, _ = j.Memory.Run(max(0, unit), max(1, unit+1), r.news.attempt, 1<<62)
	}
	for i := range r.memory.gusts {
		size += r.memory.gusts[i].size()
	}
	return size
}

// has is what a run has in the memory.
func (h *hosts) has(r *run) quantity.Amount { return max(0, h.wants(r)-r.memory.parked-r.memory.held) }

// unowned is memory that is no subjob's, and can't be dropped: killers do not look at programs that wait, which their node ends.
func (s *hostState) unowned() (size quantity.Amount) {
	size = s.waiting
	for i := range s.cache {
		if s.cache[i].Shape != PageCache {
			size += s.cache[i].size()
		}
	}
	return size
}

// used of the memory of a host.
func (h *hosts) used(host *hostState, runs []*run) quantity.Amount {
	used := host.unowned()
	for _, r := range runs {
		used += h.has(r)
	}
	return used
}

// under is the unit of its job that a run is in.
func (h *hosts) under(r *run) int64 {
	if r.news.slot == none {
		return 0
	}
	j := &h.jobs.list[r.news.slot].job
	return max(0, min(r.entered(j, h.now), j.Units)-1)
}

// gone notes which storms struck a unit that the ended run did not complete: they strike again when that unit is run again, relapsed times
// in all.
func (h *hosts) gone(r *run, res *job.Result) {
	if h.HostMemory == nil || r.news.slot == none {
		return
	}
	j := &h.jobs.list[r.news.slot].job
	_, done := j.Span(r.rng.From, max(r.rng.From, res.Progress))
	for i := range r.memory.gusts {
		if g := &r.memory.gusts[i]; g.times > 0 && g.times < relapsed && g.of >= done {
			h.pending = append(h.pending, relapse{g.Storm, r.start.Job, g.of, g.times + 1})
		}
	}
}

// relapses says whether a run is of a job that is struck again.
func (h *hosts) relapses(r *run) bool {
	return slices.ContainsFunc(h.pending, func(x relapse) bool { return x.job == r.start.Job })
}

// strikeAgain strikes the runs that are where storms struck before.
func (h *hosts) strikeAgain(runs []*run) {
	for _, r := range runs {
		if r.memory.since != 0 || !h.relapses(r) {
			continue
		}
		from, _ := h.jobs.list[r.news.slot].job.Span(r.rng.From, r.rng.To)
		at := h.under(r)
		h.pending = slices.DeleteFunc(h.pending, func(x relapse) bool {
			if x.job != r.start.Job || x.unit < from || x.unit > at {
				return false
			}
			r.memory.gusts = append(r.memory.gusts, gust{Storm: x.Storm, share: 1, of: x.unit, times: x.times})
			return true
		})
	}
}

// began looks at a run that begins where a storm is to strike again.
func (h *hosts) began(r *run) {
	if h.relapses(r) {
		h.again(r.party, 1)
	}
}
