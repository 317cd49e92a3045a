package authority

import (
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// Started notes a start of a machine's daemon, which knows those before it back to one that was noted. A machine that does not know the
// last one has data of an older copy, or two run with copies of the same: its node would give numbers to subjobs that others have. Errors:
// Denied (that, or it was removed).
func (a *Authority) Started(name job.NodeID, start string, before []string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.members.present(name)
	if i < 0 {
		return RemovedError(name)
	}
	switch was := a.members.Machines[i].Start; {
	case was == start:
		return nil
	case was != "" && !slices.Contains(before, was):
		return errkind.Errorf(errkind.Denied, "machine %s starts with an older copy of its data, or a second time elsewhere: what it ran "+
			"since then is unknown there; run sluice nodes remove %s at the head, and let it join again by a new token, with an empty "+
			"directory", name, name)
	}
	return a.change(func(m *members) error {
		m.Machines[i].Start = start
		return nil
	})
}

// Start is the last one of a machine's daemon that was noted; empty: none was.
func (a *Authority) Start(name job.NodeID) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.members.present(name); i >= 0 {
		return a.members.Machines[i].Start
	}
	return ""
}
