package wire

import (
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/protocol"
)

// What people say, and hear.

func submissionFields(c *coder, b *protocol.Submission) {
	text(c, 1, &b.Request)
	text(c, 2, &b.Digest)
	pointer(c, 3, &b.Spec, specFields)
	boolean(c, 4, &b.Replace)
}

func cancellationFields(c *coder, b *protocol.Cancellation) {
	text(c, 1, &b.Request)
	text(c, 2, &b.Text)
	instant(c, 3, &b.At)
}

func pauseFields(c *coder, b *protocol.Pause) {
	text(c, 1, &b.Request)
	boolean(c, 2, &b.Held)
}

func queueSettingFields(c *coder, b *protocol.QueueSetting) {
	text(c, 1, &b.Request)
	pointer(c, 2, &b.Queue, queueFields)
}

func requeueingFields(c *coder, b *protocol.Requeueing) {
	text(c, 1, &b.Request)
	instant(c, 2, &b.Deadline)
}

func deletionFields(c *coder, b *protocol.Deletion) {
	text(c, 1, &b.Request)
}

func drainingFields(c *coder, b *protocol.Draining) {
	text(c, 1, &b.Request)
	text(c, 2, &b.Zone)
}

func bookingFields(c *coder, b *protocol.Booking) {
	text(c, 1, &b.Request)
	unsigned(c, 2, &b.Ask)
	text(c, 3, &b.Slice)
	pointer(c, 4, &b.Reservation, reservationFields)
}

func clearanceFields(c *coder, b *protocol.Clearance) {
	text(c, 1, &b.Request)
	text(c, 2, &b.Slice)
}

func replyFields(c *coder, b *protocol.Receipt) {
	text(c, 1, &b.Request)
	boolean(c, 2, &b.Changed)
	text(c, 3, &b.Text)
	failure(c, 4, &b.Err)
	value(c, 5, &b.Verdict, verdictFields)
	list(c, 6, &b.Made, madeFields)
}

func madeFields(c *coder, m *protocol.Made) {
	unsigned(c, 1, &m.ID)
	text(c, 2, &m.Slice)
	boolean(c, 3, &m.Stood)
	list(c, 4, &m.Overlaps, reservationFields)
}

// Gate and zone, and each with the archive.

func adoptionFields(c *coder, b *protocol.Adoption) {
	unsigned(c, 1, &b.Since)
	instant(c, 2, &b.At)
	pointer(c, 3, &b.Spec, specFields)
	pointer(c, 4, &b.Queue, queueFields)
	boolean(c, 5, &b.Held)
	pointer(c, 6, &b.Record, recordFields)
}

func movingFields(c *coder, b *protocol.Moving) {
	text(c, 1, &b.Text)
}

func closingFields(c *coder, b *protocol.Closing) {
	value(c, 1, &b.Verdict, verdictFields)
	instant(c, 2, &b.At)
}

func archivalFields(c *coder, b *protocol.Archival) {
	unsigned(c, 1, &b.Count)
}

// Zone and agent.

func attendanceFields(c *coder, b *protocol.Attendance) {
	boolean(c, 1, &b.Present)
}

func proposalFields(c *coder, b *protocol.Proposal) {
	unsigned(c, 1, &b.Round)
	list(c, 2, &b.Variants, variantFields)
}

func newsFields(c *coder, b *protocol.News) {
	unsigned(c, 1, &b.Round)
	list(c, 2, &b.Notices, noticeFields)
}

// Zone and node, and the node's executor.

func askingFields(c *coder, b *protocol.Asking) {
	unsigned(c, 1, &b.Ask)
	text(c, 2, &b.Slice)
	texts(c, 3, &b.Also)
	instant(c, 4, &b.Start)
	instant(c, 5, &b.End)
	vector(c, 6, &b.Demand)
	value(c, 7, &b.Plan, planFields)
	pointer(c, 8, &b.Reservation, reservationFields)
	value(c, 9, &b.Peak, peakFields)
}

func grantFields(c *coder, b *protocol.Grant) {
	unsigned(c, 1, &b.Ask)
	text(c, 2, &b.Slice)
	texts(c, 3, &b.Also)
	instant(c, 4, &b.Start)
	instant(c, 5, &b.End)
	instant(c, 6, &b.Expiry)
}

func refusalFields(c *coder, b *protocol.Refusal) {
	unsigned(c, 1, &b.Ask)
	text(c, 2, &b.Slice)
	text(c, 3, &b.Text)
}

func workFields(c *coder, b *protocol.Work) {
	text(c, 1, &b.Slice)
	texts(c, 2, &b.Also)
	value(c, 3, &b.Range, rangeFields)
	instant(c, 4, &b.Start)
	instant(c, 5, &b.End)
	vector(c, 6, &b.Demand)
	value(c, 7, &b.Plan, planFields)
	pointer(c, 8, &b.Spec, specFields)
	value(c, 9, &b.Rank, rankFields)
	value(c, 10, &b.Peak, peakFields)
}

