package leases

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mail sends what is about a lease.
type mail struct{ record *record.Recorder }

func (m mail) toHome(l *Lease, k protocol.Kind, body protocol.Body, out *protocol.Out) {
	m.record.Send(out, protocol.Message{Kind: k, To: l.home(), Token: l.terms.Token, Job: l.terms.Job, Body: body})
}

func (m mail) toExecutor(l *Lease, k protocol.Kind, body protocol.Body, out *protocol.Out) {
	m.record.Send(out, protocol.Message{Kind: k, To: m.record.Executor(), Token: l.terms.Token, Job: l.terms.Job, Body: body})
}

func (m mail) result(l *Lease, out *protocol.Out) {
	t := &l.terms
	m.record.Send(out, protocol.Message{
		Kind: protocol.Result, To: l.home(), Token: t.Token, Job: t.Job, Epoch: t.Epoch, Generation: t.Generation,
		Body: out.Conclusions.Keep(protocol.Conclusion{Slice: t.Slice, Range: t.Range, Result: l.result, Start: t.Start, End: t.End}),
	})
}

func (m mail) running(l *Lease, at quantity.Instant, out *protocol.Out) {
	m.toHome(l, protocol.Running, out.Beginnings.Keep(protocol.Beginning{Slice: l.terms.Slice, At: at}), out)
}

func (m mail) leased(l *Lease, out *protocol.Out) {
	m.toHome(l, protocol.Leased, out.Holdings.Keep(protocol.Holding{Slice: l.terms.Slice}), out)
}

func (m mail) deadline(l *Lease, out *protocol.Out) {
	m.toExecutor(l, protocol.Deadline, &protocol.Shift{End: l.terms.End, Range: l.terms.Range, Text: l.terms.Text}, out)
}

func (m mail) extended(l *Lease, in *protocol.Message, e *protocol.Extension, out *protocol.Out) {
	t := &l.terms
	m.record.Send(out, protocol.Message{
		Kind: protocol.Extended, To: in.From, Body: &protocol.Extension{Ask: e.Ask, Slice: t.Slice, Range: t.Range, End: t.End},
		Token: t.Token, Job: t.Job,
	})
}

func (m mail) published(to protocol.Address, t job.Token, id job.ID, out *protocol.Out) {
	m.record.Send(out, protocol.Message{Kind: protocol.Published, To: to, Token: t, Job: id})
}
