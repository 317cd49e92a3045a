package membership

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric/stream"
)

// Machines are those of a cluster, as its head knows them.
type Machines struct {
	Authority *authority.Authority
	Links     *stream.Head
}

// Named is the machine that a number was given to (node.Config.Number); empty: none.
func (m Machines) Named(number int) job.NodeID { return m.Authority.Named(number) }

// Away is why nothing reaches a machine now; nil: its link is up. NotFound: no such machine has joined.
func (m Machines) Away(machine job.NodeID) error {
	if !m.Authority.Has(machine) {
		return errkind.Errorf(errkind.NotFound, "no machine %s has joined", machine)
	}
	l, ok := m.Links.Machine(machine)
	switch {
	case !ok:
		return errkind.Errorf(errkind.Unavailable, "it has not called since this daemon came up")
	case l.Up:
		return nil
	}
	return l.Why
}
