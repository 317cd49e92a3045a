package world

import "sluice.dev/sluice/internal/core/quantity"

func (w *World) beginFaults() {
	for i := range w.o.Faults.Zones {
		f := &w.o.Faults.Zones[i]
		w.events.Put(f.At, event{kind: strikes, index: int32(i)})
		w.events.Put(f.At.Add(f.For), event{kind: passes, index: int32(i)})
	}
}

// strike begins a fault. Two of a kind on one zone do not add up: the first that passes ends both.
func (w *World) strike(f *ZoneFault) {
	z := w.settle(f.Zone, w.now)
	switch {
	case f.Cut:
		z.cut = true
	case !z.dead:
		z.dead = true
		z.epoch++
		z.leftover = 0
		first := f.Zone * int32(w.c.PerZone)
		for n := first; n < first+int32(w.c.PerZone); n++ {
			for slot := range w.stride {
				if id := w.on[n*w.stride+slot]; id != 0 {
					w.tasks.leave(&w.tasks.list[id.Slot()], Lost)
				}
			}
			for slot := range int8(w.stride) {
				if w.held[n]&(1<<slot) != 0 && w.claimed(n, slot) {
					w.rigids.vacated(n, slot)
				}
			}
			w.busy[n], w.held[n], w.told[n], w.view[n] = 0, 0, 0, 0
		}
	}
}

// pass ends a fault.
func (w *World) pass(f *ZoneFault) {
	z := w.settle(f.Zone, w.now)
	switch {
	case f.Cut:
		z.cut = false
	case z.dead:
		z.dead = false
		z.leftover = w.slotsOf(f.Zone)
		w.here = w.c.ZoneAt(f.Zone)
		w.m.Reset(w.now, f.Zone)
		first := f.Zone * int32(w.c.PerZone)
		for n := first; n < first+int32(w.c.PerZone); n++ {
			w.changed(n, 0)
		}
	}
}

// settleAll brings every zone's integrals up to now.
func (w *World) settleAll(do func(*zone)) {
	for z := range w.zones {
		do(w.settle(int32(z), w.now))
	}
}

// open begins the window: what was counted of messages and use is dropped.
func (w *World) open() {
	w.measured = true
	w.settleAll(func(z *zone) { z.leftoverTime, z.usedTime = 0, 0 })
}

// close ends the window.
func (w *World) close() {
	w.measured = false
	w.counts.Zones = make([]Use, len(w.zones))
	w.settleAll(func(*zone) {})
	for i := range w.zones {
		w.counts.Zones[i] = Use{w.zones[i].leftoverTime, w.zones[i].usedTime}
	}
	w.counts.Window = w.o.Until - max(w.o.From, quantity.Instant(0))
}
