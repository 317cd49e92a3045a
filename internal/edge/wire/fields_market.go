package wire

import (
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

func bidFields(c *coder.Coder, b *protocol.Bid) {
	coder.Signed(c, 1, &b.Score)
	coder.Signed(c, 2, &b.Calibrated)
	coder.Signed(c, 3, &b.Weight)
	coder.Signed(c, 4, &b.Left)
	coder.Signed(c, 5, &b.Urgency)
	coder.Signed(c, 6, &b.Price)
	coder.Text(c, 7, &b.Option)
	coder.Instant(c, 8, &b.Since)
}

func trustFields(c *coder.Coder, t *protocol.Trust) {
	coder.Signed(c, 1, &t.Error)
	coder.Signed(c, 2, &t.History)
	coder.Signed(c, 3, &t.Seen)
	coder.Signed(c, 4, &t.Risk)
	coder.Signed(c, 5, &t.Pace)
	coder.Signed(c, 6, &t.Runs)
	coder.Signed(c, 7, &t.Excess)
	coder.Signed(c, 8, &t.Evidence)
}

func calibrationFields(c *coder.Coder, s *protocol.Calibration) {
	coder.Text(c, 1, &s.Queue)
	coder.Value(c, 2, &s.Trust, trustFields)
	coder.Signed(c, 3, &s.Credits)
	coder.Instant(c, 4, &s.Refilled)
	coder.Signed(c, 5, &s.Archived)
}

func lessonFields(c *coder.Coder, l *protocol.Lesson) {
	coder.Text(c, 1, &l.Queue)
	coder.Text(c, 2, &l.Template)
	coder.List(c, 3, &l.Runs, func(c *coder.Coder, r *forecast.Run) {
		coder.Numbers(c, 1, &r.Peaks)
		coder.Signed(c, 2, &r.Unit)
	})
}

func advertFields(c *coder.Coder, a *protocol.Advert) {
	coder.Unsigned(c, 1, &a.Window)
	coder.Text(c, 2, &a.Slice)
	coder.Text(c, 3, &a.Profile)
	coder.Signed(c, 4, &a.Speed)
	coder.Vector(c, 5, &a.Capacity)
	coder.Instant(c, 6, &a.Start)
	coder.Instant(c, 7, &a.End)
	coder.Boolean(c, 8, &a.Open)
}

func variantFields(c *coder.Coder, v *protocol.Variant) {
	coder.Unsigned(c, 1, &v.ID)
	coder.Unsigned(c, 2, &v.Window)
	coder.Value(c, 3, &v.Range, rangeFields)
	coder.Instant(c, 4, &v.Start)
	coder.Signed(c, 5, &v.Run)
	coder.Signed(c, 6, &v.Wall)
	coder.Vector(c, 7, &v.Demand)
	coder.Text(c, 8, &v.Option)
	coder.Signed(c, 9, &v.Score)
}

func noticeFields(c *coder.Coder, n *protocol.Notice) {
	coder.Enum(c, 1, &n.Kind, protocol.Concluded)
	coder.Unsigned(c, 2, &n.Window)
	coder.Unsigned(c, 3, &n.Variant)
	coder.Text(c, 4, &n.Text)
	coder.Signed(c, 5, &n.Score)
	coder.Signed(c, 6, &n.Clearing)
	coder.Value(c, 7, &n.Token, tokenFields)
	coder.Value(c, 8, &n.Range, rangeFields)
	coder.Enum(c, 9, &n.Outcome, job.NodeFailed)
	coder.Signed(c, 10, &n.Ran)
	coder.Vector(c, 11, &n.Peak)
}
