package twin_test

import (
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone"
)

// census counts the messages that gates, zones and nodes send to one another, by kind and by job, and how many about a job have not
// arrived.
type census struct {
	kinds        map[protocol.Kind]int
	tasks        map[job.ID]map[protocol.Kind]int
	lost         map[job.ID]int
	placed, sent int
}

// between says whether a message is from one of them to another.
func between(m *protocol.Message) bool {
	is := func(r protocol.Role) bool { return r == protocol.Gate || r == protocol.Zone || r == protocol.Node }
	return is(m.From.Role) && is(m.To.Role)
}

// heard counts what has arrived.
func (c *census) heard(m *protocol.Message) {
	if m.Job != "" && between(m) {
		c.lost[m.Job]--
	}
}

func newCensus() *census {
	return &census{kinds: map[protocol.Kind]int{}, tasks: map[job.ID]map[protocol.Kind]int{}, lost: map[job.ID]int{}}
}

// said counts what a step has said.
func (c *census) said(list []protocol.Message) {
	for i := range list {
		m := &list[i]
		if !between(m) {
			continue
		}
		c.sent++
		c.kinds[m.Kind]++
		if m.Job != "" {
			if c.tasks[m.Job] == nil {
				c.tasks[m.Job] = map[protocol.Kind]int{}
			}
			c.tasks[m.Job][m.Kind]++
			c.lost[m.Job]++
		}
	}
}

type (
	countedGate struct {
		*gate.Gate
		*census
	}
	countedZone struct {
		*zone.Zone
		*census
	}
	countedNode struct {
		*node.Node
		*census
	}
)

func (a countedGate) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	a.heard(&in)
	from := len(out.Effects)
	a.Gate.Step(now, in, out)
	a.said(out.Effects[from:])
}

func (a countedZone) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	a.heard(&in)
	from := len(out.Effects)
	a.Zone.Step(now, in, out)
	a.said(out.Effects[from:])
}

func (a countedNode) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	a.heard(&in)
	from := len(out.Effects)
	a.Node.Step(now, in, out)
	a.said(out.Effects[from:])
}
