package oom

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// oomd is systemd-oomd with its defaults (oomd.conf(5), systemd-oomd.service(8); src/oom/oomd-manager.h for the periods), told to watch
// the cgroup that all subjobs are in for both: ManagedOOMSwap=kill and ManagedOOMMemoryPressure=kill.
//   - Swap, looked at every 150 ms: where more than 90% of memory and of swap are used, the cgroup with most swap, if that is more than 5%
//     of it.
//   - Pressure, looked at every second: where "full" over ten seconds has been above 60% for 30 s, and something was reclaimed within 30
//     s, the cgroup with
//     most pages scanned, then with most memory; and then nobody for 15 s. The kernel scans cgroups in proportion to their size, so that
//     is the largest.
//
// Killed are all processes of a cgroup, with SIGKILL.
type oomd struct {
	swap, pressure every
	// above is since when the pressure is above its limit; 0: it isn't. scanned and acted are when something was last reclaimed, and ended
	// for pressure.
	above, scanned, acted quantity.Instant
}

const (
	oomdSwapPeriod     = 150 * time.Millisecond
	oomdPressurePeriod = time.Second
	oomdLasting        = 30 * time.Second
	oomdDelay          = 15 * time.Second
	oomdPressure       = 600
)

// Look implements Killer.
func (o *oomd) Look(now quantity.Instant, h *Host) (kills []Kill) {
	if h.Scanned {
		o.scanned = now
	}
	if o.swap.due(now, oomdSwapPeriod) && h.Available < share(h.Capacity, 100) && h.SwapFree < share(h.Swap, 100) {
		i := most(h, func(p *Process) bool { return p.Swapped > share(h.Swap, 50) },
			func(a, b *Process) int { return cmp.Compare(a.Swapped, b.Swapped) })
		if i >= 0 {
			kills = append(kills, Kill{Process: i})
		}
	}
	if !o.pressure.due(now, oomdPressurePeriod) {
		return kills
	}
	switch {
	case h.Pressure <= oomdPressure:
		o.above = 0
	case o.above == 0:
		o.above = now
	}
	if o.above == 0 || now.Sub(o.above) < oomdLasting || o.scanned == 0 || now.Sub(o.scanned) > oomdLasting || o.acted != 0 &&
		now.Sub(o.acted) < oomdDelay {
		return kills
	}
	if i := most(h, anybody, larger); i >= 0 {
		o.acted = now
		kills = append(kills, Kill{Process: i})
	}
	return kills
}

// Badness implements Killer.
func (*oomd) Badness(_ *Host, p *Process) int64 { return int64(p.size()) }
