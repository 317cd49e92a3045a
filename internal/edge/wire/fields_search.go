package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

func errandFields(c *coder.Coder, e *protocol.Errand) {
	ticketFields(c, &e.Ticket)
	coder.Unsigned(c, 25, &e.Generation)
	coder.Signed(c, 26, &e.Least)
	coder.Signed(c, 27, &e.Most)
}

func ticketFields(c *coder.Coder, t *flow.Ticket) {
	coder.Unsigned(c, 1, &t.ID)
	coder.Signed(c, 2, &t.Demand)
	coder.Instant(c, 3, &t.Deadline)
	coder.Instant(c, 4, &t.Born)
	coder.Instant(c, 5, &t.Since)
	coder.Instant(c, 6, &t.Next)
	coder.Unsigned(c, 7, &t.Visited)
	coder.Unsigned(c, 8, &t.Epoch)
	coder.Unsigned(c, 9, &t.Home)
	coder.Unsigned(c, 10, &t.Zone)
	coder.Unsigned(c, 11, &t.Node)
	coder.Unsigned(c, 12, &t.Episode)
	coder.Signed(c, 13, &t.Priority)
	coder.Unsigned(c, 14, &t.Hops)
	coder.Unsigned(c, 15, &t.Here)
	coder.Unsigned(c, 16, &t.Draws)
	coder.Unsigned(c, 17, &t.Resplits)
	coder.Boolean(c, 18, &t.Crowded)
	coder.Unsigned(c, 19, &t.Churn)
	coder.Enum(c, 20, &t.Class, flow.MaxClasses-1)
	coder.Enum(c, 21, &t.Kind, flow.Lasting)
	coder.Enum(c, 22, &t.Phase, flow.Expired)
	coder.Enum(c, 23, &t.Why, flow.PastDeadline)
}

func inquiryFields(c *coder.Coder, q *protocol.Inquiry) {
	coder.Unsigned(c, 1, &q.Ticket)
	coder.Signed(c, 2, &q.Probe.Demand)
	coder.Instant(c, 3, &q.Born)
	coder.Unsigned(c, 4, &q.Epoch)
	coder.Unsigned(c, 5, &q.Home)
	coder.Signed(c, 6, &q.Priority)
	coder.Unsigned(c, 7, &q.Churn)
	coder.Enum(c, 8, &q.Class, flow.MaxClasses-1)
	coder.Unsigned(c, 9, &q.Episode)
	coder.Unsigned(c, 10, &q.Hop)
	coder.Signed(c, 11, &q.Least)
	coder.Signed(c, 12, &q.Most)
	coder.Boolean(c, 13, &q.Short)
}

func responseFields(c *coder.Coder, r *protocol.Response) {
	coder.Unsigned(c, 1, &r.Ticket)
	coder.Unsigned(c, 2, &r.Home)
	coder.Unsigned(c, 3, &r.Episode)
	coder.Unsigned(c, 4, &r.Hop)
	coder.Pointer(c, 5, &r.Place, placeFields)
	coder.Value(c, 6, &r.Room, summaryFields)
}

func placeFields(c *coder.Coder, p *protocol.Place) {
	coder.Value(c, 1, &p.Token, tokenFields)
	coder.Text(c, 2, &p.Node)
	coder.Value(c, 3, &p.Slice, sliceFields)
	coder.Instant(c, 4, &p.Start)
	coder.Instant(c, 5, &p.End)
	coder.Instant(c, 6, &p.Expiry)
}

func summaryFields(c *coder.Coder, s *flow.Summary) {
	coder.Unsigned(c, 1, &s.Version)
	coder.Unsigned(c, 2, &s.Pressure)
	coder.Boolean(c, 3, &s.Usable)
	for i := range s.Free {
		coder.Unsigned(c, protowire.Number(4+i), &s.Free[i])
	}
}

func lenderFields(c *coder.Coder, l *protocol.Lender) {
	coder.Text(c, 1, &l.Zone)
	coder.Signed(c, 2, &l.Slices)
}

func lentSliceFields(c *coder.Coder, s *protocol.LentSlice) {
	coder.Text(c, 1, &s.ID)
	coder.Text(c, 2, &s.Node)
	coder.Vector(c, 3, &s.Capacity)
}
