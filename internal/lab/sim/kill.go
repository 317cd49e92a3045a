package sim

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/oom"
)

// kill is what the kernel ends, where memory and swap have both ended and it is short of so much still, and what a killer does. It returns
// what is left.
func (h *hosts) kill(p int, runs []*run, short quantity.Amount) []*run {
	host := &h.of[p]
	seen := h.seen(host, runs)
	for ; short > 0 && len(runs) > 0; seen = h.seen(host, runs) {
		worst := 0
		for i := range runs {
			if host.killer.Badness(seen, &seen.Processes[i]) >= host.killer.Badness(seen, &seen.Processes[worst]) {
				worst = i
			}
		}
		short -= h.wants(runs[worst]) - runs[worst].memory.parked
		runs = h.ended(runs, runs[worst])
	}
	if h.Killer == nil {
		return runs
	}
	var victims []*run
	kills := host.killer.Look(h.now, seen)
	for _, k := range kills {
		victims = append(victims, runs[k.Process])
	}
	for i, k := range kills {
		if r := victims[i]; k.Term && r.does.Yields && r.work().Spec != nil && r.work().Spec.Divisible() {
			h.tallied.Readdressed++
			r.memory.asked = true
			h.machine.stop(r)
		} else {
			runs = h.ended(runs, r)
		}
	}
	return runs
}

// ended ends a run for its host's memory. The host knows the cause, so it is not the job's failure; a daemon that sees a SIGKILL that it
// did not send can't tell, and counts it as one.
func (h *hosts) ended(runs []*run, r *run) []*run {
	h.lost(r, runs)
	h.machine.over(r, job.NodeFailed)
	return slices.DeleteFunc(runs, func(x *run) bool { return x == r })
}

// seen is a host as killers see it.
func (h *hosts) seen(host *hostState, runs []*run) *oom.Host {
	s := &oom.Host{
		Capacity: h.Capacity, Available: max(0, h.Capacity-h.used(host, runs)), Unowned: host.unowned(), Swap: h.Room, SwapFree: h.Room,
		Pressure: host.pressure / 1000, Scanned: host.scanned,
	}
	for _, r := range runs {
		w := r.work()
		s.Processes = append(s.Processes, oom.Process{
			ID: r.start.Token.Seq, Resident: h.has(r), Swapped: r.memory.parked, Request: w.Demand[trp.Memory], Priority: w.Rank.Priority,
			Owner:     string(r.start.Job),
			Retriable: w.Spec != nil && w.Spec.Divisible(), Start: r.begin, Ending: r.memory.asked,
		})
		s.SwapFree -= r.memory.parked
	}
	return s
}

// lost counts a run that is ended for memory, while the others on its host stay.
func (h *hosts) lost(r *run, runs []*run) {
	now, rank := h.now, &r.work().Rank
	t := &h.tallied
	t.Killed++
	kept := r.kept(cmp.Or(r.memory.since, now))
	worked := max(0, cmp.Or(r.memory.since, now).Sub(r.begin)-r.does.Restore)
	if done := time.Duration(quantity.MulDiv(kept-r.rng.From, int64(r.does.PerUnit), 1)); worked > done {
		t.WorkLost += (worked - done) * time.Duration(len(r.places))
	}
	if rank.Priority > 0 && now.Sub(r.begin) >= measure.LongResident {
		t.HighValueLost++
	}
	if slices.ContainsFunc(runs, func(o *run) bool {
		return o != r && o.result == nil && o.killed == nil && h.has(o) >= h.Capacity/1000 && h.below(o, r)
	}) {
		t.WrongOrder++
	}
}

// below reports whether a run is below another by the first criteria of the order.
func (h *hosts) below(x, y *run) bool {
	a, b := &x.work().Rank, &y.work().Rank
	class := func(c protocol.Class) int {
		return [protocol.Classes]int{protocol.Fleeting: 0, protocol.Lasting: 1, protocol.Collective: 2}[c]
	}
	first, second := cmp.Compare(class(a.Class), class(b.Class)), cmp.Compare(a.Priority, b.Priority)
	if h.PriorityFirst {
		first, second = second, first
	}
	return cmp.Or(cmp.Compare(h.kept(x), h.kept(y)), first, second) < 0
}

// kept is 0 of a run that has outgrown its plan, where that counts.
func (h *hosts) kept(r *run) int {
	if planned := r.work().Demand[trp.Memory]; !h.OutgrownAlike && planned > 0 && h.wants(r)-r.memory.held > planned+planned/8 {
		return 0
	}
	return 1
}

// moving bounds how long an executor waits for a subjob's memory to be moved out before it confirms that it is suspended.
const moving = 10 * time.Second

// movedOut says whether a run that is suspended has been moved out as far as it will be: all of it, until swap is full, or for as long as
// an executor waits.
func (h *hosts) movedOut(r *run) bool {
	if h.HostMemory == nil || h.now.Sub(r.memory.since) >= moving || h.has(r) == 0 {
		return true
	}
	room := h.Room
	for _, o := range h.alive(r.party) {
		room -= o.memory.parked
	}
	return room <= 0
}

// still suspends a run, or resumes it. It is confirmed each time, as suspended only once the run's memory is moved out.
func (h *hosts) still(r *run, still bool) {
	switch {
	case still && r.memory.since == 0:
		r.memory.since = h.now
		h.machine.arm(r)
		h.tallied.Suspended++
	case !still && r.memory.since != 0:
		r.thaw(h.now)
		h.machine.arm(r)
		h.tallied.Recovered++
	}
	if !still || h.movedOut(r) {
		h.machine.answer(r, protocol.Message{Kind: protocol.Suspended, Body: &protocol.Stillness{Still: still}})
	}
}

// halt ends a run on its node's order. A suspended one is resumed for that, unless it is ended at once.
func (h *hosts) halt(r *run, why *protocol.Halt) {
	if why.Short && h.HostMemory != nil {
		switch t := &h.tallied; {
		case why.Now:
			t.Reclaimed++
			h.lost(r, h.machine.of(r.party))
		case !r.memory.asked:
			t.Readdressed++
		}
		r.memory.asked = true
	}
	if why.Now {
		h.machine.over(r, job.Stopped)
		return
	}
	if r.memory.since != 0 {
		r.thaw(h.now)
		h.machine.arm(r)
	}
	h.machine.stop(r)
}
