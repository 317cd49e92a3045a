package wire

import (
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// Bodies that several kinds have, and parts of bodies. A body of one kind alone is in the table of bodies.

func bookingFields(c *coder.Coder, b *protocol.Booking) {
	coder.Text(c, 1, &b.Request)
	coder.Unsigned(c, 2, &b.Ask)
	coder.Text(c, 3, &b.Slice)
	coder.Pointer(c, 4, &b.Reservation, reservationFields)
}

func madeFields(c *coder.Coder, m *protocol.Made) {
	coder.Unsigned(c, 1, &m.ID)
	coder.Text(c, 2, &m.Slice)
	coder.Boolean(c, 3, &m.Stood)
	coder.List(c, 4, &m.Overlaps, reservationFields)
}

func refusalFields(c *coder.Coder, b *protocol.Refusal) {
	coder.Unsigned(c, 1, &b.Ask)
	coder.Text(c, 2, &b.Slice)
	coder.Text(c, 3, &b.Text)
	coder.Boolean(c, 4, &b.Ends)
}

func workFields(c *coder.Coder, b *protocol.Work) {
	coder.Text(c, 1, &b.Slice)
	coder.Texts(c, 2, &b.Also)
	coder.Value(c, 3, &b.Range, rangeFields)
	coder.Instant(c, 4, &b.Start)
	coder.Instant(c, 5, &b.End)
	coder.Vector(c, 6, &b.Demand)
	coder.Value(c, 7, &b.Plan, planFields)
	coder.Pointer(c, 8, &b.Spec, specFields)
	coder.Value(c, 9, &b.Rank, rankFields)
	coder.Value(c, 10, &b.Peak, peakFields)
}

func beginningFields(c *coder.Coder, b *protocol.Beginning) {
	coder.Text(c, 1, &b.Slice)
	coder.Value(c, 2, &b.Range, rangeFields)
	coder.Instant(c, 3, &b.At)
}

func conclusionFields(c *coder.Coder, b *protocol.Conclusion) {
	coder.Text(c, 1, &b.Slice)
	coder.Value(c, 2, &b.Range, rangeFields)
	coder.Instant(c, 3, &b.Start)
	coder.Instant(c, 4, &b.End)
	coder.Pointer(c, 5, &b.Result, resultFields)
	coder.Pointer(c, 6, &b.Resident, residentFields)
}

func residentFields(c *coder.Coder, r *protocol.Resident) {
	coder.Unsigned(c, 1, &r.Number)
	coder.Signed(c, 2, &r.Memory)
	coder.Instant(c, 3, &r.Since)
}

func extensionFields(c *coder.Coder, b *protocol.Extension) {
	coder.Unsigned(c, 1, &b.Ask)
	coder.Text(c, 2, &b.Slice)
	coder.Value(c, 3, &b.Range, rangeFields)
	coder.Instant(c, 4, &b.End)
	coder.Value(c, 5, &b.Peak, peakFields)
}

func useFields(c *coder.Coder, u *protocol.Use) {
	coder.Value(c, 1, &u.Token, tokenFields)
	coder.Signed(c, 2, &u.Resident)
	coder.Signed(c, 3, &u.Parked)
	coder.Signed(c, 4, &u.Growth)
	coder.Value(c, 5, &u.Stand, standFields)
}

func standFields(c *coder.Coder, s *protocol.Stand) {
	coder.Enum(c, 1, &s.State, protocol.Stances-1)
	coder.Instant(c, 2, &s.Since)
	coder.Instant(c, 3, &s.Resumed)
	coder.Unsigned(c, 4, &s.Times)
}

func reasonFields(c *coder.Coder, b *protocol.Reason) {
	coder.Text(c, 1, &b.Text)
}

func xidFields(c *coder.Coder, x *protocol.Xid) {
	coder.Unsigned(c, 1, &x.Code)
	coder.Text(c, 2, &x.On)
}

func lookFields(c *coder.Coder, l *health.Look) {
	coder.List(c, 1, &l.States, stateFields)
	coder.Boolean(c, 2, &l.Told)
}

func stateFields(c *coder.Coder, s *health.State) {
	coder.Enum(c, 1, &s.Cause, health.Causes-1)
	coder.Text(c, 2, &s.Text)
}
