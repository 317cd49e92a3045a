package gate

import (
	"slices"

	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step handles one message. Facts and effects are appended to out; now never goes back.
func (g *Gate) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if !entitled(&in, g.stock) {
		return
	}
	switch in.Kind {
	case protocol.Submit:
		g.desk.Submit(now, &in, in.Body.(*protocol.Submission), out)
	case protocol.Cancel:
		g.desk.Cancel(now, &in, in.Body.(*protocol.Cancellation), out)
	case protocol.Requeue:
		g.desk.Requeue(now, &in, in.Body.(*protocol.Requeueing), out)
	case protocol.Delete:
		g.desk.Delete(&in, in.Body.(*protocol.Deletion), out)
	case protocol.PauseJob:
		if in.From.Role == protocol.Zone {
			g.paused(&in, in.Body.(*protocol.Pause))
		} else {
			g.desk.Pause(&in, in.Body.(*protocol.Pause), out)
		}
	case protocol.SetQueue:
		g.desk.SetQueue(now, &in, in.Body.(*protocol.QueueSetting), out)
	case protocol.QueueChanged: // this is what a zone has, or another gate
		g.queueChanged(now, &in, in.Body.(*protocol.Queue), out)
	case protocol.Inventory:
		g.stock.Report(in.From.ID, in.Body.(*protocol.Stock).Slices)
		g.homes.Forget()
		g.drawHomes(now, out)
	case protocol.Removed:
		g.stock.Remove(string(in.Body.(*protocol.Removal).Node))
		g.homes.Forget()
	case protocol.Adopted:
		g.adopted(now, &in, out)
	case protocol.Purged, protocol.Forgotten:
		if in.Kind == protocol.Purged || !g.drains.Departed(&in, out) {
			g.left(&in, out)
		}
	case protocol.Closed:
		g.closed(&in, in.Body.(*protocol.Closing), out)
	case protocol.Archived:
		g.filed(&in, in.Body.(*protocol.Archival), out)
	case protocol.Outdated:
		g.outdated(&in, out)
	case protocol.Tick:
		g.woken = 0 // no wake-up is pending any more
	default:
		g.federated(now, &in, out)
	}
	g.after(now, out)
}

// federated handles the messages of several zones, or of tickets.
func (g *Gate) federated(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	switch {
	case in.Kind == protocol.DrainZone && in.From.Role == protocol.Gate:
		g.draining().Told(now, in, in.Body.(*protocol.Draining), out)
	case in.Kind == protocol.DrainZone:
		g.draining().Drain(now, in, in.Body.(*protocol.Draining), out)
	case in.Kind == protocol.Surrendered && g.drains != nil:
		g.drains.Surrendered(in, in.Body.(*protocol.Record))
	case g.homes == nil: // nobody else asks
	case in.Kind == protocol.Redraw:
		if m, ok := g.homes.Redraw(now, in); ok {
			g.send(out, m)
		}
	case in.Kind == protocol.ZoneDigest:
		if g.homes.Hear(now, in, g.jobs.Waits()) {
			g.drawHomes(now, out)
		}
	case in.Kind == protocol.Lenders:
		j, home := g.jobs.Find(in.Job), job.ZoneID("")
		if in.From.Role == protocol.Zone {
			home = job.ZoneID(in.From.ID)
		}
		if j == nil || j.Over() {
			return
		}
		if l := g.homes.Lenders(now, j.ID(), j.Spec(), home, in.Body.(*protocol.LenderList)); l != nil {
			g.send(out, protocol.Message{Kind: protocol.Lenders, To: in.From, Job: in.Job, Body: l})
		}
	}
}

// paused handles a zone's pause ack.
func (g *Gate) paused(in *protocol.Message, p *protocol.Pause) {
	j := g.jobs.Find(in.Job)
	if j == nil || j.Over() || j.Epoch() != in.Epoch || j.Generation() != in.Generation.Number() {
		return
	}
	known := j.Paused() == p.Paused
	j.Know(known)
	g.tell(j, !known) // where an older word overtook a newer one the zone is told again
}

