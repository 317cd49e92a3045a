package workload

import (
	"math"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Peak is what the job truly uses at most while it runs phase p (from 0) for the attempt-th time: a draw from the normal
// distribution of that phase, at least 0, which is a function of the seed, the phase and the attempt alone. A driver
// counts attempts of a job, so that a run that was stopped draws anew.
func (m *Memory) Peak(p int, attempt int64) quantity.Amount {
	ph := &m.Phases[p]
	if ph.SD == 0 {
		return ph.Mean
	}
	s := prng.New(m.Seed, uint64(p), uint64(attempt))
	return max(0, ph.Mean+quantity.Amount(math.Round(float64(ph.SD)*s.Normal())))
}

// Run is what becomes of a run of units [from, to) on a slice of this capacity: the peak of its use, and how far it came.
// A phase reaches its peak with its first unit, for the iterations of a program repeat: a run whose draw for a phase
// passes the capacity ends where that phase begins, and reached < to. A phase entered in the middle draws like a whole
// one. An empty run uses nothing.
func (m *Memory) Run(from, to, attempt int64, capacity quantity.Amount) (peak quantity.Amount, reached int64) {
	start := int64(0)
	for p := range m.Phases {
		end := m.Phases[p].UpTo
		if start >= to {
			break
		}
		if end > from && from < to {
			peak = max(peak, m.Peak(p, attempt))
			if peak > capacity {
				return peak, max(from, start)
			}
		}
		start = end
	}
	return peak, to
}
