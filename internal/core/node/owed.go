package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// dying is a subjob that was told to end for want of memory, at any node of the machine, with what it had at the last word. It is kept
// apart from its lease, which may be gone before the next word, and of another node's this one has none.
type dying struct {
	token    job.Token
	resident quantity.Amount
}

// let is what subjobs that were ended have let go of since the last word, of all nodes of the machine. Whose process tree is confirmed
// gone has let go of all, though its sensors looked before that and name it still.
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

// dies notes that a subjob is ended.
func (m *memory) dies(t *airlock.Task) {
	if t.Resident > 0 && !slices.ContainsFunc(m.dying, func(d dying) bool { return d.token == t.Token }) {
		m.dying = append(m.dying, dying{token: t.Token, resident: t.Resident})
	}
}

// dieOn keeps of those that are being ended what they have by a new word, of which the table is.
func (m *memory) dieOn() {
	m.dying = m.dying[:0]
	for i := range m.tasks {
		if t := &m.tasks[i]; t.State == airlock.Reclaiming {
			m.dies(t)
		}
	}
}
