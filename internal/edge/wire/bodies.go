package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// bodies says which body goes with each kind of message, and what its fields are; a kind that is not in it has none.
var bodies = [256]codec{ //nolint:gochecknoglobals // a table, written to by nobody
	protocol.Submit:        body(submissionFields),
	protocol.Cancel:        body(cancellationFields),
	protocol.PauseJob:      body(pauseFields),
	protocol.SetQueue:      body(queueSettingFields),
	protocol.Reply:         body(replyFields),
	protocol.Requeue:       body(requeueingFields),
	protocol.Delete:        body(deletionFields),
	protocol.DrainZone:     body(drainingFields),
	protocol.Reserve:       body(bookingFields),
	protocol.Unreserve:     body(bookingFields),
	protocol.Release:       body(clearanceFields),
	protocol.Adopt:         body(adoptionFields),
	protocol.Closed:        body(closingFields),
	protocol.QueueChanged:  body(queueFields),
	protocol.Surrender:     body(movingFields),
	protocol.Surrendered:   body(recordFields),
	protocol.Offer:         body(viewFields),
	protocol.Ask:           body(askingFields),
	protocol.Granted:       body(grantFields),
	protocol.Refused:       body(refusalFields),
	protocol.Redeem:        body(workFields),
	protocol.Leased:        body(holdingFields),
	protocol.RedeemRefused: body(refusalFields),
	protocol.Running:       body(beginningFields),
	protocol.Report:        body(observationFields),
	protocol.Result:        body(conclusionFields),
	protocol.ResultAck:     body(acknowledgementFields),
	protocol.Extend:        body(extensionFields),
	protocol.Extended:      body(extensionFields),
	protocol.Stop:          body(haltFields),
	protocol.Inventory:     body(stockFields),
	protocol.Start:         body(workFields),
	protocol.Started:       body(beginningFields),
	protocol.Exited:        body(conclusionFields),
	protocol.Stuck:         body(reasonFields),
	protocol.Deadline:      body(shiftFields),
	protocol.Settle:        body(settlementFields),
	protocol.Foreign:       body(intrusionFields),
	protocol.Wake:          body(momentFields),
	protocol.Ailing:        body(ailmentFields),
	protocol.Pressure:      body(strainFields),
	protocol.Suspend:       body(reasonFields),
	protocol.Suspended:     body(stillnessFields),
	protocol.Checkup:       body(vitalsFields),
	protocol.Wished:        body(wishesFields()),
	protocol.Winning:       body(prizeFields),
	protocol.Attend:        body(attendanceFields),
	protocol.Announce:      body(callFields),
	protocol.Answer:        body(proposalFields),
	protocol.Told:          body(newsFields),
	protocol.Archived:      body(archivalFields),
	protocol.Visiting:      body(visitFields),
	protocol.Lenders:       body(lenderListFields),
	protocol.Borrow:        body(loanFields),
	protocol.Lent:          body(lendingFields),

	protocol.Search: body(errandFields), protocol.Redraw: body(errandFields), protocol.Back: body(errandFields),
	protocol.Landing: body(findingFields),
	protocol.Probe:   body(inquiryFields), protocol.Probed: body(responseFields), protocol.Room: body(summaryFields),
	protocol.ZoneDigest: body(digestFields),
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

func stockFields(c *coder.Coder, s *protocol.Stock) {
	coder.List(c, 1, &s.Slices, sliceFields)
	coder.List(c, 2, &s.Found, foundFields)
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
