package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// facts maps each kind of fact to its body, and where its fields are; a kind that is not in it has none.
var facts = [256]content{ //nolint:gochecknoglobals // a table, written to by nobody
	protocol.JobAccepted: needs(20, holds(func(b *protocol.Acceptance) layout {
		return layout{zone: &b.Zone, flag: &b.Recalled, request: &b.Request, digest: &b.Digest, spec: &b.Spec}
	})),
	protocol.JobClosed:     holds(final),
	protocol.JobForgotten:  holds(func(b *protocol.Forgetting) layout { return layout{zone: &b.Zone, flag: &b.Archived} }),
	protocol.QueueSet:      holds(queue),
	protocol.JobCancelling: holds(func(b *protocol.JobCancel) layout { return layout{request: &b.Request, text: &b.Text} }),
	protocol.JobPaused:     holds(pause),
	protocol.JobRequeued:   holds(sequel),
	protocol.JobArchived:   holds(func(b *protocol.Archiving) layout { return layout{flag: &b.Most, count: &b.Changes} }),
	protocol.JobDrawn:      holds(inZone),
	protocol.ZoneDrained:   holds(inZone),
	protocol.Rehomed:       holds(inZone),
	protocol.JobDeparted:   holds(func(b *protocol.Departure) layout { return layout{zone: &b.Zone, flag: &b.Pending} }),

	protocol.HomeTaken: needs(20, holds(func(b *protocol.Taking) layout { return layout{spec: &b.Spec} })),
	protocol.Claimed: holds(func(b *protocol.Sale) layout {
		v := placement(&b.Placement)
		v.node, v.speed, v.bid, v.members = &b.Node, &b.Speed, &b.Bid, &b.Members
		return v
	}),
	protocol.ClaimExtended:   holds(extent),
	protocol.Released:        holds(claimEnd),
	protocol.Committed:       needs(23, holds(claimEnd)),
	protocol.Calibrated:      holds(func(b *protocol.Learned) layout { return layout{whole: b} }),
	protocol.Ended:           holds(final),
	protocol.HomeDropped:     holds(func(b *protocol.HomeDrop) layout { return layout{text: &b.Queue, count: &b.Attained} }),
	protocol.HomePaused:      holds(pause),
	protocol.QueueKnown:      holds(queue),
	protocol.HomeKept:        needs(27, holds(func(b *protocol.Keeping) layout { return layout{flag: &b.Recalled, record: &b.Record} })),
	protocol.QueueCalibrated: holds(func(b *protocol.Calibration) layout { return layout{whole: b} }),
	protocol.Taught:          holds(func(b *protocol.Lesson) layout { return layout{whole: b} }),
	protocol.HomeReopened:    needs(20, holds(sequel)),
	protocol.HomeLeaving:     holds(reason),

	protocol.Booted: optional(holds(reservation)),
	protocol.LeaseMade: holds(func(b *protocol.Terms) layout {
		v := placement(&b.Placement)
		v.zone, v.text, v.rank = &b.Zone, &b.Text, &b.Rank
		return v
	}),
	protocol.LeaseExtended:   holds(extent),
	protocol.Truncated:       holds(func(b *protocol.Truncation) layout { return layout{end: &b.End, text: &b.Text} }),
	protocol.SubjobEnded:     needs(23, holds(func(b *protocol.SubjobEnd) layout { return layout{flag: &b.Bare, result: &b.Result} })),
	protocol.ResultSettled:   holds(func(b *protocol.Acknowledgement) layout { return layout{span: &b.Range} }),
	protocol.ReservationMade: holds(reservation),
	protocol.ReservationGone: holds(reservation),
	protocol.Quarantined:     holds(reason),
	protocol.SliceFailed:     holds(func(b *health.Fault) layout { return layout{whole: b} }),
	protocol.SliceMended:     holds(reason),
}

