package sim

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/oom"
)

// HostMemory is the memory of each node's host, which its slices share, and the storms that blow there. What a subjob has of it is what
// its job truly uses in the phase that it is in; a storm adds to that. It is looked at in beats, from the begin of a storm until all is
// calm again: between storms nothing is said of it, and it ends nothing.
type HostMemory struct {
	// Capacity of every host, and its swap: Room, at most Pace a second in or out.
	Capacity, Room, Pace quantity.Amount
	// Hot: nothing of a process is cold, as where it is pinned for devices; else a quarter is.
	Hot bool
	// Beat between two looks of the sensors, and of the kernel. Default 100 ms.
	Beat time.Duration
	// Killer acts in place of the nodes, who are told nothing; nil: they act. The kernel does where the memory ends, in any case.
	Killer *oom.Kind
	// PriorityFirst is the order by which a kill is judged: priority before class.
	PriorityFirst bool
	// OutgrownAlike: in that order it does not count who has more than was planned for it.
	OutgrownAlike bool
	Storms        []Storm
	// Spread: each storm comes later by a time up to this, and strikes a process, that are drawn by the seed. 0: when it is said to, and
	// each process in turn.
	Spread time.Duration
}

// check lists everything that is wrong.
func (h *HostMemory) check() (errs []error) {
	if h == nil {
		return nil
	}
	if h.Capacity <= 0 || h.Room < 0 || h.Pace < 0 || h.Beat < 0 || h.Spread < 0 {
		errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: host memory: capacity %d must be above 0, room %d, pace %d, "+
			"beat %v and spread %v not below", h.Capacity, h.Room, h.Pace, h.Beat, h.Spread))
	}
	for i, s := range h.Storms {
		if s.Size <= 0 || s.For <= 0 || s.Shape >= Shapes {
			errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: storm %d: size %d and for %v must be above 0, and shape %d "+
				"below %d", i, s.Size, s.For, s.Shape, Shapes))
		}
	}
	return errs
}

// footprint is what a run has of its host's memory.
type footprint struct {
	// gusts are the storms that struck it.
	gusts []gust
	// since when it stands still, 0: it doesn't.
	since quantity.Instant
	swapped
	was, grows quantity.Amount // at the last look
	asked      bool            // to yield, for memory
}

// thaw lets a run go on: what it does comes later by as long as it stood still. What of it lies in swap it takes again as it runs.
func (r *run) thaw(now quantity.Instant) {
	if r.since == 0 {
		return
	}
	r.later(now.Sub(r.since))
	r.since = 0
}

// later is a run that did nothing for so long.
func (r *run) later(d time.Duration) {
	r.Restore += d
	r.FailAfter += d
}

// hosts are the nodes' machines, by party.
type hosts struct {
	sim *Sim
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
	// pressure is the share of time in which all that ran stood still for want of memory, over the last ten seconds, in millionths;
	// scanned: something was moved to swap at the last look.
	pressure int64
	scanned  bool
}

// begin plans the storms.
func (h *hosts) begin(s *Sim) {
	h.sim, h.HostMemory = s, s.o.Memory
	if h.HostMemory == nil {
		return
	}
	h.of = make([]hostState, len(s.parties))
	for i := range h.of {
		kind := oom.Named("kernel")
		if h.Killer != nil {
			kind = h.Killer
		}
		h.of[i].killer = kind.New()
	}
	h.Beat = cmp.Or(h.Beat, 100*time.Millisecond)
	for i := range h.Storms {
		at := h.Storms[i].At
		if h.Spread > 0 {
			stream := prng.New(s.o.Seed, prng.Name("storm"), uint64(i))
			at = at.Add(time.Duration(stream.Uint64() % uint64(h.Spread)))
		}
		s.events.Put(max(s.now, at), event{kind: beats, index: int32(-1 - i)})
	}
}

// Survival is what became of subjobs where memory ran out.
func (s *Sim) Survival() measure.Survival { return s.hosts.tallied }

// beat is a look at a host, or a storm that begins.
func (h *hosts) beat(index int32) {
	if index < 0 {
		h.strike(int(-1 - index))
		return
	}
	p := int(index)
	host := &h.of[p]
	if host.next != h.sim.now { // it was to be looked at sooner
		return
	}
	host.next = 0
	runs := h.alive(p)
	h.strikeAgain(runs)
	h.blow(host, runs)
	short := h.swap(host, runs)
	runs = h.kill(p, runs, short)
	h.watch(p, host, runs)
}

// strike begins a storm on its node.
func (h *hosts) strike(i int) {
	s := &h.Storms[i]
	p, ok := h.sim.index[protocol.Address{Role: protocol.Node, ID: string(s.Node)}]
	if !ok {
		return
	}
	host := &h.of[p]
	runs := slices.DeleteFunc(h.alive(p), func(r *run) bool { return r.since != 0 })
	switch {
	case s.Shape == Tmpfs || s.Shape == PageCache:
		host.cache = append(host.cache, gust{Storm: s, share: 1})
	case len(runs) == 0:
		return
	case s.Shape == Many:
		for _, r := range runs {
			r.gusts = append(r.gusts, gust{Storm: s, share: int64(len(runs))})
		}
	default:
		n := host.struck
		host.struck++
		if h.Spread > 0 {
			stream := prng.New(h.sim.o.Seed, prng.Name("struck"), uint64(i))
			n = stream.IntN(len(runs))
		}
		r := runs[n%len(runs)]
		r.gusts = append(r.gusts, gust{Storm: s, share: 1, of: h.under(r), times: 1})
	}
	h.again(p, 1)
}

