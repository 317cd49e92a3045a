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
	case protocol.Adopt:
		z.home.Adopt(now, &in, out)
	case protocol.Cancel:
		z.home.Cancel(now, &in, out)
	case protocol.PauseJob:
		z.home.Pause(&in, out)
	case protocol.QueueChanged:
		z.home.QueueChanged(&in, out)
	case protocol.ClosedAck:
		z.home.ClosedAck(&in)
	case protocol.Archived:
		z.home.Archived(&in, out)
	case protocol.Forget:
		z.home.Forget(now, &in, out)
	case protocol.Offer:
		z.offered(now, &in)
	case protocol.Granted:
		z.granted(now, &in, out)
	case protocol.Refused:
		z.refused(now, &in, out)
	case protocol.Leased:
		z.home.Leased(&in)
	case protocol.RedeemRefused:
		z.home.RedeemRefused(now, &in, out)
	case protocol.Running:
		z.home.Running(&in)
	case protocol.Report:
		z.home.Report(&in)
	case protocol.Result:
		z.home.Result(now, &in, out)
	case protocol.Published:
		z.home.Published(now, &in, out)
	case protocol.Extended:
		z.home.Extended(&in)
	case protocol.Tick:
		z.woken = 0 // no wake-up stands any more
	case protocol.Attend:
		if j := z.home.Job(in.Job); j != nil {
			z.floor.Attend(&entryOf(j).floor, in.Session, in.Flag)
		}
	case protocol.Answer:
		if j := z.home.Job(in.Job); j != nil {
			z.floor.Answer(now, &entryOf(j).floor, &in)
		}
	}
	z.after(now, out)
}

// Recover is called once, after the last fact. Everything outstanding is sent again from state.
func (z *Zone) Recover(now quantity.Instant, out *protocol.Out) {
	z.home.Recover(now, out)
	z.after(now, out)
}

// after is the same for every input: what is overdue is repeated, the market runs, the next wake-up is asked for.
func (z *Zone) after(now quantity.Instant, out *protocol.Out) {
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
			Kind: protocol.Wake, From: z.self, To: protocol.Address{Role: protocol.Timer}, At: wake,
		})
	}
}
