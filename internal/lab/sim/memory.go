package sim

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/oom"
)

// begin plans the storms.
func (h *hosts) begin() {
	if h.HostMemory == nil {
		return
	}
	h.of = make([]hostState, len(h.parties))
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
			stream := prng.New(h.o.Seed, prng.Name("storm"), uint64(i))
			at = at.Add(time.Duration(stream.Uint64() % uint64(h.Spread)))
		}
		h.events.Put(max(h.now, at), event{kind: beats, index: int32(-1 - i)})
	}
}

// beat is a look at a host, or a storm that begins.
func (h *hosts) beat(index int32) {
	if index < 0 {
		h.strike(int(-1 - index))
		return
	}
	p := int(index)
	host := &h.of[p]
	if host.next != h.now { // it was to be looked at sooner
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
	p, ok := h.index[protocol.Address{Role: protocol.Node, ID: string(s.Node)}]
	if !ok {
		return
	}
	host := &h.of[p]
	runs := slices.DeleteFunc(h.alive(p), func(r *run) bool { return r.memory.since != 0 })
	switch {
	case s.Shape == Tmpfs || s.Shape == PageCache:
		host.cache = append(host.cache, gust{Storm: s, share: 1})
	case len(runs) == 0:
		return
	case s.Shape == Many:
		for _, r := range runs {
			r.memory.gusts = append(r.memory.gusts, gust{Storm: s, share: int64(len(runs))})
		}
	default:
		n := host.struck
		host.struck++
		if h.Spread > 0 {
			stream := prng.New(h.o.Seed, prng.Name("struck"), uint64(i))
			n = stream.IntN(len(runs))
		}
		r := runs[n%len(runs)]
		r.memory.gusts = append(r.memory.gusts, gust{Storm: s, share: 1, of: h.under(r), times: 1})
	}
	h.again(p, 1)
}

// blow advances storms by a beat: those of the page cache always, a subjob's only for as long as it runs unstalled. Finished storms of the
// cache are dropped.
func (h *hosts) blow(host *hostState, runs []*run) {
	for i := range host.cache {
		host.cache[i].blown += h.Beat
	}
	host.cache = slices.DeleteFunc(host.cache, func(g gust) bool { _, over := g.extra(g.blown); return over })
	for _, r := range runs {
		for i := range r.memory.gusts {
			if r.memory.since == 0 {
				r.memory.gusts[i].blown += h.Beat - r.memory.waits(h.Beat)
			}
		}
	}
}

// watch updates a host's reading: used memory, its growth, and time over the severe line.
func (h *hosts) watch(p int, host *hostState, runs []*run) {
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
		if r.memory.was != 0 {
			r.memory.grows = h.trend(r.memory.grows, has-r.memory.was)
		}
		r.memory.was = has
		strain.Uses = append(strain.Uses, protocol.Use{Token: r.start.Token, Resident: has, Parked: r.memory.parked,
			Growth: r.memory.grows})
		room -= r.memory.parked
		blows = blows || r.memory.since != 0 || r.memory.wait > 0
		stays = stays || h.relapses(r)
		for i := range r.memory.gusts {
			size, over := r.memory.gusts[i].extra(r.memory.gusts[i].blown)
			blows, stays = blows || !over, stays || size > 0
		}
	}
	strain.Room = max(0, room)
	if h.Killer == nil {
		h.machine.say(h.parties[p].Address, protocol.Message{Kind: protocol.Pressure, Body: strain})
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

// trend is the growth in a second as a sensor has it: a moving average over some two seconds, so that a process that starts is no trend.
func (h *hosts) trend(before, more quantity.Amount) quantity.Amount {
	beats := max(1, int64(2*time.Second/h.Beat))
	now := quantity.Amount(int64(more) * int64(time.Second) / int64(h.Beat))
	return before + (now-before)/quantity.Amount(beats)
}
