package zone

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step takes in one message. Facts and effects are appended to out; now never goes back.
func (z *Zone) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if z.home.AnswerArchived(&in, out) {
		z.after(now, out)
		return
	}
	switch in.Kind {
	case protocol.Offer:
		z.offered(now, &in, in.Body.(*protocol.SliceView))
	case protocol.Granted:
		z.granted(now, &in, in.Body.(*protocol.Grant), out)
	case protocol.Refused:
		z.refused(now, &in, in.Body.(*protocol.Refusal), out)
	case protocol.Search, protocol.Back, protocol.Landing, protocol.Probed, protocol.Room:
		z.hear(now, &in, out)
	case protocol.Announce, protocol.Told, protocol.Parting:
		z.called(now, &in, out)
	case protocol.Winning:
		z.prize(now, &in, out)
	case protocol.Lenders:
		z.named(now, in.Job, in.Body.(*protocol.LenderList), out)
	case protocol.Borrow:
		if in.From.Role == protocol.Zone {
			z.lend(now, in.From, in.Job, in.Epoch, in.Body.(*protocol.Loan))
		}
	case protocol.Lent:
		if in.From.Role == protocol.Zone {
			z.lent(now, in.From, in.Job, in.Body.(*protocol.Lending), out)
		}
	case protocol.Tick:
		z.woken = 0 // no wake-up stands any more
	case protocol.Attend:
		if j := z.home.Job(in.Job); j != nil {
			z.floor.Attend(&entryOf(j).floor, in.Session, in.Body.(*protocol.Attendance).Present)
		}
	case protocol.Answer:
		if j := z.home.Job(in.Job); j != nil {
			z.floor.Answer(now, &entryOf(j).floor, &in, in.Body.(*protocol.Proposal))
		}
	default:
		z.home.Step(now, &in, out)
	}
	z.after(now, out)
}

// Recover is called once, after the last fact. Everything outstanding is sent again from state.
func (z *Zone) Recover(now quantity.Instant, out *protocol.Out) {
	if z.search != nil {
		z.search.Resume(now)
	}
	z.home.Recover(now, out)
	z.after(now, out)
}

// after is the same for every input: what is overdue is repeated, the market runs, the next wake-up is asked for.
func (z *Zone) after(now quantity.Instant, out *protocol.Out) {
	defer z.forgetForeign()
	if z.pass != nil {
		z.pass(now, out)
		return
	}
	wake := z.home.Overdue(now, out)
	wake = min(wake, z.continuations(now, out))
	z.wakeAt(now, min(wake, z.sell(now, out)), out)
}

// wakeAt asks for a wake-up unless an earlier one is on its way.
func (z *Zone) wakeAt(now, wake quantity.Instant, out *protocol.Out) {
	if wake != quantity.Never && (wake < z.woken || z.woken <= now) {
		z.woken = wake
		out.Effects = append(out.Effects, protocol.Message{
			Kind: protocol.Wake, From: z.self, To: protocol.Address{Role: protocol.Timer}, Body: out.Moment(wake),
		})
	}
}