// again plans the next look at a host, after so many beats at the latest.
func (h *hosts) again(p, beatsOff int) {
	at := h.sim.now.Add(h.Beat * time.Duration(beatsOff))
	if host := &h.of[p]; host.next == 0 || host.next > at {
		host.next = at
		h.sim.events.Put(at, event{kind: beats, index: int32(p)})
	}
}

// alive are the processes on a host, by token.
func (h *hosts) alive(p int) []*run {
	return slices.DeleteFunc(h.sim.machine.of(p), func(r *run) bool { return r.result != nil || r.killed != nil })
}

// wants is what a run uses, wherever it lies.
func (h *hosts) wants(r *run) quantity.Amount {
	size := r.Peak[0]
	if r.slot != none {
		at := h.sim.now
		if r.since != 0 {
			at = r.since
		}
		j := &h.sim.jobs[r.slot].Job
		unit := min(r.entered(j, at), j.Units) - 1
		size, _ = j.Memory.Run(max(0, unit), max(1, unit+1), r.attempt, 1<<62)
	}
	for i := range r.gusts {
		size += r.gusts[i].size()
	}
	return size
}

// has is what a run has in the memory.
func (h *hosts) has(r *run) quantity.Amount { return max(0, h.wants(r)-r.parked-r.held) }

// unowned is memory that is no process's, and can't be dropped.
func (s *hostState) unowned() (size quantity.Amount) {
	for i := range s.cache {
		if s.cache[i].Shape != PageCache {
			size += s.cache[i].size()
		}
	}
	return size
}

// blow lets storms go on for a beat, as far as what they struck runs. What is over and leaves nothing is forgotten.
func (h *hosts) blow(host *hostState, runs []*run) {
	for i := range host.cache {
		host.cache[i].blown += h.Beat
	}
	host.cache = slices.DeleteFunc(host.cache, func(g gust) bool { _, over := g.extra(g.blown); return over })
	for _, r := range runs {
		for i := range r.gusts {
			if r.since == 0 {
				r.gusts[i].blown += h.Beat - r.waits(h.Beat)
			}
		}
	}
}

// watch is what sensors make of a look.
func (h *hosts) watch(p int, host *hostState, runs []*run) {
	s := h.sim
	used := h.used(host, runs)
	if host.used != 0 {
		host.growth = h.trend(host.growth, used-host.used)
	}
	host.used = used
	if used >= quantity.Amount(quantity.MulDiv(int64(h.Capacity), 920, 1000)) {
		h.tallied.OverLine += h.Beat
	}
	blows, stays, room := len(host.cache) > 0, false, h.Room
	strain := &protocol.Strain{Capacity: h.Capacity, Used: used, Growth: host.growth, Stall: host.pressure / 1000}
	for _, r := range runs {
		has := h.has(r)
		if r.was != 0 {
			r.grows = h.trend(r.grows, has-r.was)
		}
		r.was = has
		strain.Uses = append(strain.Uses, protocol.Use{Token: r.start.Token, Resident: has, Parked: r.parked, Growth: r.grows})
		room -= r.parked
		blows = blows || r.since != 0 || r.wait > 0
		stays = stays || h.relapses(r)
		for i := range r.gusts {
			size, over := r.gusts[i].extra(r.gusts[i].blown)
			blows, stays = blows || !over, stays || size > 0
		}
	}
	strain.Room = max(0, room)
	if h.Killer == nil {
		s.machine.say(s.parties[p].Address, protocol.Message{Kind: protocol.Pressure, Body: strain})
	}
	switch {
	case blows || used >= quantity.Amount(quantity.MulDiv(int64(h.Capacity), 850, 1000)) || host.growth > 0 || host.pressure > 10_000:
		h.again(p, 1)
	case stays: // what grew is there still, or comes again
		h.again(p, calmBeats)
	default:
		host.used, host.growth, host.pressure = 0, 0, 0
	}
}

// calmBeats is how many beats lie between two looks where all is calm.
const calmBeats = 10

// used of the memory of a host.
func (h *hosts) used(host *hostState, runs []*run) quantity.Amount {
	used := host.unowned()
	for _, r := range runs {
		used += h.has(r)
	}
	return used
}

// trend is the growth in a second as a sensor has it: a moving average over some two seconds, so that a process that starts is no trend.
func (h *hosts) trend(before, more quantity.Amount) quantity.Amount {
	beats := max(1, int64(2*time.Second/h.Beat))
	now := quantity.Amount(int64(more) * int64(time.Second) / int64(h.Beat))
	return before + (now-before)/quantity.Amount(beats)
}
