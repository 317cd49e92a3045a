package observe

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/status"
)

// TestMemory: gauges are what holds now, counters grow by what has come, and one state is the machine's at a time.
func TestMemory(t *testing.T) {
	o := New(Options{})
	expect(t, scrape(t, o), `sluice_airlock_state{state="off"} 1`, `sluice_airlock_state{state="calm"} 0`, `sluice_memory_used_bytes 0`,
		`sluice_airlock_subjobs_total{outcome="suspended"} 0`)
	guard := status.Guard{Level: "full", Kind: "cgroup"}
	o.Strained(guard, status.Strain{Old: true, MemoryReading: status.MemoryReading{Level: "calm"}})
	expect(t, scrape(t, o), `sluice_airlock_state{state="off"} 0`, `sluice_airlock_state{state="silent"} 1`)
	s := status.Strain{
		MemoryReading: status.MemoryReading{Level: "severe", Used: 930, Capacity: 1000, Growth: 5, Stall: 250}, Calm: 850, Severe: 920,
		Emergency: 970, Room: 40, Parked: 7,
		Standing: 2, Suspended: 3, Recovered: 1, Readdressed: 1, Reclaimed: 1, Killed: 1, Decisions: 4, Stood: 2500 * time.Millisecond,
		OverLine: time.Second,
	}
	for range 3 { // being told again changes nothing
		o.Strained(guard, s)
	}
	s.Suspended, s.Standing, s.Stood = 5, 1, 4*time.Second
	o.Strained(guard, s)
	expect(t, scrape(t, o),
		`sluice_airlock_state{state="severe"} 1`,
		`sluice_airlock_state{state="silent"} 0`,
		`sluice_memory_capacity_bytes 1000`,
		`sluice_memory_used_bytes 930`,
		`sluice_memory_growth_bytes_per_second 5`,
		`sluice_memory_stalled_ratio 0.25`,
		`sluice_memory_swap_free_bytes 40`,
		`sluice_memory_swapped_bytes 7`,
		`sluice_memory_line_bytes{line="calm"} 850`,
		`sluice_memory_line_bytes{line="severe"} 920`,
		`sluice_memory_line_bytes{line="emergency"} 970`,
		`sluice_airlock_suspended_subjobs 1`,
		`sluice_airlock_subjobs_total{outcome="suspended"} 5`,
		`sluice_airlock_subjobs_total{outcome="recovered"} 1`,
		`sluice_airlock_subjobs_total{outcome="readdressed"} 1`,
		`sluice_airlock_subjobs_total{outcome="reclaimed"} 1`,
		`sluice_airlock_subjobs_total{outcome="killed"} 1`,
		`sluice_airlock_decisions_total 4`,
		`sluice_airlock_suspended_seconds_total 4`,
		`sluice_airlock_over_line_seconds_total 1`)
}
