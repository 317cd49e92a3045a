package zone

import (
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
)

// Step handles one message. Facts and effects are appended to out; now never goes back.
func (z *Zone) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if !(*senders)(z).entitled(&in) {
		return
	}
	if z.home.AnswerArchived(&in, out) {
		z.after(now, out)
		return
	}
	switch in.Kind {
	case protocol.Offer:
		v := in.Body.(*protocol.SliceView)
		if z.sites.SetView(now, in.Epoch, v) && v.Room != nil && z.seek != nil {
			z.seek.Ground().Hear(v.Node, v.Room)
		}
		if v.Usable {
			z.home.Claims().Delays.Offered(now, v.Slice.ID)
		}
		z.reach.Settled(v.Node)
	case protocol.Inventory:
		list := in.Body.(*protocol.Stock).Slices
		switch {
		case in.From.Role == protocol.Provider:
			z.reach.Lend(in.From.ID, list)
		case len(list) > 0:
			z.reach.Await(job.NodeID(in.From.ID))
		}
	case protocol.Granted:
		z.granted(now, &in, in.Body.(*protocol.Grant), out)
	case protocol.Refused:
		z.refused(now, &in, in.Body.(*protocol.Refusal), out)
	case protocol.Removed:
		z.remove(now, in.Body.(*protocol.Removal).Node, out)
	case protocol.Tick:
		z.woken = 0 // no wake-up is pending any more
	case protocol.Attend:
		if j := z.home.Book().Job(in.Job); j != nil {
			z.floor.Attend(&entryOf(j).floor, in.Session, in.Body.(*protocol.Attendance).Present)
		}
	case protocol.Answer:
		if j := z.home.Book().Job(in.Job); j != nil {
			z.floor.Answer(now, &entryOf(j).floor, &in, in.Body.(*protocol.Proposal))
		}
	case protocol.Sighted:
		(*unserved)(z).sighted(now, &in, in.Body.(*supply.Sight), out)
	case protocol.Result:
		teachStart(z.home.Book().Job(in.Job), z.floor, &in, in.Body.(*protocol.Conclusion))
		z.home.Step(now, &in, out)
	default:
		if !z.federated(now, &in, out) {
			z.home.Step(now, &in, out)
		}
	}
	z.after(now, out)
}

// teachStart has the floor learn how a subjob began, unless its result has been heard before.
func teachStart(j *home.Job, floor *market.Floor, in *protocol.Message, c *protocol.Conclusion) {
	if j == nil || c.Result == nil {
		return
	}
	if claim := j.ClaimSet().Claim(in.Token); claim != nil {
		floor.Started(&entryOf(j).floor, claim.Node, c.Result)
	}
}

// Recover is called once, after the last fact. Everything outstanding is sent again from state.
func (z *Zone) Recover(now quantity.Instant, out *protocol.Out) {
	if z.seek != nil {
		z.seek.Resume(now)
	}
	z.home.Recover(now, out)
	z.after(now, out)
}

// after is the same for every input: what is overdue is repeated, the market runs, the next wake-up is asked for.
func (z *Zone) after(now quantity.Instant, out *protocol.Out) {
	defer z.sites.ForgetForeign()
	if z.pass != nil {
		z.pass(now, out)
		return
	}
	wake := z.home.Settle().Overdue(now, out)
	wake = min(wake, z.home.Settle().Continue(now, func(j *home.Job, c *protocol.Claim, st *home.ClaimState) {
		if j.Spec.Extends() {
			z.overrun(now, j, c, st, out)
		} else if z.seek == nil {
			z.continueInto(now, j, c, st, out)
		}
	}))
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

// sell plans rigid jobs, and then has the floor offer every window that opens now, or tickets search. It returns when to look again.
func (z *Zone) sell(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.lapse(now, out)
	z.sites.Turn(now)
	z.guests.Expire(now)
	z.planner.UpdateLine()
	z.keepCaps(now)
	wake := min(z.planner.Plan(now, out), z.trade(now, out))
	if z.seek != nil {
		wake = min(wake, z.seek.Tick(now, out), z.seek.Visit(now, out))
	} else {
		wake = min(wake, z.floor.Sell(now, z.home.Book().Waiting(), out))
	}
	return min(wake, z.planner.Unanswered(), z.sites.Next(), z.home.Next(now))
}

// keepCaps finds the gangs that queues' caps keep from running, among the zone's own.
func (z *Zone) keepCaps(now quantity.Instant) {
	if !z.planner.Invalid() {
		return
	}
	z.gangs = z.gangs[:0]
	for _, j := range z.planner.Gangs() {
		if j.Guest == nil { // of a guest its home's cap counts
			z.gangs = append(z.gangs, rigidOf(j))
		}
	}
	z.caps.Keep(now, z.gangs, z.home.Book().ChangedIn)
}
