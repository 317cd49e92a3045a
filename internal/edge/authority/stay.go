package authority

import (
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/job"
)

// SetStay notes how long a machine belongs to the cluster from now on. Errors: Denied (it was removed).
func (a *Authority) SetStay(name job.NodeID, s departure.Stay) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.members.present(name)
	if i < 0 {
		return RemovedError(name)
	}
	if a.members.Machines[i].Stay() == s {
		return nil
	}
	return a.change(func(m *members) error {
		m.Machines[i].Ephemeral, m.Machines[i].Until = s.Ephemeral, time.Time{}
		if s.Until != 0 {
			m.Machines[i].Until = s.Until.Time()
		}
		return nil
	})
}

// Stay is how long a machine belongs to the cluster; of one that has not joined the zero value.
func (a *Authority) Stay(name job.NodeID) (s departure.Stay) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.members.present(name); i >= 0 {
		s = a.members.Machines[i].Stay()
	}
	return s
}
