package play

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/sim"
)

// landlord tells the nodes what the host does, in the calls that are there for people and programs: a slice is reserved as its
// owner's from when the host means to take it, and given back when the host's work is over or its plan is another. What runs there
// is cut short.
type landlord struct {
	world *sim.Sim
	// lifts is by request when its reservation is withdrawn; Never for those that end as they say.
	lifts map[string]quantity.Instant
	// refused is the first answer that says no, which is a bug of the scenario's.
	refused error
}

// tell plans all announcements of the host. A calendar is one of the scenario's own reservations.
func (l *landlord) tell(nodes []scenario.Node, log hostwork.Log) {
	number := 0
	for i := range nodes {
		for j := range nodes[i].Slices {
			for k := range log[number] {
				l.stay(nodes[i].ID, nodes[i].Slices[j].ID, k, &log[number][k])
			}
			number++
		}
	}
}

// stay plans one stay, announcement by announcement.
func (l *landlord) stay(node job.NodeID, slice job.SliceID, k int, s *hostwork.Stay) {
	if s.Calendar {
		return
	}
	for i, w := range s.Words {
		lifted := s.To // the host is gone
		if i+1 < len(s.Words) {
			lifted = s.Words[i+1].At
		}
		request := fmt.Sprintf("host %s %d %d", slice, k, i)
		if lifted < w.To {
			l.lifts[request] = lifted
		}
		r := protocol.Reservation{
			Kind: protocol.ForOwner, Slice: slice, Start: w.From.Add(epoch), End: w.To.Add(epoch), Truncate: true,
			Source: fmt.Sprintf("%s job %d", s.Source, k),
		}
		l.world.At(w.At.Add(epoch), l.call(protocol.Reserve, node, request, &r))
	}
}

func (l *landlord) call(kind protocol.Kind, node job.NodeID, request string, r *protocol.Reservation) protocol.Message {
	return protocol.Message{
		Kind: kind, From: l.address(), To: protocol.Address{Role: protocol.Node, ID: string(node)},
		Body: &protocol.Booking{Request: request, Reservation: r},
	}
}

func (l *landlord) address() protocol.Address {
	return protocol.Address{Role: protocol.Person, ID: "host"}
}

// answered handles a node's answer: the number under which a reservation is withdrawn in time.
func (l *landlord) answered(_ quantity.Instant, m *protocol.Message) {
	if m.To != l.address() {
		return
	}
	if m.Body.(*protocol.Receipt).Err != nil && l.refused == nil {
		l.refused = fmt.Errorf("the host's call %q: %w", m.Body.(*protocol.Receipt).Request, m.Body.(*protocol.Receipt).Err)
	}
	at, lifts := l.lifts[m.Body.(*protocol.Receipt).Request]
	if !lifts || len(m.Body.(*protocol.Receipt).Made) == 0 {
		return
	}
	delete(l.lifts, m.Body.(*protocol.Receipt).Request)
	r := protocol.Reservation{ID: m.Body.(*protocol.Receipt).Made[0].ID}
	l.world.At(at.Add(epoch), l.call(protocol.Unreserve, job.NodeID(m.From.ID), "lift "+m.Body.(*protocol.Receipt).Request, &r))
}

// atOnce is what a running subjob gets beyond the host's notice: nothing, for that is all the host gives.
const atOnce = time.Nanosecond
