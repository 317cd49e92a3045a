package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// bodies maps each kind of message to its body and that body's fields; a kind that is not in it has none.
var bodies = [256]codec{ //nolint:gochecknoglobals // a table, written to by nobody
	protocol.Submit: body(func(c *coder.Coder, b *protocol.Submission) {
		coder.Text(c, 1, &b.Request)
		coder.Text(c, 2, &b.Digest)
		coder.Pointer(c, 3, &b.Spec, specFields)
		coder.Boolean(c, 4, &b.Replace)
		coder.Value(c, 5, &b.By, askerFields)
	}),
	protocol.Cancel: body(func(c *coder.Coder, b *protocol.Cancellation) {
		coder.Text(c, 1, &b.Request)
		coder.Text(c, 2, &b.Text)
		coder.Instant(c, 3, &b.At)
		coder.Value(c, 4, &b.By, askerFields)
	}),
	protocol.PauseJob: body(func(c *coder.Coder, b *protocol.Pause) {
		coder.Text(c, 1, &b.Request)
		coder.Boolean(c, 2, &b.Paused)
		coder.Value(c, 3, &b.By, askerFields)
	}),
	protocol.SetQueue: body(func(c *coder.Coder, b *protocol.QueueSetting) {
		coder.Text(c, 1, &b.Request)
		coder.Pointer(c, 2, &b.Queue, queueFields)
	}),
	protocol.Reply: body(func(c *coder.Coder, b *protocol.Receipt) {
		coder.Text(c, 1, &b.Request)
		coder.Boolean(c, 2, &b.Changed)
		coder.Text(c, 3, &b.Text)
		coder.Failure(c, 4, &b.Err)
		coder.Value(c, 5, &b.Verdict, verdictFields)
		coder.List(c, 6, &b.Made, madeFields)
	}),
	protocol.Requeue: body(func(c *coder.Coder, b *protocol.Requeueing) {
		coder.Text(c, 1, &b.Request)
		coder.Instant(c, 2, &b.Deadline)
		coder.Value(c, 3, &b.By, askerFields)
	}),
	protocol.Delete: body(func(c *coder.Coder, b *protocol.Deletion) {
		coder.Text(c, 1, &b.Request)
		coder.Value(c, 2, &b.By, askerFields)
	}),
	protocol.DrainZone: body(func(c *coder.Coder, b *protocol.Draining) {
		coder.Text(c, 1, &b.Request)
		coder.Text(c, 2, &b.Zone)
	}),
	protocol.Reserve:   body(bookingFields),
	protocol.Unreserve: body(bookingFields),
	protocol.Unquarantine: body(func(c *coder.Coder, b *protocol.Clearance) {
		coder.Text(c, 1, &b.Request)
		coder.Text(c, 2, &b.Slice)
	}),
	protocol.Adopt: body(func(c *coder.Coder, b *protocol.Adoption) {
		coder.Unsigned(c, 1, &b.Since)
		coder.Instant(c, 2, &b.At)
		coder.Pointer(c, 3, &b.Spec, specFields)
		coder.Pointer(c, 4, &b.Queue, queueFields)
		coder.Boolean(c, 5, &b.Paused)
		coder.Pointer(c, 6, &b.Record, recordFields)
	}),
	protocol.Closed: body(func(c *coder.Coder, b *protocol.Closing) {
		coder.Value(c, 1, &b.Verdict, verdictFields)
		coder.Instant(c, 2, &b.At)
	}),
	protocol.QueueChanged: body(queueFields),
	protocol.Surrender: body(func(c *coder.Coder, b *protocol.Moving) {
		coder.Text(c, 1, &b.Text)
	}),
	protocol.Surrendered: body(recordFields),
	protocol.Offer: body(func(c *coder.Coder, v *protocol.SliceView) {
		coder.Value(c, 1, &v.Slice, sliceFields)
		coder.Text(c, 2, &v.Node)
		coder.Unsigned(c, 3, &v.Version)
		coder.Boolean(c, 4, &v.Usable)
		coder.Text(c, 5, &v.Why)
		coder.List(c, 6, &v.Gaps, func(c *coder.Coder, g *protocol.Gap) {
			coder.Instant(c, 1, &g.Start)
			coder.Instant(c, 2, &g.End)
			coder.Enum(c, 3, &g.Until, protocol.ForHold)
		})
		coder.List(c, 7, &v.Reserved, reservationFields)
		coder.Pointer(c, 8, &v.Room, summaryFields)
		coder.Pointer(c, 9, &v.Resident, residentFields)
	}),
	protocol.Ask: body(func(c *coder.Coder, b *protocol.Asking) {
		coder.Unsigned(c, 1, &b.Ask)
		coder.Text(c, 2, &b.Slice)
		coder.Texts(c, 3, &b.Also)
		coder.Instant(c, 4, &b.Start)
		coder.Instant(c, 5, &b.End)
		coder.Vector(c, 6, &b.Demand)
		coder.Value(c, 7, &b.Plan, planFields)
		coder.Pointer(c, 8, &b.Reservation, reservationFields)
		coder.Value(c, 9, &b.Peak, peakFields)
		coder.Value(c, 10, &b.Range, rangeFields)
	}),
	protocol.Granted: body(func(c *coder.Coder, b *protocol.Grant) {
		coder.Unsigned(c, 1, &b.Ask)
		coder.Text(c, 2, &b.Slice)
		coder.Texts(c, 3, &b.Also)
		coder.Instant(c, 4, &b.Start)
		coder.Instant(c, 5, &b.End)
		coder.Instant(c, 6, &b.Expiry)
	}),
	protocol.Refused: body(refusalFields),
	protocol.Redeem:  body(workFields),
	protocol.Leased: body(func(c *coder.Coder, b *protocol.Holding) {
		coder.Text(c, 1, &b.Slice)
	}),
	protocol.Removed: body(func(c *coder.Coder, b *protocol.Removal) {
		coder.Text(c, 1, &b.Node)
	}),
	protocol.RedeemRefused: body(refusalFields),
	protocol.Running:       body(beginningFields),
	protocol.Report: body(func(c *coder.Coder, b *protocol.Observation) {
		coder.Text(c, 1, &b.Slice)
		coder.Signed(c, 2, &b.Progress)
		coder.Instant(c, 3, &b.At)
		coder.Vector(c, 4, &b.Demand)
		coder.Boolean(c, 5, &b.Storing)
		coder.Boolean(c, 6, &b.Remains)
		coder.Boolean(c, 7, &b.Vacant)
	}),
	protocol.Result: body(conclusionFields),
	protocol.ResultAck: body(func(c *coder.Coder, b *protocol.Acknowledgement) {
		coder.Value(c, 1, &b.Range, rangeFields)
	}),
	protocol.Extend:   body(extensionFields),
	protocol.Extended: body(extensionFields),
	protocol.Stop: body(func(c *coder.Coder, b *protocol.Halt) {
		coder.Text(c, 1, &b.Text)
		coder.Boolean(c, 2, &b.Unstarted)
		coder.Boolean(c, 3, &b.Now)
		coder.Boolean(c, 4, &b.Short)
	}),
	protocol.Inventory: body(func(c *coder.Coder, s *protocol.Stock) {
		coder.List(c, 1, &s.Slices, sliceFields)
		coder.List(c, 2, &s.Found, foundFields)
		coder.Instant(c, 3, &s.Until)
		coder.Boolean(c, 4, &s.Leaves)
	}),
	protocol.Start:   body(workFields),
	protocol.Started: body(beginningFields),
	protocol.Exited:  body(conclusionFields),
	protocol.Stuck:   body(reasonFields),
	protocol.Deadline: body(func(c *coder.Coder, b *protocol.Shift) {
		coder.Value(c, 1, &b.Range, rangeFields)
		coder.Instant(c, 2, &b.End)
		coder.Text(c, 3, &b.Text)
	}),
	protocol.Settle: body(func(c *coder.Coder, b *protocol.Settlement) {
		coder.Value(c, 1, &b.Range, rangeFields)
		coder.Boolean(c, 2, &b.Committed)
	}),
	protocol.Foreign: body(func(c *coder.Coder, b *protocol.Intrusion) {
		coder.Text(c, 1, &b.Slice)
		coder.Text(c, 2, &b.Text)
		coder.Boolean(c, 3, &b.Present)
		coder.List(c, 4, &b.Closures, reservationFields)
	}),
	protocol.Wake: body(func(c *coder.Coder, b *protocol.Moment) {
		coder.Instant(c, 1, &b.At)
	}),
	protocol.Unhealthy: body(func(c *coder.Coder, b *protocol.Condition) {
		coder.Text(c, 1, &b.Text)
		coder.Boolean(c, 2, &b.Unhealthy)
	}),
	protocol.Pressure: body(func(c *coder.Coder, b *protocol.Strain) {
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
	}),
	protocol.Suspend: body(reasonFields),
	protocol.Suspended: body(func(c *coder.Coder, b *protocol.Stillness) {
		coder.Boolean(c, 1, &b.Still)
		coder.Boolean(c, 2, &b.Refused)
	}),
	protocol.Checkup: body(func(c *coder.Coder, b *protocol.Vitals) {
		coder.Texts(c, 1, &b.Slices)
		coder.List(c, 2, &b.Errors, xidFields)
		coder.Pointer(c, 3, &b.Look, lookFields)
		coder.Text(c, 4, &b.Life)
	}),
	protocol.Wished: body(wishesFields()),
	protocol.Dismiss: body(func(c *coder.Coder, b *protocol.Holding) {
		coder.Text(c, 1, &b.Slice)
	}),
	protocol.Sighted: body(sightFields()), protocol.Ordered: body(orderFields),
	protocol.Winning: body(func(c *coder.Coder, p *protocol.Prize) {
		coder.Value(c, 1, &p.Place, placeFields)
		coder.Value(c, 2, &p.Plan, planFields)
		coder.Value(c, 3, &p.Range, rangeFields)
		coder.Vector(c, 4, &p.Demand)
		coder.Signed(c, 5, &p.Speed)
		coder.Pointer(c, 6, &p.Bid, bidFields)
	}),
	protocol.Attend: body(func(c *coder.Coder, b *protocol.Attendance) {
		coder.Boolean(c, 1, &b.Present)
	}),
	protocol.Announce: body(func(c *coder.Coder, l *protocol.Call) {
		coder.Unsigned(c, 1, &l.Round)
		coder.Instant(c, 2, &l.Closes)
		coder.Signed(c, 3, &l.Most)
		coder.List(c, 4, &l.Free, rangeFields)
		coder.Signed(c, 5, &l.Left)
		coder.Boolean(c, 6, &l.First)
		coder.List(c, 7, &l.Windows, advertFields)
		coder.Signed(c, 8, &l.Memory)
		coder.Signed(c, 9, &l.Pace)
		coder.Enum(c, 10, &l.Wanted, protocol.Subjob)
	}),
	protocol.Answer: body(func(c *coder.Coder, b *protocol.Proposal) {
		coder.Unsigned(c, 1, &b.Round)
		coder.List(c, 2, &b.Variants, variantFields)
	}),
	protocol.Told: body(func(c *coder.Coder, b *protocol.News) {
		coder.Unsigned(c, 1, &b.Round)
		coder.List(c, 2, &b.Notices, noticeFields)
	}),
	protocol.Archived: body(func(c *coder.Coder, b *protocol.Archival) {
		coder.Unsigned(c, 1, &b.Count)
	}),
	protocol.Visiting: body(func(c *coder.Coder, v *protocol.Visit) {
		coder.Pointer(c, 1, &v.Spec, specFields)
		coder.Text(c, 2, &v.Queue)
		coder.Signed(c, 3, &v.Weight)
		coder.Signed(c, 4, &v.Longest)
		coder.Instant(c, 5, &v.Submitted)
		coder.Instant(c, 6, &v.Served)
		coder.List(c, 7, &v.Committed, rangeFields)
		coder.List(c, 8, &v.Claimed, rangeFields)
		coder.Signed(c, 9, &v.Skipped)
		coder.Signed(c, 10, &v.Running)
		coder.Pointer(c, 11, &v.Learned, learnedFields)
		coder.Value(c, 12, &v.Resume, tokenFields)
		coder.Signed(c, 13, &v.Own)
		coder.Signed(c, 14, &v.Others)
		coder.Texts(c, 15, &v.Avoids)
	}),
	protocol.Lenders: body(func(c *coder.Coder, l *protocol.LenderList) {
		coder.Unsigned(c, 1, &l.Seq)
		coder.Texts(c, 2, &l.Without)
		coder.List(c, 3, &l.Zones, lenderFields)
	}),
	protocol.Borrow: body(func(c *coder.Coder, l *protocol.Loan) {
		coder.Unsigned(c, 1, &l.Seq)
		coder.Signed(c, 2, &l.Slices)
		coder.Boolean(c, 3, &l.Taken)
		coder.Signed(c, 4, &l.Length)
		coder.Instant(c, 5, &l.NotBefore)
		coder.Boolean(c, 6, &l.Keep)
		coder.Pointer(c, 7, &l.Spec, specFields)
		coder.Instant(c, 8, &l.Submitted)
		coder.Pointer(c, 9, &l.Learned, learnedFields)
		coder.Texts(c, 10, &l.Avoids)
	}),
	protocol.Lent: body(func(c *coder.Coder, l *protocol.Lending) {
		coder.Unsigned(c, 1, &l.Seq)
		coder.Signed(c, 2, &l.Could)
		coder.Instant(c, 3, &l.Start)
		coder.Instant(c, 4, &l.End)
		coder.Signed(c, 5, &l.Speed)
		coder.Boolean(c, 6, &l.Kept)
		coder.Instant(c, 7, &l.Earliest)
		coder.List(c, 8, &l.Slices, lentSliceFields)
		coder.Text(c, 9, &l.Why)
	}),

	protocol.Search: body(errandFields), protocol.Redraw: body(errandFields), protocol.Back: body(errandFields),
	protocol.Landing: body(func(c *coder.Coder, f *protocol.Finding) {
		errandFields(c, &f.Errand)
		coder.Value(c, 28, &f.Place, placeFields)
	}),
	protocol.Probe: body(inquiryFields), protocol.Probed: body(responseFields), protocol.Room: body(summaryFields),
	protocol.ZoneDigest: body(func(c *coder.Coder, d *flow.Digest) {
		coder.Unsigned(c, 1, &d.Zone)
		coder.Boolean(c, 2, &d.Alive)
		coder.Unsigned(c, 3, &d.Pressure)
		coder.Unsigned(c, 4, &d.Version)
		coder.Instant(c, 5, &d.At)
		for i := range d.Free {
			coder.Unsigned(c, protowire.Number(6+i), &d.Free[i])
		}
		for i := range d.Demand {
			coder.Unsigned(c, protowire.Number(6+flow.MaxClasses+i), &d.Demand[i])
		}
	}),
}

