// Package bidder is the simulated agents of external jobs: an honest one, which answers as a built-in job would with what
// it has learned itself, and strategies that change its answers in their own favour or to others' harm. It knows the
// messages and the job's side of the negotiation, and nothing of how windows are cleared.
package bidder

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Agent bids for one job. Make it with New.
type Agent struct {
	spec     *job.Spec
	strategy Strategy
	think    time.Duration
	learned  learned
}

// New makes the agent of a job that thinks so long before it answers, unless its strategy has it otherwise.
func New(spec *job.Spec, s Strategy, think time.Duration) *Agent {
	return &Agent{spec: spec, strategy: s, think: think}
}

// Hear handles the zone's message and returns the answers after the time that it takes to think (sim.Agent).
func (a *Agent) Hear(now quantity.Instant, m *protocol.Message) ([]protocol.Message, time.Duration) {
	switch m.Kind {
	case protocol.Told:
		news := m.Body.(*protocol.News)
		a.learned.told(a.spec, news.Round, news.Notices)
	case protocol.Announce:
		call := m.Body.(*protocol.Call)
		t := Turn{Now: now, Spec: a.spec, Call: call, Session: m.Session, Think: a.think}
		t.Answers = []protocol.Message{{Kind: protocol.Answer, Body: &protocol.Proposal{Round: call.Round, Variants: a.honest(now, call)}}}
		a.strategy.Change(&t)
		for i := range t.Answers {
			a.learned.said(call, t.Answers[i].Body.(*protocol.Proposal).Variants)
		}
		return t.Answers, t.Think
	}
	return nil, 0
}

// honest is what the job would do in every window, with what it is worth to it.
func (a *Agent) honest(now quantity.Instant, c *protocol.Call) (out []protocol.Variant) {
	for i := range c.Windows {
		v, w := atomizer.FromCall(a.spec, c, &c.Windows[i])
		a.learned.MemoryScale = max(a.learned.MemoryScale, c.Memory)
		v.Learned = &a.learned.Learned
		w.End = w.Start.Add(a.learned.room(time.Duration(quantity.MulDiv(int64(w.End.Sub(w.Start)), 1000, max(1000, c.Pace)))))
		out = atomizer.Propose(&v, w, c.Most, now, out)
	}
	if len(out) == 0 {
		a.learned.caution = 0 // with so little room it can do nothing
	}
	return out
}
