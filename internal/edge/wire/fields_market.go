package wire

import (
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

func bidFields(c *coder, b *protocol.Bid) {
	signed(c, 1, &b.Score)
	signed(c, 2, &b.Calibrated)
	signed(c, 3, &b.Weight)
	signed(c, 4, &b.Left)
	signed(c, 5, &b.Urgency)
	signed(c, 6, &b.Price)
	text(c, 7, &b.Option)
	instant(c, 8, &b.Since)
}

func trustFields(c *coder, t *protocol.Trust) {
	signed(c, 1, &t.Error)
	signed(c, 2, &t.History)
	signed(c, 3, &t.Seen)
	signed(c, 4, &t.Risk)
	signed(c, 5, &t.Pace)
	signed(c, 6, &t.Runs)
	signed(c, 7, &t.Excess)
	signed(c, 8, &t.Evidence)
}

func standingFields(c *coder, s *protocol.Standing) {
	text(c, 1, &s.Queue)
	value(c, 2, &s.Trust, trustFields)
	signed(c, 3, &s.Credits)
	instant(c, 4, &s.Refilled)
	signed(c, 5, &s.Archived)
}

func lessonFields(c *coder, l *protocol.Lesson) {
	text(c, 1, &l.Queue)
	text(c, 2, &l.Template)
	list(c, 3, &l.Runs, func(c *coder, r *forecast.Run) {
		numbers(c, 1, &r.Peaks)
		signed(c, 2, &r.Unit)
	})
}

func callFields(c *coder, l *protocol.Call) {
	unsigned(c, 1, &l.Round)
	instant(c, 2, &l.Closes)
	signed(c, 3, &l.Most)
	list(c, 4, &l.Free, rangeFields)
	signed(c, 5, &l.Left)
	boolean(c, 6, &l.First)
	list(c, 7, &l.Windows, advertFields)
	signed(c, 8, &l.Memory)
	signed(c, 9, &l.Pace)
	enum(c, 10, &l.Wanted, protocol.Subjob)
}

func advertFields(c *coder, a *protocol.Advert) {
	unsigned(c, 1, &a.Window)
	text(c, 2, &a.Slice)
	text(c, 3, &a.Profile)
	signed(c, 4, &a.Speed)
	vector(c, 5, &a.Capacity)
	instant(c, 6, &a.Start)
	instant(c, 7, &a.End)
	boolean(c, 8, &a.Open)
}

func variantFields(c *coder, v *protocol.Variant) {
	unsigned(c, 1, &v.ID)
	unsigned(c, 2, &v.Window)
	value(c, 3, &v.Range, rangeFields)
	instant(c, 4, &v.Start)
	signed(c, 5, &v.Run)
	signed(c, 6, &v.Wall)
	vector(c, 7, &v.Demand)
	text(c, 8, &v.Option)
	signed(c, 9, &v.Score)
}

func noticeFields(c *coder, n *protocol.Notice) {
	enum(c, 1, &n.Kind, protocol.Concluded)
	unsigned(c, 2, &n.Window)
	unsigned(c, 3, &n.Variant)
	text(c, 4, &n.Text)
	signed(c, 5, &n.Score)
	signed(c, 6, &n.Clearing)
	value(c, 7, &n.Token, tokenFields)
	value(c, 8, &n.Range, rangeFields)
	enum(c, 9, &n.Outcome, job.NodeFailed)
	signed(c, 10, &n.Ran)
	vector(c, 11, &n.Peak)
}

func visitFields(c *coder, v *protocol.Visit) {
	pointer(c, 1, &v.Spec, specFields)
	text(c, 2, &v.Queue)
	signed(c, 3, &v.Weight)
	signed(c, 4, &v.Longest)
	instant(c, 5, &v.Submitted)
	instant(c, 6, &v.Served)
	list(c, 7, &v.Committed, rangeFields)
	list(c, 8, &v.Claimed, rangeFields)
	signed(c, 9, &v.Skipped)
	signed(c, 10, &v.Running)
	pointer(c, 11, &v.Learned, learnedFields)
	value(c, 12, &v.Resume, tokenFields)
	signed(c, 13, &v.Own)
	signed(c, 14, &v.Others)
	texts(c, 15, &v.Avoids)
}

func prizeFields(c *coder, p *protocol.Prize) {
	value(c, 1, &p.Place, placeFields)
	value(c, 2, &p.Plan, planFields)
	value(c, 3, &p.Range, rangeFields)
	vector(c, 4, &p.Demand)
	signed(c, 5, &p.Speed)
	pointer(c, 6, &p.Bid, bidFields)
}
