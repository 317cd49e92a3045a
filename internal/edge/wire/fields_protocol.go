package wire

import (
	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

func factFields(c *coder, f *protocol.Fact) {
	enum(c, 1, &f.Kind, ^protocol.FactKind(0))
	value(c, 2, &f.Actor, addressFields)
	text(c, 3, &f.Job)
	unsigned(c, 4, &f.Epoch)
	value(c, 5, &f.Token, tokenFields)
	text(c, 6, &f.Node)
	text(c, 7, &f.Zone)
	text(c, 8, &f.Slice)
	texts(c, 9, &f.Also)
	value(c, 10, &f.Range, rangeFields)
	instant(c, 11, &f.At)
	instant(c, 12, &f.Start)
	instant(c, 13, &f.End)
	vector(c, 14, &f.Demand)
	value(c, 15, &f.Plan, planFields)
	boolean(c, 16, &f.Flag)
	text(c, 17, &f.Request)
	text(c, 18, &f.Text)
	text(c, 19, &f.Digest)
	sharedSpec(c, 20, &f.Spec)
	pointer(c, 21, &f.Queue, queueFields)
	value(c, 22, &f.Verdict, verdictFields)
	pointer(c, 23, &f.Result, resultFields)
	pointer(c, 24, &f.Learned, learnedFields)
	boolean(c, 25, &f.Skipped)
	pointer(c, 26, &f.Reservation, reservationFields)
	pointer(c, 27, &f.Record, recordFields)
	signed(c, 28, &f.Speed)
	pointer(c, 29, &f.Bid, bidFields)
	pointer(c, 30, &f.Standing, standingFields)
	pointer(c, 31, &f.Lesson, lessonFields)
	unsigned(c, 32, &f.Generation)
	signed(c, 33, &f.Count)
	list(c, 34, &f.Members, memberFields)
	value(c, 35, &f.Rank, rankFields)
	value(c, 36, &f.Peak, peakFields)
	pointer(c, 37, &f.Fault, faultFields)
}

func faultFields(c *coder, f *health.Fault) {
	enum(c, 1, &f.Cause, health.Causes-1)
	unsigned(c, 2, &f.Xid)
	text(c, 3, &f.Life)
	instant(c, 4, &f.Since)
	text(c, 5, &f.Text)
	boolean(c, 6, &f.Ends)
	boolean(c, 7, &f.Brief)
}

// filedFields are those of a fact within a message.
func filedFields(c *coder, f *protocol.Fact) {
	if factFields(c, f); !c.writing && c.err == nil && !knownFact(f.Kind) {
		c.newer("filed fact of kind %d", f.Kind)
	}
}

// messageFields are those of a message. Number 40 is the body, with numbers of its own. The others up to 38 were fields of every message
// (format 1), and are not used again.
func messageFields(c *coder, m *protocol.Message) {
	enum(c, 1, &m.Kind, ^protocol.Kind(0))
	if !c.writing && c.err == nil && !knownMessage(m.Kind) {
		c.newer("kind %d", m.Kind)
	}
	value(c, 2, &m.From, addressFields)
	value(c, 3, &m.To, addressFields)
	text(c, 5, &m.Job)
	unsigned(c, 6, &m.Epoch)
	value(c, 10, &m.Token, tokenFields)
	unsigned(c, 31, &m.Session)
	unsigned(c, 36, &m.Generation)
	list(c, 39, &m.Filed, filedFields)
	bodyField(c, 40, m.Kind, &m.Body)
}

func addressFields(c *coder, a *protocol.Address) {
	enum(c, 1, &a.Role, protocol.Archive)
	text(c, 2, &a.ID)
}

func planFields(c *coder, p *protocol.Plan) {
	signed(c, 1, &p.Run)
	signed(c, 2, &p.Wall)
	value(c, 3, &p.Resume, tokenFields)
	unsigned(c, 4, &p.Window)
	unsigned(c, 5, &p.Round)
	text(c, 6, &p.Option)
	signed(c, 7, &p.Extended)
	signed(c, 8, &p.Member)
	signed(c, 9, &p.Members)
}

func peakFields(c *coder, p *trp.Peak) {
	signed(c, 1, &p.Mean)
	signed(c, 2, &p.Deviation)
}

func rankFields(c *coder, r *protocol.Rank) {
	signed(c, 1, &r.Priority)
	enum(c, 2, &r.Class, protocol.Classes-1)
	unsigned(c, 3, &r.Value)
	boolean(c, 4, &r.Yields)
}

func queueFields(c *coder, q *protocol.Queue) {
	text(c, 1, &q.Name)
	signed(c, 2, &q.Weight)
	signed(c, 3, &q.Cap)
	signed(c, 4, &q.MaxJobs)
	signed(c, 5, &q.MaxWindow)
	text(c, 6, &q.User)
}

func learnedFields(c *coder, l *protocol.Learned) {
	numbers(c, 1, &l.Rates)
	signed(c, 2, &l.Margin)
	signed(c, 3, &l.MemoryScale)
	vector(c, 4, &l.Peak)
	signed(c, 5, &l.Failures)
	text(c, 6, &l.LastDetail)
	list(c, 7, &l.Suspects, func(c *coder, s *protocol.Suspect) {
		value(c, 1, &s.Range, rangeFields)
		signed(c, 2, &s.Limit)
	})
	signed(c, 8, &l.Kills)
	signed(c, 9, &l.Rate)
	value(c, 10, &l.Trust, trustFields)
	signed(c, 11, &l.Spread)
	pointer(c, 12, &l.Safe, tableFields)
	signed(c, 13, &l.Runs)
	numbers(c, 14, &l.Prepares)
	signed(c, 15, &l.Prepare)
	instant(c, 16, &l.FailedAt)
	instant(c, 17, &l.KilledAt)
	signed(c, 18, &l.Busy)
}

func reservationFields(c *coder, r *protocol.Reservation) {
	unsigned(c, 1, &r.ID)
	enum(c, 2, &r.Kind, protocol.ForHold)
	text(c, 3, &r.Slice)
	instant(c, 4, &r.Start)
	instant(c, 5, &r.End)
	signed(c, 6, &r.Every)
	text(c, 7, &r.Job)
	value(c, 8, &r.Token, tokenFields)
	text(c, 9, &r.Source)
	boolean(c, 10, &r.Truncate)
	value(c, 11, &r.Calendar, calendarFields)
}

func calendarFields(c *coder, r *civil.Calendar) {
	text(c, 1, &r.Zone)
	text(c, 2, &r.Clock)
	signed(c, 3, &r.Date)
	signed(c, 4, &r.Step)
	enum(c, 5, &r.Days, civil.AllDays)
	signed(c, 6, &r.At)
	signed(c, 7, &r.Length)
	boolean(c, 8, &r.ByClock)
}

func sliceFields(c *coder, s *protocol.Slice) {
	text(c, 1, &s.ID)
	text(c, 2, &s.Model)
	text(c, 3, &s.Profile)
	vector(c, 4, &s.Capacity)
	signed(c, 5, &s.Speed)
	text(c, 6, &s.Device)
	boolean(c, 7, &s.Simulated)
	boolean(c, 8, &s.Shared)
	text(c, 9, &s.Rack)
	text(c, 10, &s.Block)
	signed(c, 11, &s.Host)
	signed(c, 12, &s.Bears)
}

func foundFields(c *coder, f *protocol.Found) {
	value(c, 1, &f.Token, tokenFields)
	text(c, 2, &f.Job)
	text(c, 3, &f.Slice)
	boolean(c, 4, &f.Alive)
	instant(c, 5, &f.Started)
	pointer(c, 6, &f.Result, resultFields)
	boolean(c, 7, &f.Stuck)
	boolean(c, 8, &f.Still)
}

func viewFields(c *coder, v *protocol.SliceView) {
	value(c, 1, &v.Slice, sliceFields)
	text(c, 2, &v.Node)
	unsigned(c, 3, &v.Version)
	boolean(c, 4, &v.Usable)
	text(c, 5, &v.Why)
	list(c, 6, &v.Gaps, func(c *coder, g *protocol.Gap) {
		instant(c, 1, &g.Start)
		instant(c, 2, &g.End)
		enum(c, 3, &g.Until, protocol.ForHold)
	})
	list(c, 7, &v.Reserved, reservationFields)
	pointer(c, 8, &v.Room, summaryFields)
}

func recordFields(c *coder, r *protocol.Record) {
	text(c, 1, &r.Job)
	unsigned(c, 2, &r.Epoch)
	sharedSpec(c, 3, &r.Spec)
	text(c, 4, &r.Queue)
	instant(c, 5, &r.Submitted)
	boolean(c, 6, &r.Held)
	list(c, 7, &r.Committed, rangeFields)
	list(c, 8, &r.Claimed, rangeFields)
	list(c, 9, &r.Skipped, rangeFields)
	list(c, 10, &r.Claims, claimFields)
	value(c, 11, &r.Learned, learnedFields)
	value(c, 12, &r.Resume, tokenFields)
	signed(c, 13, &r.Attained)
	instant(c, 14, &r.Started)
	list(c, 15, &r.Past, pastFields)
	value(c, 16, &r.Verdict, verdictFields)
	instant(c, 17, &r.Ended)
	instant(c, 18, &r.Served)
	unsigned(c, 19, &r.Generation)
	signed(c, 20, &r.Forgiven)
	list(c, 21, &r.Unpublished, publicationFields)
}

func publicationFields(c *coder, p *protocol.Publication) {
	value(c, 1, &p.Token, tokenFields)
	text(c, 2, &p.Node)
	value(c, 3, &p.Range, rangeFields)
}

func claimFields(c *coder, l *protocol.Claim) {
	value(c, 1, &l.Token, tokenFields)
	text(c, 2, &l.Node)
	text(c, 3, &l.Slice)
	value(c, 4, &l.Range, rangeFields)
	instant(c, 5, &l.Start)
	instant(c, 6, &l.End)
	vector(c, 7, &l.Demand)
	value(c, 8, &l.Plan, planFields)
	texts(c, 9, &l.Also)
	signed(c, 10, &l.Speed)
	pointer(c, 11, &l.Bid, bidFields)
	instant(c, 12, &l.Asked)
	unsigned(c, 13, &l.Generation)
	list(c, 14, &l.Members, memberFields)
	value(c, 15, &l.Peak, peakFields)
}

func memberFields(c *coder, m *protocol.Member) {
	text(c, 1, &m.Node)
	value(c, 2, &m.Token, tokenFields)
	signed(c, 3, &m.Slices)
}

// pastFields numbers its own fields from 17, so that a claim can grow.
func pastFields(c *coder, p *protocol.Past) {
	claimFields(c, &p.Claim)
	value(c, 17, &p.Committed, rangeFields)
	boolean(c, 18, &p.Skipped)
	enum(c, 19, &p.Outcome, job.NodeFailed)
	instant(c, 20, &p.RealStart)
	instant(c, 21, &p.RealEnd)
	vector(c, 22, &p.Peak)
	text(c, 23, &p.Detail)
	signed(c, 24, &p.Prepare)
	signed(c, 25, &p.Waited)
}
