package settle

import (
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostPublishing bounds of how many jobs the publications are asked about in one step: after a restart all are due at once.
const mostPublishing = 256

// Published: the output of a commit is in its place.
func (d *Settler) Published(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j := d.book.Job(in.Job)
	if j == nil {
		return
	}
	if _, found := j.Output().Find(in.Token); !found {
		return
	}
	d.book.Fact(out, protocol.Fact{Kind: protocol.OutputPublished, Job: j.ID, Token: in.Token})
	if len(j.Claims()) == 0 {
		d.Settled(now, j, out)
	}
}

// askPublications sends commits again to nodes that have not confirmed publication: their message may be lost, or a crash may have made
// them forget.
func (d *Settler) askPublications(now quantity.Instant, j *record.Job, out *protocol.Out) {
	j.Output().Ask(now, func(p *protocol.Publication) {
		d.acknowledge(protocol.Address{Role: protocol.Node, ID: string(p.Node)}, j.ID, p.Token, p.Range, out)
	})
	d.book.ArmOutput(j)
}

// sayClosed tells the gate of verdicts, and the archive of jobs that leave.
func (d *Settler) sayClosed(now quantity.Instant, out *protocol.Out) {
	for _, j := range d.book.Closed.DueVerdicts(now) {
		body := out.Closings.Keep(protocol.Closing{Verdict: j.Ending().Verdict(), At: j.Ending().Ended()})
		d.claims.Send(out, protocol.Message{
			Kind: protocol.Closed, To: d.cfg.Gates.Of(j.ID), Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Body: body,
		})
	}
	for _, j := range d.book.Closed.DueFilings(now) {
		filed := j.AppendFacts(nil)
		filed[0].Actor = d.cfg.Self
		to := protocol.Address{Role: protocol.Archive}
		d.claims.Send(out, protocol.Message{Kind: protocol.File, To: to, Job: j.ID, Generation: j.Generation, Filed: filed})
	}
}
