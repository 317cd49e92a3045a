package gate

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step takes in one message. Facts and effects are appended to out; now never goes back.
func (g *Gate) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	switch in.Kind {
	case protocol.Submit:
		g.submit(now, &in, out)
	case protocol.Cancel:
		g.cancel(&in, out)
	case protocol.Requeue:
		g.requeue(now, &in, out)
	case protocol.Delete:
		g.delete(&in, out)
	case protocol.PauseJob:
		if in.From.Role == protocol.Zone {
			if e := g.find(in.Job); e != nil && !e.verdict.State.Final() && e.generation == in.Generation.Number() {
				if e.heldKnown = e.held == in.Flag; !e.heldKnown {
					e.sent = 0 // an older word overtook a newer one: the zone is told again
				}
			}
		} else {
			g.pause(&in, out)
		}
	case protocol.SetQueue:
		g.setQueue(&in, out)
	case protocol.QueueChanged: // this is what the zone has
		g.unsent = slices.DeleteFunc(g.unsent, func(q *protocol.Queue) bool { return q.Name == in.Queue.Name })
		if i, found := g.findQueue(in.Queue.Name); found && *g.queues[i] != *in.Queue {
			g.unsent, g.unsentAt = append(g.unsent, g.queues[i]), 0 // an older word overtook a newer one
		}
	case protocol.Inventory:
		g.noteInventory(&in)
	case protocol.Adopted:
		g.adopted(&in, out)
	case protocol.Purged, protocol.Forgotten:
		g.left(&in, out)
	case protocol.Closed:
		g.closed(&in, out)
	case protocol.Tick:
		g.woken = 0 // no wake-up stands any more
	}
	g.after(now, out)
}

// Recover is called once, after the last fact: everything outstanding is sent again.
func (g *Gate) Recover(now quantity.Instant, out *protocol.Out) {
	for _, e := range g.jobs {
		e.heldKnown = !e.held || e.verdict.State.Final()
	}
	for _, f := range g.farewells {
		f.purged, f.forgotten, f.sent = false, false, 0
	}
	g.unsent, g.unsentAt = g.unsent[:0], 0
	for i, q := range g.queues {
		if g.queueSum(i) != 0 {
			g.unsent = append(g.unsent, q)
		}
	}
	g.after(now, out)
}

// adopted notes that a job has its home. A zone that has taken home a life of work that is gone is told to let go of it.
func (g *Gate) adopted(in *protocol.Message, out *protocol.Out) {
	e := g.find(in.Job)
	switch {
	case e == nil || in.Generation.Number() < e.since:
		g.send(out, protocol.Message{Kind: protocol.Forget, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number()})
	case e.epoch == in.Epoch && e.generation == in.Generation.Number() && !e.homed:
		g.fact(out, protocol.Fact{Kind: protocol.JobHomed, Job: in.Job, Epoch: in.Epoch})
	}
}

// closed takes a job's verdict down. That of an earlier life is confirmed and changes nothing; where the work itself is gone
// the zone has missed that.
func (g *Gate) closed(in *protocol.Message, out *protocol.Out) {
	e, of := g.find(in.Job), in.Generation.Number()
	if e != nil && (e.epoch != in.Epoch || of > e.generation) {
		return
	}
	if e != nil && e.generation == of && !e.verdict.State.Final() {
		g.fact(out, protocol.Fact{Kind: protocol.JobClosed, Job: in.Job, Verdict: in.Verdict, At: in.At})
	}
	g.send(out, protocol.Message{Kind: protocol.ClosedAck, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	if e == nil || of < e.since {
		g.send(out, protocol.Message{Kind: protocol.Forget, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	}
}

// after repeats what the zone has not confirmed, forgets what was kept long enough, and asks for the next wake-up.
func (g *Gate) after(now quantity.Instant, out *protocol.Out) {
	wake := quantity.Never
	for i := 0; i < len(g.open); i++ {
		e := g.open[i]
		if e.verdict.State.Final() {
			if at := e.ended.Add(g.cfg.Retain); at > now {
				wake = min(wake, at)
				continue
			}
			g.forget(e, out)
			i--
			continue
		}
		if e.homed && e.dropping == "" && e.heldKnown || g.leaving(e.id) {
			continue
		}
		if e.sent == 0 || e.sent.Add(g.cfg.Retry) <= now {
			e.sent = now
			g.tell(e, out)
		}
		wake = min(wake, e.sent.Add(g.cfg.Retry))
	}
	wake = min(wake, g.dismiss(now, out))
	if len(g.unsent) > 0 {
		if g.unsentAt == 0 || g.unsentAt.Add(g.cfg.Retry) <= now {
			g.unsentAt = now
			for _, q := range g.unsent {
				g.send(out, protocol.Message{Kind: protocol.QueueChanged, To: g.zone(g.cfg.Zone), Queue: q})
			}
		}
		wake = min(wake, g.unsentAt.Add(g.cfg.Retry))
	}
	if wake != quantity.Never && (wake < g.woken || g.woken <= now) {
		g.woken = wake
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Wake, From: g.self, To: protocol.Address{Role: protocol.Timer}, At: wake})
	}
}

// tell repeats to a job's home whatever it has not confirmed.
func (g *Gate) tell(e *entry, out *protocol.Out) {
	switch {
	case !e.homed:
		i, _ := g.findQueue(e.spec.Queue)
		g.send(out, protocol.Message{
			Kind: protocol.Adopt, To: g.home(e), Job: e.id, Epoch: e.epoch, Generation: e.generation, Since: e.since, Spec: e.spec, Queue: g.queues[i],
			At: e.begun, Flag: e.held,
		})
	case e.dropping != "":
		g.send(out, protocol.Message{Kind: protocol.Cancel, To: g.home(e), Job: e.id, Epoch: e.epoch, Generation: e.generation, Text: e.dropping})
	default:
		g.send(out, protocol.Message{Kind: protocol.PauseJob, To: g.home(e), Job: e.id, Epoch: e.epoch, Generation: e.generation, Flag: e.held})
	}
}

func (g *Gate) send(out *protocol.Out, m protocol.Message) {
	m.From = g.self
	out.Effects = append(out.Effects, m)
}

func (g *Gate) home(e *entry) protocol.Address { return g.zone(e.zone) }

func (g *Gate) zone(id job.ZoneID) protocol.Address {
	return protocol.Address{Role: protocol.Zone, ID: string(id)}
}

func (g *Gate) noteInventory(in *protocol.Message) {
	i := slices.IndexFunc(g.inventory, func(n nodeSlices) bool { return n.node == in.From.ID })
	if i < 0 {
		g.inventory = append(g.inventory, nodeSlices{node: in.From.ID, slices: in.Slices})
		return
	}
	g.inventory[i].slices = in.Slices
}

// Slices is the whole configured inventory, in the order in which nodes reported.
func (g *Gate) Slices() []protocol.Slice {
	var all []protocol.Slice
	for _, n := range g.inventory {
		all = append(all, n.slices...)
	}
	return all
}

// Queues lists the settings of all queues by name.
func (g *Gate) Queues() []protocol.Queue {
	var out []protocol.Queue
	for _, q := range g.queues {
		out = append(out, *q)
	}
	return out
}

// Life is the present life of the job of this name, 0 if there is none.
func (g *Gate) Life(id job.ID) job.Generation {
	if e := g.find(id); e != nil {
		return e.generation
	}
	return 0
}