func holdingFields(c *coder, b *protocol.Holding) {
	text(c, 1, &b.Slice)
}

func beginningFields(c *coder, b *protocol.Beginning) {
	text(c, 1, &b.Slice)
	value(c, 2, &b.Range, rangeFields)
	instant(c, 3, &b.At)
}

func observationFields(c *coder, b *protocol.Observation) {
	text(c, 1, &b.Slice)
	signed(c, 2, &b.Progress)
	instant(c, 3, &b.At)
	vector(c, 4, &b.Demand)
	boolean(c, 5, &b.Storing)
	boolean(c, 6, &b.Remains)
	boolean(c, 7, &b.Vacant)
}

func conclusionFields(c *coder, b *protocol.Conclusion) {
	text(c, 1, &b.Slice)
	value(c, 2, &b.Range, rangeFields)
	instant(c, 3, &b.Start)
	instant(c, 4, &b.End)
	pointer(c, 5, &b.Result, resultFields)
}

func acknowledgementFields(c *coder, b *protocol.Acknowledgement) {
	value(c, 1, &b.Range, rangeFields)
}

func extensionFields(c *coder, b *protocol.Extension) {
	unsigned(c, 1, &b.Ask)
	text(c, 2, &b.Slice)
	value(c, 3, &b.Range, rangeFields)
	instant(c, 4, &b.End)
	value(c, 5, &b.Peak, peakFields)
}

func haltFields(c *coder, b *protocol.Halt) {
	text(c, 1, &b.Text)
	boolean(c, 2, &b.Unbegun)
	boolean(c, 3, &b.Now)
	boolean(c, 4, &b.Short)
}

func strainFields(c *coder, b *protocol.Strain) {
	signed(c, 1, &b.Capacity)
	signed(c, 2, &b.Used)
	signed(c, 3, &b.Growth)
	signed(c, 4, &b.Room)
	signed(c, 5, &b.Stall)
	list(c, 6, &b.Uses, useFields)
	unsigned(c, 7, &b.Watch)
	list(c, 8, &b.Others, func(c *coder, n *protocol.Neighbour) {
		useFields(c, &n.Use)
		instant(c, 6, &n.Start)
		signed(c, 7, &n.Planned)
		value(c, 8, &n.Rank, rankFields)
		unsigned(c, 9, &n.State)
		boolean(c, 10, &n.Bound)
		text(c, 11, &n.Job)
	})
}

func useFields(c *coder, u *protocol.Use) {
	value(c, 1, &u.Token, tokenFields)
	signed(c, 2, &u.Resident)
	signed(c, 3, &u.Parked)
	signed(c, 4, &u.Growth)
	value(c, 5, &u.Stand, standFields)
}

func standFields(c *coder, s *protocol.Stand) {
	enum(c, 1, &s.State, protocol.Stances-1)
	instant(c, 2, &s.Since)
	instant(c, 3, &s.Resumed)
	unsigned(c, 4, &s.Times)
}

func stillnessFields(c *coder, b *protocol.Stillness) {
	boolean(c, 1, &b.Still)
	boolean(c, 2, &b.Refused)
}

func reasonFields(c *coder, b *protocol.Reason) {
	text(c, 1, &b.Text)
}

func shiftFields(c *coder, b *protocol.Shift) {
	value(c, 1, &b.Range, rangeFields)
	instant(c, 2, &b.End)
	text(c, 3, &b.Text)
}

func settlementFields(c *coder, b *protocol.Settlement) {
	value(c, 1, &b.Range, rangeFields)
	boolean(c, 2, &b.Committed)
}

func intrusionFields(c *coder, b *protocol.Intrusion) {
	text(c, 1, &b.Slice)
	text(c, 2, &b.Text)
	boolean(c, 3, &b.Present)
	list(c, 4, &b.Holds, reservationFields)
}

func ailmentFields(c *coder, b *protocol.Ailment) {
	text(c, 1, &b.Text)
	boolean(c, 2, &b.Ails)
}

func vitalsFields(c *coder, b *protocol.Vitals) {
	texts(c, 1, &b.Slices)
	list(c, 2, &b.Errors, xidFields)
	pointer(c, 3, &b.Look, lookFields)
	text(c, 4, &b.Life)
}

func xidFields(c *coder, x *protocol.Xid) {
	unsigned(c, 1, &x.Code)
	text(c, 2, &x.On)
}

func lookFields(c *coder, l *health.Look) {
	list(c, 1, &l.States, stateFields)
	boolean(c, 2, &l.Told)
}

func stateFields(c *coder, s *health.State) {
	enum(c, 1, &s.Cause, health.Causes-1)
	text(c, 2, &s.Text)
}

func momentFields(c *coder, b *protocol.Moment) {
	instant(c, 1, &b.At)
}