// queueChanged records a listener's settings of a queue, and from the first gate the settings for all.
func (g *Gate) queueChanged(now quantity.Instant, in *protocol.Message, has *protocol.Queue, out *protocol.Out) {
	first := g.cfg.Gates.First()
	switch is := g.queues.Find(has.Name); {
	case g.self == first:
		from := g.at(job.ZoneID(in.From.ID))
		if in.From.Role != protocol.Zone {
			if from = slices.Index(g.cfg.Gates, job.GateID(in.From.ID)); from > 0 {
				from += len(g.cfg.Zones) - 1
			} else {
				from = -1
			}
		}
		g.queues.Heard(from, has)
		return
	case in.From != first: // it has been told by the first
		return
	case is == nil || *is != *has:
		g.fact(out, protocol.Fact{Kind: protocol.QueueSet, Body: has})
		g.drawHomes(now, out)
	}
	g.send(out, protocol.Message{Kind: protocol.QueueChanged, To: in.From, Body: has})
}

// adopted notes that a job has its home. A zone that adopted a life of a forgotten job is told to forget it too.
func (g *Gate) adopted(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j, of := g.desk.About(in), in.Generation.Number()
	switch {
	case j == nil || of < j.Since():
		g.send(out, protocol.Message{Kind: protocol.Forget, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	case j.Epoch() == in.Epoch && j.Generation() == of && !j.Homed() && !j.Over():
		g.fact(out, protocol.Fact{Kind: protocol.JobHomed, Job: in.Job, Epoch: in.Epoch})
		g.drains.Rehome(now, j, out)
	}
}

// closed takes a job's verdict down. That of an earlier life is confirmed and changes nothing; where the work itself is gone
// the zone has missed that.
func (g *Gate) closed(in *protocol.Message, c *protocol.Closing, out *protocol.Out) {
	j, of := g.desk.About(in), in.Generation.Number()
	if j != nil && (j.Epoch() != in.Epoch && !j.Leaves(in) || of > j.Generation()) {
		return
	}
	if j != nil && j.Generation() == of && !j.Over() {
		if _, _, moves := j.Moves(); moves && j.Epoch() == in.Epoch { // Adopted was lost
			g.fact(out, protocol.Fact{Kind: protocol.JobHomed, Job: in.Job, Epoch: in.Epoch})
		}
		g.fact(out, protocol.Fact{Kind: protocol.JobClosed, Job: in.Job, At: c.At, Body: &protocol.Final{Verdict: c.Verdict}})
	}
	g.send(out, protocol.Message{Kind: protocol.ClosedAck, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	if j == nil || of < j.Since() {
		g.send(out, protocol.Message{Kind: protocol.Forget, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	}
}

// left notes that the executor, a home or the archive has nothing more of a job's earlier lives.
func (g *Gate) left(in *protocol.Message, out *protocol.Out) {
	if last := g.names.Left(in, out); last > 0 {
		g.fact(out, protocol.Fact{Kind: protocol.JobPurged, Job: in.Job, Generation: last})
	}
}

// filed drops a job that the archive has. A copy of an earlier life changes nothing.
func (g *Gate) filed(in *protocol.Message, a *protocol.Archival, out *protocol.Out) {
	if j := g.jobs.Find(in.Job); j != nil && j.Over() && j.Generation() == in.Generation.Number() {
		g.fact(out, protocol.Fact{Kind: protocol.JobArchived, Job: j.ID(), Generation: j.Generation(),
			Body: &protocol.Archiving{Changes: int64(a.Count)}})
	}
}

// outdated forgets an archived job. A part that was left behind by a job which is here again, in a later life, goes as soon as
// its home has taken its own back.
func (g *Gate) outdated(in *protocol.Message, out *protocol.Out) {
	if j := g.jobs.Find(in.Job); j != nil {
		if j.Homed() && in.Generation.Number() < j.Generation() {
			g.send(out, protocol.Message{Kind: protocol.Purge, To: protocol.Address{Role: protocol.Archive}, Job: j.ID(),
				Generation: j.Generation()})
		}
		return
	}
	if j := g.desk.About(in); j != nil && j.Generation() == in.Generation.Number() {
		g.desk.Forget(j, out)
	}
}

// Recover is called once, after the last fact: everything outstanding is sent again.
func (g *Gate) Recover(now quantity.Instant, out *protocol.Out) {
	for _, j := range g.jobs.Untold() { // nobody knows that a job goes on that was never paused since
		if !j.Paused() {
			j.Know(true)
			g.tell(j, false)
		}
	}
	g.drains.RehomeAll(now, out)
	g.queues.Recover()
	g.after(now, out)
}

// after resends what is unconfirmed, forgets what was kept long enough, and sets the next wake-up.
func (g *Gate) after(now quantity.Instant, out *protocol.Out) {
	pass := g.indexed
	if g.pass != nil {
		pass = g.pass
	}
	wake := pass(now, out)
	if wake != quantity.Never && (wake < g.woken || g.woken <= now) {
		g.woken = wake
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Wake, From: g.self, To: protocol.Address{Role: protocol.Timer},
			Body: out.Moment(wake)})
	}
}

// indexed looks at what is due and at nothing else.
func (g *Gate) indexed(now quantity.Instant, out *protocol.Out) quantity.Instant {
	for _, j := range g.jobs.Expired(now) {
		g.desk.Forget(j, out)
	}
	for _, j := range g.jobs.Told(now) {
		g.say(j, out)
	}
	g.names.Tell(now, g.gone, out)
	for _, t := range g.queues.Told(now) {
		g.send(out, protocol.Message{Kind: protocol.QueueChanged, To: g.cfg.listener(t.To), Body: t.Queue})
	}
	g.drains.Repeat(now, out)
	for _, n := range g.stock.Asked(now) {
		g.send(out, protocol.Message{Kind: protocol.Inventory, To: protocol.Address{Role: protocol.Node, ID: string(n)},
			Body: &protocol.Stock{}})
	}
	for _, j := range g.jobs.Leaving(now) {
		g.file(j, out)
	}
	return min(g.drains.Wake(), g.jobs.Wake(), g.names.Wake(), g.queues.Wake(), g.stock.Wake())
}

// file sends the archive a job that is to leave. Later messages about it are answered from the facts that the driver finds there and
// attaches to the message (docs/adr/0022-archive.md).
func (g *Gate) file(j *jobs.Job, out *protocol.Out) {
	filed := j.AppendFacts(nil)
	for i := range filed {
		filed[i].Actor = g.self
	}
	g.send(out, protocol.Message{Kind: protocol.File, To: protocol.Address{Role: protocol.Archive}, Job: j.ID(), Generation: j.Generation(),
		Filed: filed})
}

// say repeats to a job's home whatever it has not confirmed.
func (g *Gate) say(j *jobs.Job, out *protocol.Out) {
	if g.waits(j) {
		g.drains.AskBack(j, out)
		return
	}
	m := protocol.Message{Kind: protocol.PauseJob, To: zone(j.Zone()), Job: j.ID(), Epoch: j.Epoch(), Generation: j.Generation()}
	if c, _ := j.Cancelled(); !j.Homed() {
		_, record, _ := j.Moves()
		queue := g.queues.Of(g.queues.Find(j.Spec().Queue), g.at(j.Zone()))
		m.Kind, m.Body = protocol.Adopt, out.Adoptions.Keep(protocol.Adoption{Since: j.Since(), Spec: j.Spec(), Queue: queue, At: j.Begun(),
			Paused: j.Paused(), Record: record})
	} else if c != nil {
		m.Kind, m.Body = protocol.Cancel, c
	} else {
		m.Body = &protocol.Pause{Paused: j.Paused()}
	}
	g.send(out, m)
}
