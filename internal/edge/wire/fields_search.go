package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/protocol"
)

func errandFields(c *coder, e *protocol.Errand) {
	ticketFields(c, &e.Ticket)
	unsigned(c, 25, &e.Generation)
	signed(c, 26, &e.Least)
	signed(c, 27, &e.Most)
}

func ticketFields(c *coder, t *flow.Ticket) {
	unsigned(c, 1, &t.ID)
	signed(c, 2, &t.Demand)
	instant(c, 3, &t.Deadline)
	instant(c, 4, &t.Born)
	instant(c, 5, &t.Since)
	instant(c, 6, &t.Next)
	unsigned(c, 7, &t.Visited)
	unsigned(c, 8, &t.Epoch)
	unsigned(c, 9, &t.Home)
	unsigned(c, 10, &t.Zone)
	unsigned(c, 11, &t.Node)
	unsigned(c, 12, &t.Episode)
	signed(c, 13, &t.Priority)
	unsigned(c, 14, &t.Hops)
	unsigned(c, 15, &t.Here)
	unsigned(c, 16, &t.Draws)
	unsigned(c, 17, &t.Resplits)
	boolean(c, 18, &t.Crowded)
	unsigned(c, 19, &t.Churn)
	enum(c, 20, &t.Class, flow.MaxClasses-1)
	enum(c, 21, &t.Kind, flow.Lasting)
	enum(c, 22, &t.Phase, flow.Expired)
	enum(c, 23, &t.Why, flow.PastDeadline)
}

func inquiryFields(c *coder, q *protocol.Inquiry) {
	unsigned(c, 1, &q.Ticket)
	signed(c, 2, &q.Probe.Demand)
	instant(c, 3, &q.Born)
	unsigned(c, 4, &q.Epoch)
	unsigned(c, 5, &q.Home)
	signed(c, 6, &q.Priority)
	unsigned(c, 7, &q.Churn)
	enum(c, 8, &q.Class, flow.MaxClasses-1)
	unsigned(c, 9, &q.Episode)
	unsigned(c, 10, &q.Hop)
	signed(c, 11, &q.Least)
	signed(c, 12, &q.Most)
	boolean(c, 13, &q.Short)
}

func responseFields(c *coder, r *protocol.Response) {
	unsigned(c, 1, &r.Ticket)
	unsigned(c, 2, &r.Home)
	unsigned(c, 3, &r.Episode)
	unsigned(c, 4, &r.Hop)
	pointer(c, 5, &r.Place, placeFields)
	value(c, 6, &r.Room, summaryFields)
}

func placeFields(c *coder, p *protocol.Place) {
	value(c, 1, &p.Token, tokenFields)
	text(c, 2, &p.Node)
	value(c, 3, &p.Slice, sliceFields)
	instant(c, 4, &p.Start)
	instant(c, 5, &p.End)
	instant(c, 6, &p.Expiry)
}

func findingFields(c *coder, f *protocol.Finding) {
	errandFields(c, &f.Errand)
	value(c, 28, &f.Place, placeFields)
}

func summaryFields(c *coder, s *flow.Summary) {
	unsigned(c, 1, &s.Version)
	unsigned(c, 2, &s.Pressure)
	boolean(c, 3, &s.Usable)
	for i := range s.Free {
		unsigned(c, protowire.Number(4+i), &s.Free[i])
	}
}

func digestFields(c *coder, d *flow.Digest) {
	unsigned(c, 1, &d.Zone)
	boolean(c, 2, &d.Alive)
	unsigned(c, 3, &d.Pressure)
	unsigned(c, 4, &d.Version)
	instant(c, 5, &d.At)
	for i := range d.Free {
		unsigned(c, protowire.Number(6+i), &d.Free[i])
	}
	for i := range d.Demand {
		unsigned(c, protowire.Number(6+flow.MaxClasses+i), &d.Demand[i])
	}
}