// codec is how bodies of one type are written and read.
type codec struct {
	// fresh makes one to read into.
	fresh func() protocol.Body
	// fields are those of a body that must be of this type.
	fields func(*coder.Coder, protocol.Body)
}

func body[T any, P interface {
	*T
	protocol.Body
}](fields func(*coder.Coder, *T)) codec {
	return codec{
		fresh: func() protocol.Body { return P(new(T)) },
		fields: func(c *coder.Coder, b protocol.Body) {
			p, ok := b.(P)
			if !ok {
				invariant.Check(false, "a message with a body of type %T, where its kind has %T", b, p)
			}
			fields(c, p)
		},
	}
}

// bodyField is a message's body, of the type that goes with kind.
func bodyField(c *coder.Coder, n protowire.Number, kind protocol.Kind, v *protocol.Body) {
	of := &bodies[kind]
	if c.Writing() {
		if of.fields == nil {
			if *v != nil {
				invariant.Check(false, "a message of kind %d with a body of type %T: such a message has none", kind, *v)
			}
			return
		}
		start := c.Open(n)
		of.fields(c, *v)
		c.Shut(start)
		return
	}
	switch there := c.Next(n, protowire.BytesType); {
	case c.Err() != nil:
	case there && of.fields == nil:
		c.Damaged("a body in field %d, where a message of kind %d has none", n, kind)
	case !there && of.fields != nil && c.Done():
		c.Damaged("no body, where a message of kind %d has one", kind)
	case there:
		*v = of.fresh()
		c.Within(func() { of.fields(c, *v) })
	}
}

