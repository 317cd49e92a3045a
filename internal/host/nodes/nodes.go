// Package nodes names the nodes of this machine, and finds the node that a token, slice or reservation belongs to.
package nodes

import (
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
)

// Nodes are the names of the nodes by their numbers; there is at least one. Messages about an unknown node are sent to the first, which
// answers that it does not know it.
type Nodes []job.NodeID

// Address of a node.
func (n Nodes) Address(i int) protocol.Address {
	return protocol.Address{Role: protocol.Node, ID: string(n[i])}
}

// Executor is the address of a node's executor.
func (n Nodes) Executor(i int) protocol.Address {
	return protocol.Address{Role: protocol.Executor, ID: string(n[i])}
}

// OfToken is the number of the node that made a token.
func (n Nodes) OfToken(t job.Token) int { return n.numbered(node.NumberOf(t)) }

// OfReservation is the number of the node that made a reservation.
func (n Nodes) OfReservation(id uint64) int { return n.numbered(node.NumberOfReservation(id)) }

func (n Nodes) numbered(i int) int {
	if i < 0 || i >= len(n) {
		return 0
	}
	return i
}

// OfSlice returns the numbers of the nodes that may have a slice: all of them for no slice.
func (n Nodes) OfSlice(slice job.SliceID) []int {
	owner, _, _ := strings.Cut(string(slice), "/")
	var all []int
	for i, id := range n {
		if slice == "" || job.NodeID(owner) == id {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return []int{0}
	}
	return all
}

// Tell sends each node a message from its executor.
func (n Nodes) Tell(k protocol.Kind, body protocol.Body, send func(protocol.Message)) {
	for i := range n {
		send(protocol.Message{Kind: k, From: n.Executor(i), To: n.Address(i), Body: body})
	}
}
