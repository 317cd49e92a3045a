package gate

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step takes in one message. Facts and effects are appended to out; now never goes back.
func (g *Gate) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	switch in.Kind {
	case protocol.Submit:
		g.submit(now, &in, in.Body.(*protocol.Submission), out)
	case protocol.Cancel:
		g.cancel(now, &in, in.Body.(*protocol.Cancellation), out)
	case protocol.Requeue:
		g.requeue(now, &in, in.Body.(*protocol.Requeueing), out)
	case protocol.Delete:
		g.delete(&in, in.Body.(*protocol.Deletion), out)
	case protocol.PauseJob:
		if in.From.Role == protocol.Zone {
			g.paused(&in, in.Body.(*protocol.Pause))
		} else {
			g.pause(&in, in.Body.(*protocol.Pause), out)
		}
	case protocol.SetQueue:
		g.setQueue(now, &in, in.Body.(*protocol.QueueSetting), out)
	case protocol.DrainZone:
		if in.From.Role == protocol.Gate {
			g.drainTold(now, &in, in.Body.(*protocol.Draining), out)
		} else {
			g.drainZone(now, &in, in.Body.(*protocol.Draining), out)
		}
	case protocol.Surrendered:
		g.surrendered(&in, in.Body.(*protocol.Record))
	case protocol.QueueChanged: // this is what a zone has, or another gate
		g.queueChanged(now, &in, in.Body.(*protocol.Queue), out)
	case protocol.Inventory:
		g.inventory.report(in.From.ID, in.Body.(*protocol.Stock).Slices)
		clear(g.chances)
		g.settle(now, out)
	case protocol.Redraw:
		g.redraw(now, &in, out)
	case protocol.Lenders:
		g.nameLenders(now, &in, in.Body.(*protocol.LenderList), out)
	case protocol.ZoneDigest:
		g.digested(now, &in, out)
	case protocol.Adopted:
		g.adopted(now, &in, out)
	case protocol.Purged, protocol.Forgotten:
		g.left(&in, out)
	case protocol.Closed:
		g.closed(&in, in.Body.(*protocol.Closing), out)
	case protocol.Archived:
		g.filed(&in, in.Body.(*protocol.Archival), out)
	case protocol.Outdated:
		g.outdated(&in, out)
	case protocol.Tick:
		g.woken = 0 // no wake-up stands any more
	}
	g.after(now, out)
}

// paused notes what the zone holds to.
func (g *Gate) paused(in *protocol.Message, p *protocol.Pause) {
	e := g.find(in.Job)
	if e == nil || e.over() || e.epoch != in.Epoch || e.generation != in.Generation.Number() {
		return
	}
	e.heldKnown = e.held == p.Held
	g.tell(e, !e.heldKnown) // where an older word overtook a newer one the zone is told again
}

// Recover is called once, after the last fact: everything outstanding is sent again.
func (g *Gate) Recover(now quantity.Instant, out *protocol.Out) {
	for _, e := range g.telling.All() { // nobody knows that a job goes on that was never paused since
		if !e.held {
			e.heldKnown = true
			g.tell(e, false)
		}
	}
	g.rehomeAll(now, out)
	for i, q := range g.queues {
		if g.queueSum(i) == 0 {
			for z := range q.telling {
				q.telling[z] = g.settings.Confirm(q.telling[z])
			}
		}
	}
	g.after(now, out)
}

// adopted notes that a job has its home. A zone that has taken home a life of work that is gone is told to let go of it.
func (g *Gate) adopted(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	e := g.about(in)
	switch {
	case e == nil || in.Generation.Number() < e.since:
		g.send(out, protocol.Message{Kind: protocol.Forget, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number()})
	case e.epoch == in.Epoch && e.generation == in.Generation.Number() && !e.homed && !e.over():
		g.fact(out, protocol.Fact{Kind: protocol.JobHomed, Job: in.Job, Epoch: in.Epoch})
		g.rehome(now, e, out)
	}
}

