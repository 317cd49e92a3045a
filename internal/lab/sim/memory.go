package sim

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
)

// HostMemory is the memory of each node's host, which its slices share, and the storms that blow there. What a subjob has of it is what its job truly
// uses in the phase that it is in; a storm adds to that. It is looked at in beats, from the begin of a storm until all is calm again: between storms
// nothing is said of it, and it ends nothing.
type HostMemory struct {
	// Capacity of every host, and Room for what is parked outside (swap, zram), at most Pace a second.
	Capacity, Room, Pace quantity.Amount
	// Beat between two looks of the sensors, and of the kernel. Default 100 ms.
	Beat time.Duration
	// Kernel: nobody is told anything, and where the memory ends the kernel ends the largest process, as its OOM killer does where nobody has set
	// anything. It does so in any case.
	Kernel bool
	// PriorityFirst is the order by which a kill is judged: priority before class.
	PriorityFirst bool
	Storms        []Storm
}

// Storm is memory that nobody has foreseen.
type Storm struct {
	At   quantity.Instant
	Node job.NodeID
	// Shape says whose it is and how it comes.
	Shape Shape
	Size  quantity.Amount
	// For is how long it takes to be there in full, or stays.
	For time.Duration
}

// Shape of a storm.
type Shape uint8

// The shapes. One process is struck by the first four: the next one with each storm, in order of token.
const (
	// Leak: it grows by Size evenly for For, and keeps that.
	Leak Shape = iota
	// Jump: Size is there at once, and gone after For.
	Jump
	// Sawtooth: four times in For it grows to Size and is gone again.
	Sawtooth
	// ForkBomb: it doubles its part of Size every tenth of For, and keeps that.
	ForkBomb
	// Many: all that run there grow evenly for For, by Size together, and keep that.
	Many
	// PageCache: Size grows evenly for For and is gone; it is no process's, and who has written it is not known.
	PageCache

	Shapes = iota
)

// ShapeNames are the shapes as a scenario writes them.
func ShapeNames() []string {
	return []string{"leak", "jump", "sawtooth", "fork-bomb", "many", "page-cache"}
}

// check lists everything that is wrong.
func (h *HostMemory) check() (errs []error) {
	if h == nil {
		return nil
	}
	if h.Capacity <= 0 || h.Room < 0 || h.Pace < 0 || h.Beat < 0 {
		errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: host memory: capacity %d must be above 0, room %d, pace %d and beat %v not below", h.Capacity, h.Room, h.Pace, h.Beat))
	}
	for i, s := range h.Storms {
		if s.Size <= 0 || s.For <= 0 || s.Shape >= Shapes {
			errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: storm %d: size %d and for %v must be above 0, and shape %d below %d", i, s.Size, s.For, s.Shape, Shapes))
		}
	}
	return errs
}

// extra is what a storm has taken when it has blown for so long; over: it is gone, or as large as it gets.
func (s *Storm) extra(blown time.Duration) (size quantity.Amount, over bool) {
	even := quantity.Amount(quantity.MulDiv(int64(s.Size), int64(min(blown, s.For)), int64(s.For)))
	switch over = blown >= s.For; s.Shape {
	case Jump, PageCache:
		if over {
			return 0, true
		}
		if s.Shape == Jump {
			return s.Size, false
		}
		return even, false
	case Sawtooth:
		if over {
			return 0, true
		}
		tooth := s.For / 4
		return quantity.Amount(quantity.MulDiv(int64(s.Size), int64(blown%max(1, tooth)), int64(max(1, tooth)))), false
	case ForkBomb:
		return s.Size >> max(0, 10-int(blown*10/s.For)), over
	default:
		return even, over
	}
}

// footprint is what a run has of its host's memory.
type footprint struct {
	// gusts are the storms that struck it.
	gusts []gust
	// since when it stands still, 0: it doesn't. parked is what of it lies outside.
	since      quantity.Instant
	parked     quantity.Amount
	was, grows quantity.Amount // at the last look
	asked      bool            // to yield, for memory
}

// gust is a storm as it strikes one run, or a host: it blows only while that runs.
type gust struct {
	*Storm
	share int64 // of its size, one of so many
	blown time.Duration
}

func (g *gust) size() quantity.Amount {
	size, _ := g.extra(g.blown)
	return size / quantity.Amount(g.share)
}

// thaw lets a run go on: what it does comes later by as long as it stood still.
func (r *run) thaw(now quantity.Instant) {
	if r.since == 0 {
		return
	}
	stood := now.Sub(r.since)
	r.Restore += stood
	r.FailAfter += stood
	r.since, r.parked = 0, 0
}

