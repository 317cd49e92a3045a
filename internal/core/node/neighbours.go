package node

import (
	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/protocol"
)

// Where several nodes share a machine its memory is one, and who gives way is found among the subjobs of all: each node hears what the
// others know of theirs with the same word, decides of all of them, and carries out what is about its own. The same snapshot has the same
// victims, so they need no word with each other.

// Neighbours are this node's subjobs for the others of its machine, with what they use. It changes nothing, and may be called between any
// two steps.
func (n *Node) Neighbours(uses []protocol.Use) []protocol.Neighbour {
	n.tabulate(uses)
	list := make([]protocol.Neighbour, 0, len(n.memory.tasks))
	for i, l := range n.memory.leases {
		t := &n.memory.tasks[i]
		list = append(list, protocol.Neighbour{
			Use: protocol.Use{
				Token: t.Token, Resident: t.Resident, Parked: t.Parked, Growth: t.Growth,
				Stand: protocol.Stand{Since: t.Since, Resumed: t.Resumed, Times: t.Entries},
			},
			Job: l.job, Start: t.Start, Planned: t.Planned, Rank: l.rank, State: uint8(t.State), Bound: t.Bound,
		})
	}
	return list
}

// taskOf is a neighbour as it lies in a table.
func taskOf(o *protocol.Neighbour) airlock.Task {
	return airlock.Task{
		Token: o.Token, Start: o.Start, Planned: o.Planned, Since: o.Stand.Since, Resumed: o.Stand.Resumed, Resident: o.Resident,
		Parked: o.Parked, Growth: o.Growth,
		Priority: o.Rank.Priority, Value: o.Rank.Value, Class: classes[o.Rank.Class], State: airlock.State(o.State), Entries: o.Stand.Times,
		Bound: o.Bound, Yields: o.Rank.Yields,
	}
}
