package sim

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/drive/workload"
)

// peak draws the true peak of one phase in one run of a job: normal with the phase's mean and deviation, never below 0. It
// is the same whenever it is asked.
func peak(m *workload.Memory, phase int, attempt uint64) quantity.Amount {
	ph := &m.Phases[phase]
	if ph.SD == 0 {
		return ph.Mean
	}
	draw := prng.New(m.Seed, forPeak, uint64(phase), attempt)
	return max(0, ph.Mean+quantity.Amount(draw.Normal()*float64(ph.SD)))
}

// outgrows is the unit, not before from, with which a run enters the first phase whose peak passes the capacity; false if
// it enters none.
func outgrows(m *workload.Memory, from int64, attempt uint64, capacity quantity.Amount) (int64, bool) {
	begins := int64(0)
	for i := range m.Phases {
		if m.Phases[i].UpTo > from && peak(m, i, attempt) > capacity {
			return max(from, begins), true
		}
		begins = m.Phases[i].UpTo
	}
	return 0, false
}

// highest is the true peak of a run over the phases that it entered: those of the units from one to another, that one
// included.
func highest(m *workload.Memory, from, to int64, attempt uint64) (most quantity.Amount) {
	begins := int64(0)
	for i := range m.Phases {
		if m.Phases[i].UpTo > from && begins <= to {
			most = max(most, peak(m, i, attempt))
		}
		begins = m.Phases[i].UpTo
	}
	return most
}
