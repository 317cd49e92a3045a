package wire

import (
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// What people say, and hear.

func submissionFields(c *coder.Coder, b *protocol.Submission) {
	coder.Text(c, 1, &b.Request)
	coder.Text(c, 2, &b.Digest)
	coder.Pointer(c, 3, &b.Spec, specFields)
	coder.Boolean(c, 4, &b.Replace)
}

func cancellationFields(c *coder.Coder, b *protocol.Cancellation) {
	coder.Text(c, 1, &b.Request)
	coder.Text(c, 2, &b.Text)
	coder.Instant(c, 3, &b.At)
}

func pauseFields(c *coder.Coder, b *protocol.Pause) {
	coder.Text(c, 1, &b.Request)
	coder.Boolean(c, 2, &b.Held)
}

func queueSettingFields(c *coder.Coder, b *protocol.QueueSetting) {
	coder.Text(c, 1, &b.Request)
	coder.Pointer(c, 2, &b.Queue, queueFields)
}

func requeueingFields(c *coder.Coder, b *protocol.Requeueing) {
	coder.Text(c, 1, &b.Request)
	coder.Instant(c, 2, &b.Deadline)
}

func deletionFields(c *coder.Coder, b *protocol.Deletion) {
	coder.Text(c, 1, &b.Request)
}

func drainingFields(c *coder.Coder, b *protocol.Draining) {
	coder.Text(c, 1, &b.Request)
	coder.Text(c, 2, &b.Zone)
}

func bookingFields(c *coder.Coder, b *protocol.Booking) {
	coder.Text(c, 1, &b.Request)
	coder.Unsigned(c, 2, &b.Ask)
	coder.Text(c, 3, &b.Slice)
	coder.Pointer(c, 4, &b.Reservation, reservationFields)
}

func clearanceFields(c *coder.Coder, b *protocol.Clearance) {
	coder.Text(c, 1, &b.Request)
	coder.Text(c, 2, &b.Slice)
}

func replyFields(c *coder.Coder, b *protocol.Receipt) {
	coder.Text(c, 1, &b.Request)
	coder.Boolean(c, 2, &b.Changed)
	coder.Text(c, 3, &b.Text)
	coder.Failure(c, 4, &b.Err)
	coder.Value(c, 5, &b.Verdict, verdictFields)
	coder.List(c, 6, &b.Made, madeFields)
}

func madeFields(c *coder.Coder, m *protocol.Made) {
	coder.Unsigned(c, 1, &m.ID)
	coder.Text(c, 2, &m.Slice)
	coder.Boolean(c, 3, &m.Stood)
	coder.List(c, 4, &m.Overlaps, reservationFields)
}

// Gate and zone, and each with the archive.

func adoptionFields(c *coder.Coder, b *protocol.Adoption) {
	coder.Unsigned(c, 1, &b.Since)
	coder.Instant(c, 2, &b.At)
	coder.Pointer(c, 3, &b.Spec, specFields)
	coder.Pointer(c, 4, &b.Queue, queueFields)
	coder.Boolean(c, 5, &b.Held)
	coder.Pointer(c, 6, &b.Record, recordFields)
}

func movingFields(c *coder.Coder, b *protocol.Moving) {
	coder.Text(c, 1, &b.Text)
}

func closingFields(c *coder.Coder, b *protocol.Closing) {
	coder.Value(c, 1, &b.Verdict, verdictFields)
	coder.Instant(c, 2, &b.At)
}

func archivalFields(c *coder.Coder, b *protocol.Archival) {
	coder.Unsigned(c, 1, &b.Count)
}

// Zone and agent.

func attendanceFields(c *coder.Coder, b *protocol.Attendance) {
	coder.Boolean(c, 1, &b.Present)
}

func proposalFields(c *coder.Coder, b *protocol.Proposal) {
	coder.Unsigned(c, 1, &b.Round)
	coder.List(c, 2, &b.Variants, variantFields)
}

func newsFields(c *coder.Coder, b *protocol.News) {
	coder.Unsigned(c, 1, &b.Round)
	coder.List(c, 2, &b.Notices, noticeFields)
}

// Zone and node, and the node's executor.

func askingFields(c *coder.Coder, b *protocol.Asking) {
	coder.Unsigned(c, 1, &b.Ask)
	coder.Text(c, 2, &b.Slice)
	coder.Texts(c, 3, &b.Also)
	coder.Instant(c, 4, &b.Start)
	coder.Instant(c, 5, &b.End)
	coder.Vector(c, 6, &b.Demand)
	coder.Value(c, 7, &b.Plan, planFields)
	coder.Pointer(c, 8, &b.Reservation, reservationFields)
	coder.Value(c, 9, &b.Peak, peakFields)
}

func grantFields(c *coder.Coder, b *protocol.Grant) {
	coder.Unsigned(c, 1, &b.Ask)
	coder.Text(c, 2, &b.Slice)
	coder.Texts(c, 3, &b.Also)
	coder.Instant(c, 4, &b.Start)
	coder.Instant(c, 5, &b.End)
	coder.Instant(c, 6, &b.Expiry)
}

func refusalFields(c *coder.Coder, b *protocol.Refusal) {
	coder.Unsigned(c, 1, &b.Ask)
	coder.Text(c, 2, &b.Slice)
	coder.Text(c, 3, &b.Text)
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

func holdingFields(c *coder.Coder, b *protocol.Holding) {
	coder.Text(c, 1, &b.Slice)
}

func beginningFields(c *coder.Coder, b *protocol.Beginning) {
	coder.Text(c, 1, &b.Slice)
	coder.Value(c, 2, &b.Range, rangeFields)
	coder.Instant(c, 3, &b.At)
}

func observationFields(c *coder.Coder, b *protocol.Observation) {
	coder.Text(c, 1, &b.Slice)
	coder.Signed(c, 2, &b.Progress)
	coder.Instant(c, 3, &b.At)
	coder.Vector(c, 4, &b.Demand)
	coder.Boolean(c, 5, &b.Storing)
	coder.Boolean(c, 6, &b.Remains)
	coder.Boolean(c, 7, &b.Vacant)
}

func conclusionFields(c *coder.Coder, b *protocol.Conclusion) {
	coder.Text(c, 1, &b.Slice)
	coder.Value(c, 2, &b.Range, rangeFields)
	coder.Instant(c, 3, &b.Start)
	coder.Instant(c, 4, &b.End)
	coder.Pointer(c, 5, &b.Result, resultFields)
}

func acknowledgementFields(c *coder.Coder, b *protocol.Acknowledgement) {
	coder.Value(c, 1, &b.Range, rangeFields)
}

func extensionFields(c *coder.Coder, b *protocol.Extension) {
	coder.Unsigned(c, 1, &b.Ask)
	coder.Text(c, 2, &b.Slice)
	coder.Value(c, 3, &b.Range, rangeFields)
	coder.Instant(c, 4, &b.End)
	coder.Value(c, 5, &b.Peak, peakFields)
}

func haltFields(c *coder.Coder, b *protocol.Halt) {
	coder.Text(c, 1, &b.Text)
	coder.Boolean(c, 2, &b.Unbegun)
	coder.Boolean(c, 3, &b.Now)
	coder.Boolean(c, 4, &b.Short)
}

func strainFields(c *coder.Coder, b *protocol.Strain) {
	coder.Signed(c, 1, &b.Capacity)
	coder.Signed(c, 2, &b.Used)
	coder.Signed(c, 3, &b.Growth)
	coder.Signed(c, 4, &b.Room)
	coder.Signed(c, 5, &b.Stall)
	coder.List(c, 6, &b.Uses, useFields)
	coder.Unsigned(c, 7, &b.Watch)
	coder.List(c, 8, &b.Others, func(c *coder.Coder, n *protocol.Neighbour) {
		useFields(c, &n.Use)
		coder.Instant(c, 6, &n.Start)
		coder.Signed(c, 7, &n.Planned)
		coder.Value(c, 8, &n.Rank, rankFields)
		coder.Unsigned(c, 9, &n.State)
		coder.Boolean(c, 10, &n.Bound)
		coder.Text(c, 11, &n.Job)
	})
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

func stillnessFields(c *coder.Coder, b *protocol.Stillness) {
	coder.Boolean(c, 1, &b.Still)
	coder.Boolean(c, 2, &b.Refused)
}

func reasonFields(c *coder.Coder, b *protocol.Reason) {
	coder.Text(c, 1, &b.Text)
}

func shiftFields(c *coder.Coder, b *protocol.Shift) {
	coder.Value(c, 1, &b.Range, rangeFields)
	coder.Instant(c, 2, &b.End)
	coder.Text(c, 3, &b.Text)
}

func settlementFields(c *coder.Coder, b *protocol.Settlement) {
	coder.Value(c, 1, &b.Range, rangeFields)
	coder.Boolean(c, 2, &b.Committed)
}

func intrusionFields(c *coder.Coder, b *protocol.Intrusion) {
	coder.Text(c, 1, &b.Slice)
	coder.Text(c, 2, &b.Text)
	coder.Boolean(c, 3, &b.Present)
	coder.List(c, 4, &b.Holds, reservationFields)
}

func ailmentFields(c *coder.Coder, b *protocol.Ailment) {
	coder.Text(c, 1, &b.Text)
	coder.Boolean(c, 2, &b.Ails)
}

func vitalsFields(c *coder.Coder, b *protocol.Vitals) {
	coder.Texts(c, 1, &b.Slices)
	coder.List(c, 2, &b.Errors, xidFields)
	coder.Pointer(c, 3, &b.Look, lookFields)
	coder.Text(c, 4, &b.Life)
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

func momentFields(c *coder.Coder, b *protocol.Moment) {
	coder.Instant(c, 1, &b.At)
}
