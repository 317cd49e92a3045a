package gate

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/protocol"
)

// inventory is the slices of every node that has reported, and how many there are of each kind: what a submission is judged
// against, whatever the number of slices.
type inventory struct {
	nodes map[string][]protocol.Slice
	kinds atomizer.Kinds
}

// report replaces what is known of a node.
func (v *inventory) report(node string, all []protocol.Slice) {
	for i := range v.nodes[node] {
		v.kinds.Remove(&v.nodes[node][i])
	}
	for i := range all {
		v.kinds.Add(&all[i])
	}
	v.nodes[node] = all
}