func final(b *protocol.Final) layout             { return layout{verdict: &b.Verdict} }
func queue(b *protocol.Queue) layout             { return layout{whole: b} }
func pause(b *protocol.JobPause) layout          { return layout{flag: &b.Paused} }
func sequel(b *protocol.Sequel) layout           { return layout{request: &b.Request, spec: &b.Spec} }
func inZone(b *protocol.InZone) layout           { return layout{zone: &b.Zone} }
func extent(b *protocol.Extent) layout           { return layout{span: &b.Range, end: &b.End, peak: &b.Peak} }
func reason(b *protocol.Reason) layout           { return layout{text: &b.Text} }
func reservation(b *protocol.Reservation) layout { return layout{whole: b} }

func claimEnd(b *protocol.ClaimEnd) layout {
	return layout{span: &b.Range, text: &b.Text, result: &b.Result, skipped: &b.Skipped}
}

// layout is where the fields of a fact's body are; nil: its kind has no such field. All bodies share one row of numbers, which is the
// format of the time when a fact was one flat list of fields.
type layout struct {
	node     *job.NodeID
	zone     *job.ZoneID
	slice    *job.SliceID
	place    *protocol.Placement // but for what follows of it, which other bodies have without it
	span     *job.Range
	end      *quantity.Instant
	peak     *trp.Peak
	flag     *bool
	request  *string
	text     *string
	digest   *string
	spec     **job.Spec
	verdict  *job.Verdict
	result   **job.Result
	skipped  *bool
	record   **protocol.Record
	speed    *int64
	bid      **protocol.Bid
	count    *int64
	members  *[]protocol.Member
	rank     *protocol.Rank
	whole    protocol.Body // a body that is one field
	optional bool          // which need not be there
}

// lacks says whether a field that its kind needs is not there. A record is none without its spec.
func (v *layout) lacks(n protowire.Number) bool {
	return n == 20 && *v.spec == nil || n == 23 && *v.result == nil || n == 27 && (*v.record == nil || (*v.record).Spec == nil)
}

func placement(p *protocol.Placement) layout {
	return layout{place: p, slice: &p.Slice, span: &p.Range, end: &p.End, peak: &p.Peak}
}

func factFields(c *coder.Coder, f *protocol.Fact) {
	coder.Enum(c, 1, &f.Kind, ^protocol.FactKind(0))
	if !c.Writing() && c.Err() == nil && !knownFact(f.Kind) {
		c.Newer("fact of kind %d", f.Kind)
		return
	}
	coder.Value(c, 2, &f.Actor, addressFields)
	coder.Text(c, 3, &f.Job)
	coder.Unsigned(c, 4, &f.Epoch)
	coder.Value(c, 5, &f.Token, tokenFields)
	is := &facts[f.Kind]
	v := is.lay(c, f)
	field(c, 6, v.node, coder.Text)
	field(c, 7, v.zone, coder.Text)
	field(c, 8, v.slice, coder.Text)
	p := v.place
	if p != nil {
		coder.Texts(c, 9, &p.Also)
	}
	value(c, 10, v.span, rangeFields)
	coder.Instant(c, 11, &f.At)
	if p != nil {
		coder.Instant(c, 12, &p.Start)
	}
	field(c, 13, v.end, coder.Instant)
	if p != nil {
		coder.Vector(c, 14, &p.Demand)
		coder.Value(c, 15, &p.Plan, planFields)
	}
	field(c, 16, v.flag, coder.Boolean)
	field(c, 17, v.request, coder.Text)
	field(c, 18, v.text, coder.Text)
	field(c, 19, v.digest, coder.Text)
	field(c, 20, v.spec, sharedSpec)
	whole(c, 21, &v, queueFields)
	value(c, 22, v.verdict, verdictFields)
	pointer(c, 23, v.result, resultFields)
	whole(c, 24, &v, learnedFields)
	field(c, 25, v.skipped, coder.Boolean)
	whole(c, 26, &v, reservationFields)
	pointer(c, 27, v.record, recordFields)
	field(c, 28, v.speed, coder.Signed)
	pointer(c, 29, v.bid, bidFields)
	whole(c, 30, &v, calibrationFields)
	whole(c, 31, &v, lessonFields)
	coder.Unsigned(c, 32, &f.Generation)
	field(c, 33, v.count, coder.Signed)
	if v.members != nil {
		coder.List(c, 34, v.members, memberFields)
	}
	value(c, 35, v.rank, rankFields)
	value(c, 36, v.peak, peakFields)
	whole(c, 37, &v, faultFields)
	if v.optional && v.whole == nil {
		f.Body = nil
	}
	if !c.Writing() && c.Err() == nil && v.lacks(is.needs) {
		absent(c, is.needs)
	}
}

