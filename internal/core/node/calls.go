package node

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// request carries out what a person (or, for a job's place, the zone) asks, once for each request id.
func (n *Node) request(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if in.From.Role == protocol.Zone {
		n.reservations.ReservePlace(now, in, in.Body.(*protocol.Booking), out)
		return
	}
	request := in.Body.(protocol.Requested).RequestID()
	if m, given := n.answers.find(in.From, request); given {
		n.send(out, m)
		return
	}
	r := &protocol.Receipt{Request: request}
	switch in.Kind {
	case protocol.Reserve:
		r.Made, r.Err = n.reservations.Reserve(now, in.Body.(*protocol.Booking), out)
	case protocol.Unreserve:
		r.Err = n.reservations.Unreserve(in.Body.(*protocol.Booking), out)
	default:
		r.Text, r.Err = n.release(now, in.Body.(*protocol.Clearance), out)
	}
	reply := protocol.Message{Kind: protocol.Reply, To: in.From, Body: r}
	n.send(out, reply)
	if r.Err == nil {
		n.answers.keep(reply)
	}
}

// release lifts a quarantine after a person has looked.
func (n *Node) release(now quantity.Instant, c *protocol.Clearance, out *protocol.Out) (string, error) {
	s := n.inventory.Of(c.Slice)
	if c.Slice == "" || s == nil || !s.Present() && s.Condition().Healthy() {
		_, err := n.reservations.Targets(c.Slice)
		if err == nil {
			err = errkind.Errorf(errkind.Invalid, "name one slice")
		}
		return "", errkind.Errorf(errkind.Of(err), "release: %w", err)
	}
	return n.quarantine.Unquarantine(now, s, out), nil
}
