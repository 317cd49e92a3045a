package wire

import (
	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

func faultFields(c *coder.Coder, f *health.Fault) {
	coder.Enum(c, 1, &f.Cause, health.Causes-1)
	coder.Unsigned(c, 2, &f.Xid)
	coder.Text(c, 3, &f.Life)
	coder.Instant(c, 4, &f.Since)
	coder.Text(c, 5, &f.Text)
	coder.Boolean(c, 6, &f.Ends)
	coder.Boolean(c, 7, &f.Brief)
}

func addressFields(c *coder.Coder, a *protocol.Address) {
	coder.Enum(c, 1, &a.Role, protocol.Provider)
	coder.Text(c, 2, &a.ID)
}

func planFields(c *coder.Coder, p *protocol.Plan) {
	coder.Signed(c, 1, &p.Run)
	coder.Signed(c, 2, &p.Wall)
	coder.Value(c, 3, &p.Resume, tokenFields)
	coder.Unsigned(c, 4, &p.Window)
	coder.Unsigned(c, 5, &p.Round)
	coder.Text(c, 6, &p.Option)
	coder.Signed(c, 7, &p.Extended)
	coder.Signed(c, 8, &p.Member)
	coder.Signed(c, 9, &p.Members)
	coder.Texts(c, 10, &p.Addresses)
	coder.Signed(c, 11, &p.Port)
	coder.Unsigned(c, 12, &p.Residence)
	coder.Boolean(c, 13, &p.Resident)
	coder.List(c, 14, &p.Bars, func(c *coder.Coder, b *job.Bar) {
		coder.Signed(c, 1, &b.Rung)
		coder.Signed(c, 2, &b.Known)
		coder.Signed(c, 3, &b.Ahead)
		coder.Signed(c, 4, &b.Worth)
	})
}

func peakFields(c *coder.Coder, p *trp.Peak) {
	coder.Signed(c, 1, &p.Mean)
	coder.Signed(c, 2, &p.Deviation)
}

func rankFields(c *coder.Coder, r *protocol.Rank) {
	coder.Signed(c, 1, &r.Priority)
	coder.Enum(c, 2, &r.Class, protocol.Classes-1)
	coder.Unsigned(c, 3, &r.Value)
	coder.Boolean(c, 4, &r.Yields)
}

func queueFields(c *coder.Coder, q *protocol.Queue) {
	coder.Text(c, 1, &q.Name)
	coder.Signed(c, 2, &q.Weight)
	coder.Signed(c, 3, &q.Cap)
	coder.Signed(c, 4, &q.MaxJobs)
	coder.Signed(c, 5, &q.MaxWindow)
	coder.Text(c, 6, &q.User)
}

func learnedFields(c *coder.Coder, l *protocol.Learned) {
	coder.Numbers(c, 1, &l.Rates)
	coder.Signed(c, 2, &l.Margin)
	coder.Signed(c, 3, &l.MemoryScale)
	coder.Vector(c, 4, &l.Peak)
	coder.Signed(c, 5, &l.Failures)
	coder.Text(c, 6, &l.LastDetail)
	coder.List(c, 7, &l.Suspects, func(c *coder.Coder, s *protocol.Suspect) {
		coder.Value(c, 1, &s.Range, rangeFields)
		coder.Signed(c, 2, &s.Limit)
	})
	coder.Signed(c, 8, &l.Kills)
	coder.Signed(c, 9, &l.Rate)
	coder.Value(c, 10, &l.Trust, trustFields)
	coder.Signed(c, 11, &l.Spread)
	coder.Pointer(c, 12, &l.Safe, tableFields)
	coder.Signed(c, 13, &l.Runs)
	coder.Numbers(c, 14, &l.Prepares)
	coder.Signed(c, 15, &l.Prepare)
	coder.Instant(c, 16, &l.FailedAt)
	coder.Instant(c, 17, &l.KilledAt)
	coder.Signed(c, 18, &l.Busy)
	coder.Signed(c, 19, &l.Trials)
	coder.Signed(c, 20, &l.Sampled)
	coder.Signed(c, 21, &l.Start)
}

func reservationFields(c *coder.Coder, r *protocol.Reservation) {
	coder.Unsigned(c, 1, &r.ID)
	coder.Enum(c, 2, &r.Kind, protocol.ForHold)
	coder.Text(c, 3, &r.Slice)
	coder.Instant(c, 4, &r.Start)
	coder.Instant(c, 5, &r.End)
	coder.Signed(c, 6, &r.Every)
	coder.Text(c, 7, &r.Job)
	coder.Value(c, 8, &r.Token, tokenFields)
	coder.Text(c, 9, &r.Source)
	coder.Boolean(c, 10, &r.Truncate)
	coder.Value(c, 11, &r.Calendar, calendarFields)
}

func calendarFields(c *coder.Coder, r *civil.Calendar) {
	coder.Text(c, 1, &r.Zone)
	coder.Text(c, 2, &r.Clock)
	coder.Signed(c, 3, &r.Date)
	coder.Signed(c, 4, &r.Step)
	coder.Enum(c, 5, &r.Days, civil.AllDays)
	coder.Signed(c, 6, &r.At)
	coder.Signed(c, 7, &r.Length)
	coder.Boolean(c, 8, &r.ByClock)
}

func sliceFields(c *coder.Coder, s *protocol.Slice) {
	coder.Text(c, 1, &s.ID)
	coder.Text(c, 2, &s.Model)
	coder.Text(c, 3, &s.Profile)
	coder.Vector(c, 4, &s.Capacity)
	coder.Signed(c, 5, &s.Speed)
	coder.Text(c, 6, &s.Device)
	coder.Boolean(c, 7, &s.Simulated)
	coder.Boolean(c, 8, &s.Shared)
	coder.Text(c, 9, &s.Rack)
	coder.Text(c, 10, &s.Block)
	coder.Signed(c, 11, &s.Host)
	coder.Signed(c, 12, &s.Bears)
	coder.Text(c, 13, &s.Address)
}

func foundFields(c *coder.Coder, f *protocol.Found) {
	coder.Value(c, 1, &f.Token, tokenFields)
	coder.Text(c, 2, &f.Job)
	coder.Text(c, 3, &f.Slice)
	coder.Boolean(c, 4, &f.Alive)
	coder.Instant(c, 5, &f.Started)
	coder.Pointer(c, 6, &f.Result, resultFields)
	coder.Boolean(c, 7, &f.Stuck)
	coder.Boolean(c, 8, &f.Still)
}

func recordFields(c *coder.Coder, r *protocol.Record) {
	coder.Text(c, 1, &r.Job)
	coder.Unsigned(c, 2, &r.Epoch)
	sharedSpec(c, 3, &r.Spec)
	coder.Text(c, 4, &r.Queue)
	coder.Instant(c, 5, &r.Submitted)
	coder.Boolean(c, 6, &r.Paused)
	coder.List(c, 7, &r.Committed, rangeFields)
	coder.List(c, 8, &r.Claimed, rangeFields)
	coder.List(c, 9, &r.Skipped, rangeFields)
	coder.List(c, 10, &r.Claims, claimFields)
	coder.Value(c, 11, &r.Learned, learnedFields)
	coder.Value(c, 12, &r.Resume, tokenFields)
	coder.Signed(c, 13, &r.Attained)
	coder.Instant(c, 14, &r.Started)
	coder.List(c, 15, &r.Past, pastFields)
	coder.Value(c, 16, &r.Verdict, verdictFields)
	coder.Instant(c, 17, &r.Ended)
	coder.Instant(c, 18, &r.Served)
	coder.Unsigned(c, 19, &r.Generation)
	coder.Signed(c, 20, &r.Forgiven)
	coder.List(c, 21, &r.Unpublished, publicationFields)
	coder.List(c, 22, (*[][]int64)(&r.Scores), func(c *coder.Coder, rung *[]int64) { coder.Numbers(c, 1, rung) })
	coder.Signed(c, 23, &r.Length)
}

func publicationFields(c *coder.Coder, p *protocol.Publication) {
	coder.Value(c, 1, &p.Token, tokenFields)
	coder.Text(c, 2, &p.Node)
	coder.Value(c, 3, &p.Range, rangeFields)
}

func claimFields(c *coder.Coder, l *protocol.Claim) {
	coder.Value(c, 1, &l.Token, tokenFields)
	coder.Text(c, 2, &l.Node)
	coder.Text(c, 3, &l.Slice)
	coder.Value(c, 4, &l.Range, rangeFields)
	coder.Instant(c, 5, &l.Start)
	coder.Instant(c, 6, &l.End)
	coder.Vector(c, 7, &l.Demand)
	coder.Value(c, 8, &l.Plan, planFields)
	coder.Texts(c, 9, &l.Also)
	coder.Signed(c, 10, &l.Speed)
	coder.Pointer(c, 11, &l.Bid, bidFields)
	coder.Instant(c, 12, &l.Asked)
	coder.Unsigned(c, 13, &l.Generation)
	coder.List(c, 14, &l.Members, memberFields)
	coder.Value(c, 15, &l.Peak, peakFields)
}

func memberFields(c *coder.Coder, m *protocol.Member) {
	coder.Text(c, 1, &m.Node)
	coder.Value(c, 2, &m.Token, tokenFields)
	coder.Signed(c, 3, &m.Slices)
}

// pastFields numbers its own fields from 17, so that a claim can grow.
func pastFields(c *coder.Coder, p *protocol.Past) {
	claimFields(c, &p.Claim)
	coder.Value(c, 17, &p.Committed, rangeFields)
	coder.Boolean(c, 18, &p.Skipped)
	coder.Enum(c, 19, &p.Outcome, job.NodeFailed)
	coder.Instant(c, 20, &p.RealStart)
	coder.Instant(c, 21, &p.RealEnd)
	coder.Vector(c, 22, &p.Peak)
	coder.Text(c, 23, &p.Detail)
	coder.Signed(c, 24, &p.Spent.Prepare)
	coder.Signed(c, 25, &p.Spent.Waited)
	coder.Boolean(c, 26, &p.LeftNothing)
	coder.Signed(c, 27, &p.Spent.Startup)
	coder.Boolean(c, 28, &p.Spent.Stayed)
}
