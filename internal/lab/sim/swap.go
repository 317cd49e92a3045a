package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Swap, as every kernel does it, whatever else acts. Where the memory ends it moves out what is too much, of all processes alike, as fast
// as it can; whose growth is faster waits for that. A quarter of a process is cold and isn't missed (TMO, ASPLOS 2022, saved 20 to 32% of
// memory so); of the rest a running process takes up again what it can, and stalls for as long as bringing all of it in would take,
// since it touches its memory once a second.

// cold is the part of a process that it does not miss, in parts per thousand.
const cold = 250

// swap moves memory of a host out and in for a beat, and returns what is missing where neither memory nor swap has room.
func (h *hosts) swap(host *hostState, runs []*run) (short quantity.Amount) {
	room, pace := h.Room, quantity.Amount(quantity.MulDiv(int64(h.Pace), int64(h.Beat), int64(time.Second)))
	for _, r := range runs {
		r.memory.parked, r.memory.held, r.memory.wait = min(r.memory.parked, h.wants(r)), 0, 0
		room -= r.memory.parked
	}
	for _, r := range runs { // its node has moved out what is suspended
		if r.memory.since != 0 && h.Killer == nil {
			moved := max(0, min(room, pace, h.has(r)))
			r.memory.parked, room, pace = r.memory.parked+moved, room-moved, pace-moved
		}
	}
	over := h.used(host, runs) - h.Capacity
	out := max(0, min(over, room, pace))
	host.scanned = out > 0
	h.alike(runs, out, h.has, func(r *run, part quantity.Amount) { r.memory.parked += part })
	room, pace, over = room-out, pace-out, over-out
	switch {
	case over > 0 && room > 0:
		h.alike(runs, over, h.blown, func(r *run, part quantity.Amount) { r.memory.held, r.memory.wait = min(part, h.has(r)), 1000 })
	case over > 0:
		short = over
	}
	h.bringIn(runs, min(pace, -over))
	h.tally(host, runs)
	return short
}

// blown is how much storms have made of a run that runs.
func (h *hosts) blown(r *run) (size quantity.Amount) {
	if r.memory.since == 0 {
		for i := range r.memory.gusts {
			size += r.memory.gusts[i].size()
		}
	}
	return size
}

// bringIn brings in memory that running processes miss, at most most.
func (h *hosts) bringIn(runs []*run, most quantity.Amount) {
	missed := func(r *run) quantity.Amount {
		if r.memory.since != 0 {
			return 0
		}
		if h.Hot {
			return r.memory.parked
		}
		return max(0, r.memory.parked-quantity.Amount(quantity.MulDiv(int64(h.wants(r)), cold, 1000)))
	}
	all := quantity.Amount(0)
	for _, r := range runs {
		all += missed(r)
	}
	for _, r := range runs {
		if missed(r) > 0 {
			r.memory.wait = max(r.memory.wait, quantity.MulDiv(1000, int64(all), int64(all+max(1, h.Pace))))
		}
	}
	h.alike(runs, max(0, min(all, most)), missed, func(r *run, part quantity.Amount) { r.memory.parked -= part })
}

// alike shares an amount among runs in proportion to a size.
func (h *hosts) alike(runs []*run, amount quantity.Amount, size func(*run) quantity.Amount, give func(*run, quantity.Amount)) {
	sizes, all := make([]quantity.Amount, len(runs)), quantity.Amount(0)
	for i, r := range runs {
		sizes[i] = size(r)
		all += sizes[i]
	}
	if all == 0 || amount == 0 {
		return
	}
	for i, r := range runs {
		if part := quantity.Amount(quantity.MulDiv(int64(amount), int64(sizes[i]), int64(all))); part > 0 {
			give(r, part)
		}
	}
}

// tally counts who stalled in a beat, and sets back what they do.
func (h *hosts) tally(host *hostState, runs []*run) {
	all, running := int64(1000), false
	for _, r := range runs {
		if r.memory.since != 0 {
			h.tallied.Stalled += h.Beat * time.Duration(len(r.places))
			continue
		}
		running, all = true, min(all, r.memory.wait)
		if d := r.memory.waits(h.Beat); d > 0 {
			h.tallied.Stalled += d * time.Duration(len(r.places))
			r.later(h.now.Add(-d), d)
			h.machine.arm(r)
		}
	}
	if !running {
		all = 0
	}
	host.pressure += (all*1000 - host.pressure) * int64(h.Beat) / int64(10*time.Second)
}