// messageFields are those of a message. Number 40 is the body, with numbers of its own. The others up to 38 were fields of every message
// (format 1), and are not used again.
func messageFields(c *coder.Coder, m *protocol.Message) {
	coder.Enum(c, 1, &m.Kind, ^protocol.Kind(0))
	if !c.Writing() && c.Err() == nil && !knownMessage(m.Kind) {
		c.Newer("kind %d", m.Kind)
	}
	coder.Value(c, 2, &m.From, addressFields)
	coder.Value(c, 3, &m.To, addressFields)
	coder.Text(c, 5, &m.Job)
	coder.Unsigned(c, 6, &m.Epoch)
	coder.Value(c, 10, &m.Token, tokenFields)
	coder.Unsigned(c, 31, &m.Session)
	coder.Unsigned(c, 36, &m.Generation)
	coder.List(c, 39, &m.Filed, filedFields)
	bodyField(c, 40, m.Kind, &m.Body)
}

// The kinds this build knows, as the blocks that package protocol numbers them in. A test compares them with its
// constants.

func knownFact(k protocol.FactKind) bool {
	return within(k, protocol.JobAccepted, protocol.JobDeparted) ||
		within(k, protocol.HomeTaken, protocol.HomeLeaving) ||
		within(k, protocol.Booted, protocol.SubjobVacated)
}

func knownMessage(k protocol.Kind) bool {
	return within(k, protocol.Submit, protocol.DrainZone) ||
		within(k, protocol.Reserve, protocol.Unquarantine) ||
		within(k, protocol.Adopt, protocol.Surrendered) ||
		within(k, protocol.Offer, protocol.Removed) ||
		within(k, protocol.Inventory, protocol.Dismissed) ||
		within(k, protocol.Attend, protocol.Told) ||
		within(k, protocol.File, protocol.Outdated) ||
		within(k, protocol.Search, protocol.ZoneDigest) ||
		within(k, protocol.Lenders, protocol.Lent) ||
		within(k, protocol.Visiting, protocol.Winning) ||
		within(k, protocol.Sighted, protocol.Ordered)
}

func within[K ~uint8](k, first, last K) bool { return first <= k && k <= last }

func askerFields(c *coder.Coder, a *protocol.Asker) {
	coder.Text(c, 1, &a.Name)
	coder.Boolean(c, 2, &a.Own)
}
