package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// dying is a subjob that was told to end for want of memory, at any node of the machine, with the memory it had in the last report. It is
// kept apart from its lease, which may be gone before the next report; a subjob of another node has no lease here.
type dying struct {
	token    job.Token
	resident quantity.Amount
}

// let is what subjobs that were ended, at all nodes of the machine, have released since the last report. One whose process tree is
// confirmed gone has released all, even if the report was measured before that and still lists it.
func (n *Node) let(s *protocol.Strain) (all quantity.Amount) {
	for i := range n.memory.dying {
		d, has := &n.memory.dying[i], quantity.Amount(0)
		if k := slices.IndexFunc(s.Uses, func(u protocol.Use) bool { return u.Token == d.token }); k >= 0 {
			if l := n.lease(d.token); l != nil && !l.vacated() {
				has = s.Uses[k].Resident
			}
		} else if k := slices.IndexFunc(s.Others, func(o protocol.Neighbour) bool { return o.Token == d.token }); k >= 0 {
			has = s.Others[k].Resident
		}
		all += max(0, d.resident-has)
	}
	return all
}

// dies adds a subjob that is ended to dying, once.
func (m *memory) dies(t *airlock.Task) {
	if t.Resident > 0 && !slices.ContainsFunc(m.dying, func(d dying) bool { return d.token == t.Token }) {
		m.dying = append(m.dying, dying{token: t.Token, resident: t.Resident})
	}
}

// renewDying sets dying to the subjobs that are being ended in the present table, with the memory that they have in it.
func (m *memory) renewDying() {
	m.dying = m.dying[:0]
	for i := range m.tasks {
		if t := &m.tasks[i]; t.State == airlock.Reclaiming {
			m.dies(t)
		}
	}
}
