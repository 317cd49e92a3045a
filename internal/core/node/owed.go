package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// let is what subjobs that were ended have let go of since the last word, of all nodes of the machine.
func (n *Node) let(s *protocol.Strain) (all quantity.Amount) {
	last := n.memory.strain
	if last == nil {
		return 0
	}
	for i := range last.Uses {
		before, has := &last.Uses[i], quantity.Amount(0)
		if k := slices.IndexFunc(s.Uses, func(u protocol.Use) bool { return u.Token == before.Token }); k >= 0 {
			has = s.Uses[k].Resident
		}
		if l := n.lease(before.Token); l != nil && l.stand.reclaimed {
			all += max(0, before.Resident-has)
		}
	}
	for i := range last.Others {
		before, has, ended := &last.Others[i], quantity.Amount(0), airlock.State(last.Others[i].State) == airlock.Reclaiming
		if k := slices.IndexFunc(s.Others, func(o protocol.Neighbour) bool { return o.Token == before.Token }); k >= 0 {
			has, ended = s.Others[k].Resident, airlock.State(s.Others[k].State) == airlock.Reclaiming
		}
		if ended {
			all += max(0, before.Resident-has)
		}
	}
	return all
}
