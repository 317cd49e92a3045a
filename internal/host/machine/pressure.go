package machine

import (
	"sync/atomic"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/host/nodes"
)

// pressure is the last report of this machine's memory; each node gets its part of it. A report that the nodes have not taken is replaced
// by a later one: reports would pile up while the loop is held up, and only the last is worth anything. Any goroutine may report; the loop
// passes reports to the nodes.
type pressure struct {
	names nodes.Nodes
	nodes []actor.NodeAt
	last  atomic.Pointer[protocol.Strain] // nil: the nodes have taken it
	parts []*protocol.Strain              // of the report that was taken last
}

// report notes the state of the memory. It returns whether to wake the loop: not if the nodes have yet to take the last report.
func (p *pressure) report(s *protocol.Strain) bool { return p.last.Swap(s) == nil }

// take is a node's part of the report: the first of them takes the last report for all.
func (p *pressure) take(i int) *protocol.Strain {
	if i == 0 {
		if last := p.last.Swap(nil); last != nil {
			p.parts = p.split(last)
		}
	}
	if i < len(p.parts) {
		return p.parts[i]
	}
	return nil
}

// split is each node's part of a report: its own subjobs' memory, and what the others know of theirs. All of it is of one moment, so that
// all decide on the same.
func (p *pressure) split(s *protocol.Strain) []*protocol.Strain {
	if len(p.nodes) == 1 {
		return []*protocol.Strain{s}
	}
	parts := make([]*protocol.Strain, len(p.nodes))
	for i := range parts {
		own := *s
		own.Uses = nil
		for _, u := range s.Uses {
			if p.names.OfToken(u.Token) == i {
				own.Uses = append(own.Uses, u)
			}
		}
		parts[i] = &own
	}
	for i := range parts {
		n, ok := p.nodes[i].Node.(actor.Neighbourly)
		if !ok {
			continue
		}
		all := n.Neighbours(parts[i].Uses)
		for j := range parts {
			if j != i {
				parts[j].Others = append(parts[j].Others, all...)
			}
		}
	}
	return parts
}