// hosts are the nodes' machines, by party.
type hosts struct {
	sim *Sim
	*HostMemory
	of      []hostState
	tallied measure.Survival
}

type hostState struct {
	// cache is what blows there and is nobody's; due are storms to come, which struck nobody yet.
	cache []gust
	// beating: it is looked at again; used at the last look, 0: there was none.
	beating bool
	used    quantity.Amount
	growth  quantity.Amount
	struck  int
}

// begin plans the storms.
func (h *hosts) begin(s *Sim) {
	h.sim, h.HostMemory = s, s.o.Memory
	if h.HostMemory == nil {
		return
	}
	h.of = make([]hostState, len(s.parties))
	h.Beat = cmp.Or(h.Beat, 100*time.Millisecond)
	for i := range h.Storms {
		s.events.Put(max(s.now, h.Storms[i].At), event{kind: beats, index: int32(-1 - i)})
	}
}

// Survival is what became of subjobs where memory ran out.
func (s *Sim) Survival() measure.Survival { return s.hosts.tallied }

// beat is a look at a host, or a storm that begins.
func (h *hosts) beat(index int32) {
	if index < 0 {
		h.strike(&h.Storms[-1-index])
		return
	}
	p := int(index)
	host := &h.of[p]
	host.beating = false
	runs := h.alive(p)
	h.park(runs)
	used := h.blow(host, runs)
	h.watch(p, host, runs, used)
}

// strike begins a storm on its node.
func (h *hosts) strike(s *Storm) {
	p, ok := h.sim.index[protocol.Address{Role: protocol.Node, ID: string(s.Node)}]
	if !ok {
		return
	}
	host := &h.of[p]
	runs := slices.DeleteFunc(h.alive(p), func(r *run) bool { return r.since != 0 })
	switch {
	case s.Shape == PageCache:
		host.cache = append(host.cache, gust{Storm: s, share: 1})
	case len(runs) == 0:
		return
	case s.Shape == Many:
		for _, r := range runs {
			r.gusts = append(r.gusts, gust{Storm: s, share: int64(len(runs))})
		}
	default:
		r := runs[host.struck%len(runs)]
		host.struck++
		r.gusts = append(r.gusts, gust{Storm: s, share: 1})
	}
	h.again(p)
}

// again plans the next look at a host.
func (h *hosts) again(p int) {
	if host := &h.of[p]; !host.beating {
		host.beating = true
		h.sim.events.Put(h.sim.now.Add(h.Beat), event{kind: beats, index: int32(p)})
	}
}

// alive are the processes on a host, by token.
func (h *hosts) alive(p int) []*run {
	return slices.DeleteFunc(h.sim.machine.of(p), func(r *run) bool { return r.result != nil || r.killed != nil })
}

// park moves what stands still out of the memory, as far as there is room and as fast as that goes.
func (h *hosts) park(runs []*run) {
	room, pace := h.Room, quantity.Amount(quantity.MulDiv(int64(h.Pace), int64(h.Beat), int64(time.Second)))
	for _, r := range runs {
		room -= r.parked
	}
	for _, r := range runs {
		if r.since != 0 {
			moved := max(0, min(room, pace, h.has(r)))
			r.parked, room, pace = r.parked+moved, room-moved, pace-moved
		}
	}
}

// has is what a run has in the memory.
func (h *hosts) has(r *run) quantity.Amount {
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
	return max(0, size-r.parked)
}

// blow lets storms go on for a beat, and returns what is used then. What is over and leaves nothing is forgotten.
func (h *hosts) blow(host *hostState, runs []*run) (used quantity.Amount) {
	for i := range host.cache {
		host.cache[i].blown += h.Beat
	}
	host.cache = slices.DeleteFunc(host.cache, func(g gust) bool { _, over := g.extra(g.blown); return over })
	for i := range host.cache {
		used += host.cache[i].size()
	}
	for _, r := range runs {
		for i := range r.gusts {
			if r.since == 0 {
				r.gusts[i].blown += h.Beat
			}
		}
		used += h.has(r)
	}
	return used
}