// absent refuses a fact without a field that every one of its kind has.
func absent(c *coder.Coder, n protowire.Number) {
	c.Finish() // a newer field is no damage
	c.Damaged("no field %d, where a fact of its kind has one", n)
}

// filedFields is factFields, for Message.Filed.
func filedFields(c *coder.Coder, f *protocol.Fact) { factFields(c, f) }

// content is what facts of a kind have for a body, and how it is laid out.
type content struct {
	// fresh makes one to read into.
	fresh func() protocol.Body
	// bind says where the fields of a body are, which must be of this type.
	bind func(protocol.Body) layout
	// optional: facts of the kind may have no body.
	optional bool
	// needs is the number of a pointer that is in every fact of the kind, and without which it can't be folded; 0: there is none.
	needs protowire.Number
}

func holds[T any, P interface {
	*T
	protocol.Body
}](bind func(*T) layout) content {
	return content{
		fresh: func() protocol.Body { return P(new(T)) },
		bind: func(b protocol.Body) layout {
			p, ok := b.(P)
			if !ok {
				invariant.Check(false, "a fact with a body of type %T, where its kind has %T", b, p)
			}
			return bind(p)
		},
	}
}

func optional(c content) content {
	c.optional = true
	return c
}

func needs(n protowire.Number, c content) content {
	c.needs = n
	return c
}

// lay lays out the body of a fact, which is made for one that is read.
func (t *content) lay(c *coder.Coder, f *protocol.Fact) (v layout) {
	switch {
	case t.bind == nil:
		if f.Body != nil {
			invariant.Check(false, "a fact of kind %d with a body of type %T: such a fact has none", f.Kind, f.Body)
		}
	case !c.Writing():
		f.Body = t.fresh()
		v = t.bind(f.Body)
	case f.Body != nil || !t.optional:
		v = t.bind(f.Body)
	}
	v.optional = t.optional
	if v.slice == nil {
		v.slice = &f.Slice
	} else if f.Slice != "" {
		invariant.Check(false, "a fact of kind %d is about slice %s, where its body says which", f.Kind, f.Slice)
	}
	return v
}

// field is one that a kind may not have.
func field[T any](c *coder.Coder, n protowire.Number, v *T, code func(*coder.Coder, protowire.Number, *T)) {
	if v != nil {
		code(c, n, v)
	}
}

func value[T any](c *coder.Coder, n protowire.Number, v *T, fields func(*coder.Coder, *T)) {
	if v != nil {
		coder.Value(c, n, v, fields)
	}
}

func pointer[T any](c *coder.Coder, n protowire.Number, v **T, fields func(*coder.Coder, *T)) {
	if v != nil {
		coder.Pointer(c, n, v, fields)
	}
}

// whole is a body in one field, which must be there unless it is optional, since the kind has it.
func whole[T any, P interface {
	*T
	protocol.Body
}](c *coder.Coder, n protowire.Number, v *layout, fields func(*coder.Coder, *T)) {
	b, ok := v.whole.(P)
	if !ok {
		return
	}
	read := (*T)(b)
	if c.Writing() {
		coder.Pointer(c, n, &read, fields)
		return
	}
	read = nil
	switch coder.Pointer(c, n, &read, fields); {
	case read != nil:
		*b = *read
	case v.optional:
		v.whole = nil
	case c.Err() == nil:
		absent(c, n)
	}
}