// closed takes a job's verdict down. That of an earlier life is confirmed and changes nothing; where the work itself is gone
// the zone has missed that.
func (g *Gate) closed(in *protocol.Message, c *protocol.Closing, out *protocol.Out) {
	e, of := g.about(in), in.Generation.Number()
	if e != nil && (e.epoch != in.Epoch && !e.leaves(in) || of > e.generation) {
		return
	}
	if e != nil && e.generation == of && !e.over() {
		if e.became().moving != nil && e.epoch == in.Epoch { // Adopted was lost
			g.fact(out, protocol.Fact{Kind: protocol.JobHomed, Job: in.Job, Epoch: in.Epoch})
		}
		g.fact(out, protocol.Fact{Kind: protocol.JobClosed, Job: in.Job, Verdict: c.Verdict, At: c.At})
	}
	g.send(out, protocol.Message{Kind: protocol.ClosedAck, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	if e == nil || of < e.since {
		g.send(out, protocol.Message{Kind: protocol.Forget, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	}
}

// after says what is not confirmed, forgets what was kept long enough, and asks for the next wake-up.
func (g *Gate) after(now quantity.Instant, out *protocol.Out) {
	pass := g.indexed
	if g.pass != nil {
		pass = g.pass
	}
	wake := pass(now, out)
	if wake != quantity.Never && (wake < g.woken || g.woken <= now) {
		g.woken = wake
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Wake, From: g.self, To: protocol.Address{Role: protocol.Timer}, Body: out.Moment(wake)})
	}
}

// indexed looks at what is due and at nothing else.
func (g *Gate) indexed(now quantity.Instant, out *protocol.Out) quantity.Instant {
	g.expire(now, out)
	g.told = take(&g.telling, now, g.told[:0])
	slices.SortFunc(g.told, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	for _, e := range g.told {
		g.say(e, out)
	}
	g.parting = take(&g.leaves, now, g.parting[:0])
	slices.SortFunc(g.parting, func(a, b *farewell) int { return cmp.Compare(a.id, b.id) })
	for _, f := range g.parting {
		g.dismiss(f, out)
	}
	settings := take(&g.settings, now, nil)
	slices.SortFunc(settings, func(a, b setting) int {
		return cmp.Or(cmp.Compare(a.queue.Name, b.queue.Name), cmp.Compare(a.zone, b.zone))
	})
	for _, s := range settings {
		g.send(out, protocol.Message{Kind: protocol.QueueChanged, To: g.listener(s.zone), Body: g.settingsOf(s.queue, s.zone)})
	}
	g.sayDrains(now, out)
	g.askInventory(now, out)
	g.file(now, out)
	return min(g.departing.Wake(), g.spreading.Wake(), g.telling.Wake(), g.leaves.Wake(), g.settings.Wake(), g.inventory.unheard.Wake(), g.expiring.Next(), g.leaving.Wake())
}

// askInventory asks the nodes of several zones that have not reported what they have.
func (g *Gate) askInventory(now quantity.Instant, out *protocol.Out) {
	unheard := take(&g.inventory.unheard, now, nil)
	slices.Sort(unheard)
	for _, n := range unheard {
		g.send(out, protocol.Message{Kind: protocol.Inventory, To: protocol.Address{Role: protocol.Node, ID: string(n)}, Body: &protocol.Stock{}})
	}
}

// take appends all that a box has to say now.
func take[T any](b *outbox.Box[T], now quantity.Instant, all []T) []T {
	for {
		one, ok := b.Next(now)
		if !ok {
			return all
		}
		all = append(all, one)
	}
}

// expire forgets jobs whose retention is over, a bounded number of them.
func (g *Gate) expire(now quantity.Instant, out *protocol.Out) {
	var due []*entry
	for len(due) < mostForgotten {
		e, ok := g.expiring.Due(now)
		if !ok {
			break
		}
		due = append(due, e)
	}
	slices.SortFunc(due, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	for _, e := range due {
		g.forget(e, out)
	}
}

// untold says that a job's home has not confirmed all that it is to know. A job that waits for a farewell is told of then.
func (g *Gate) untold(e *entry) bool {
	known := e.homed && e.heldKnown && (e.sequel == nil || e.sequel.dropping == "")
	somebody := e.zone != "" || g.waits(e.became().moving)
	return !known && somebody && !e.over() && g.farewells[e.id] == nil
}

// tell has a job's home told what it has not confirmed; news is told at once.
func (g *Gate) tell(e *entry, news bool) {
	switch {
	case !g.untold(e):
		e.telling = g.telling.Confirm(e.telling)
	case news || e.telling == nil:
		e.telling = g.telling.Say(e.telling, e)
	}
}

// announce has every zone told a queue's settings.
func (g *Gate) announce(q *queue) {
	for z := range q.telling {
		q.telling[z] = g.settings.Say(q.telling[z], setting{q, z})
	}
}

// settled takes down what a zone has of a queue. Where an older word overtook a newer one it is told again.
func (g *Gate) settled(q *queue, in *protocol.Message, has *protocol.Queue) {
	z := g.listens(in.From)
	if z < 0 || z >= len(q.telling) {
		return
	}
	if q.telling[z] = g.settings.Confirm(q.telling[z]); *g.settingsOf(q, z) != *has {
		q.telling[z] = g.settings.Say(q.telling[z], setting{q, z})
	}
}

// say repeats to a job's home whatever it has not confirmed.
func (g *Gate) say(e *entry, out *protocol.Out) {
	b := e.became()
	switch {
	case g.waits(b.moving):
		g.askBack(e, out)
	case !e.homed:
		i, _ := g.findQueue(e.spec.Queue)
		g.send(out, protocol.Message{
			Kind: protocol.Adopt, To: g.home(e), Job: e.id, Epoch: e.epoch, Generation: e.generation,
			Body: out.Adoption(protocol.Adoption{Since: e.since, Spec: e.spec, Queue: g.settingsOf(g.queues[i], g.zoneAt(e.zone)), At: b.begun, Held: e.held, Record: b.moving.surrendered()}),
		})
	case b.dropping != "":
		g.send(out, protocol.Message{
			Kind: protocol.Cancel, To: g.home(e), Job: e.id, Epoch: e.epoch, Generation: e.generation, Body: b.cancellation(),
		})
	default:
		g.send(out, protocol.Message{Kind: protocol.PauseJob, To: g.home(e), Job: e.id, Epoch: e.epoch, Generation: e.generation, Body: &protocol.Pause{Held: e.held}})
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

// Queues lists the settings of all queues by name.
func (g *Gate) Queues() []protocol.Queue {
	var out []protocol.Queue
	for _, q := range g.queues {
		out = append(out, *q.Queue)
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