// watch is what sensors and kernel make of a look.
func (h *hosts) watch(p int, host *hostState, runs []*run, used quantity.Amount) {
	s := h.sim
	runs, used = h.kill(runs, used)
	if host.used != 0 {
		host.growth = h.trend(host.growth, used-host.used)
	}
	host.used = used
	if used >= quantity.Amount(quantity.MulDiv(int64(h.Capacity), 920, 1000)) {
		h.tallied.OverLine += h.Beat
	}
	blows, room := len(host.cache) > 0, h.Room
	strain := &protocol.Strain{Capacity: h.Capacity, Used: used, Growth: host.growth}
	for _, r := range runs {
		has := h.has(r)
		if r.was != 0 {
			r.grows = h.trend(r.grows, has-r.was)
		}
		r.was = has
		strain.Uses = append(strain.Uses, protocol.Use{Token: r.start.Token, Resident: has, Parked: r.parked, Growth: r.grows})
		room -= r.parked
		blows = blows || r.since != 0 || slices.ContainsFunc(r.gusts, func(g gust) bool { _, over := g.extra(g.blown); return !over })
	}
	strain.Room = max(0, room)
	if !h.Kernel {
		s.machine.say(s.parties[p].Address, protocol.Message{Kind: protocol.Pressure, Body: strain})
	}
	if blows || used >= quantity.Amount(quantity.MulDiv(int64(h.Capacity), 850, 1000)) || host.growth > 0 {
		h.again(p)
	} else {
		host.used, host.growth = 0, 0
	}
}

// trend is the growth in a second as a sensor has it: a moving average over some two seconds, so that a process that starts is no trend.
func (h *hosts) trend(before, more quantity.Amount) quantity.Amount {
	beats := max(1, int64(2*time.Second/h.Beat))
	now := quantity.Amount(int64(more) * int64(time.Second) / int64(h.Beat))
	return before + (now-before)/quantity.Amount(beats)
}

// kill is the kernel's part: where the memory has ended it ends the largest.
func (h *hosts) kill(runs []*run, used quantity.Amount) ([]*run, quantity.Amount) {
	for used > h.Capacity && len(runs) > 0 {
		victim := slices.MaxFunc(runs, func(a, b *run) int {
			return cmp.Or(cmp.Compare(h.has(a), h.has(b)), a.start.Token.Compare(b.start.Token))
		})
		used -= h.has(victim)
		h.lost(victim, runs)
		runs = slices.DeleteFunc(runs, func(r *run) bool { return r == victim })
		h.sim.machine.over(victim, job.Lost)
	}
	return runs, used
}

// lost counts a run that is ended for memory, while the others on its host stay.
func (h *hosts) lost(r *run, runs []*run) {
	now, rank := h.sim.now, &r.work().Rank
	t := &h.tallied
	t.Killed++
	kept := r.kept(cmp.Or(r.since, now))
	worked := max(0, cmp.Or(r.since, now).Sub(r.begin)-r.Restore)
	if done := time.Duration(quantity.MulDiv(kept-r.rng.From, int64(r.PerUnit), 1)); worked > done {
		t.WorkLost += (worked - done) * time.Duration(len(r.places))
	}
	if rank.Priority > 0 && now.Sub(r.begin) >= measure.LongResident {
		t.HighValueLost++
	}
	if slices.ContainsFunc(runs, func(o *run) bool {
		return o != r && o.result == nil && o.killed == nil && h.has(o) >= h.Capacity/1000 && h.below(&o.work().Rank, rank)
	}) {
		t.WrongOrder++
	}
}

// below says whether a rank is below another by what comes first in the order.
func (h *hosts) below(a, b *protocol.Rank) bool {
	class := func(c protocol.Class) int {
		return [protocol.Classes]int{protocol.Fleeting: 0, protocol.Lasting: 1, protocol.Collective: 2}[c]
	}
	first, second := cmp.Compare(class(a.Class), class(b.Class)), cmp.Compare(a.Priority, b.Priority)
	if h.PriorityFirst {
		first, second = second, first
	}
	return cmp.Or(first, second) < 0
}

// still has a run stand still, or go on. It says so each time it is told to.
func (m *machine) still(r *run, still bool) {
	s := m.sim
	switch {
	case still && r.since == 0:
		r.since = s.now
		m.arm(r)
		s.hosts.tallied.Suspended++
	case !still && r.since != 0:
		r.thaw(s.now)
		m.arm(r)
		s.hosts.tallied.Recovered++
	}
	m.answer(r, protocol.Message{Kind: protocol.Suspended, Body: &protocol.Stillness{Still: still}})
}

// halt ends a run on its node's word. One that stands still goes on for that; what is ended at once, as it stands, doesn't.
func (m *machine) halt(r *run, h *protocol.Halt) {
	if h.Short && m.sim.hosts.HostMemory != nil {
		switch t := &m.sim.hosts.tallied; {
		case h.Now:
			t.Reclaimed++
			m.sim.hosts.lost(r, m.of(r.party))
		case !r.asked:
			t.Readdressed++
		}
		r.asked = true
	}
	if h.Now {
		m.over(r, job.Stopped)
		return
	}
	if r.since != 0 {
		r.thaw(m.sim.now)
		m.arm(r)
	}
	m.stop(r)
}
