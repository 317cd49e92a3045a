package twin_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/bidder"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// picked is an honest agent under sja, but for what it does when its job is picked: turn counts how often it was.
type picked struct {
	*bidder.Agent
	turn int
	then func(turn int) pickedDoes
}

// pickedDoes is what an agent does that is asked for its piece.
type pickedDoes int

const (
	cuts pickedDoes = iota
	declines
	isSilent
	goesAway
)

func (p *picked) Hear(now quantity.Instant, m *protocol.Message) ([]protocol.Message, time.Duration) {
	answers, think := p.Agent.Hear(now, m)
	if m.Kind != protocol.Announce || m.Body.(*protocol.Call).Wanted != protocol.Subjob {
		return answers, think
	}
	p.turn++
	switch p.then(p.turn) {
	case declines:
		return []protocol.Message{{Kind: protocol.Answer, Body: &protocol.Proposal{Round: m.Body.(*protocol.Call).Round}}}, think
	case isSilent:
		return nil, 0
	case goesAway:
		return []protocol.Message{{Kind: protocol.Attend, Body: &protocol.Attendance{}}}, think
	}
	return answers, think
}

// declineTales are stories of jobs that are picked and may decline (mechanism sja).
func declineTales() []tale {
	agents := func(then map[job.ID]func(turn int) pickedDoes) sim.Agents {
		return func(_ *workload.Job, spec *job.Spec) sim.Agent {
			return &picked{Agent: bidder.New(spec, bidder.Honest{}, 20*time.Millisecond), then: then[spec.Name]}
		}
	}
	always := func(what pickedDoes) func(int) pickedDoes { return func(int) pickedDoes { return what } }
	once := func(what pickedDoes) func(int) pickedDoes {
		return func(turn int) pickedDoes {
			if turn == 1 {
				return what
			}
			return cuts
		}
	}
	external := func(s *job.Spec) {
		s.External, s.Parallelism, s.Worth, s.TauMin = true, 1, job.DefaultWorth, 20*time.Second
	}
	alone := func(s *job.Spec) { s.Parallelism = 1 }
	// All come while the slice is taken, and so are asked together.
	together := func(names ...job.ID) func(*testing.T, *story) {
		return func(t *testing.T, s *story) {
			s.submit(0, with(spec(t, "before", job.Items, 5, time.Second), alone))
			for _, name := range names {
				s.submit(time.Second, with(spec(t, name, job.Steps, 40, time.Second), external))
			}
		}
	}
	beside := func(names ...job.ID) func(*testing.T, *story) {
		return func(t *testing.T, s *story) {
			together(names...)(t, s)
			s.submit(2*time.Second, with(spec(t, "own", job.Items, 20, time.Second), alone))
		}
	}
	return []tale{
		{
			name: "declines", slices: one(10), until: 200 * time.Second,
			shows: []string{"wanted=interest", "wanted=subjob",
				"its agent cut no piece: the next in order is asked, and this job again in 1s", "it was picked for a window and declined"},
			agent: agents(map[job.ID]func(int) pickedDoes{"first": once(declines), "second": always(cuts)}),
			tell:  beside("first", "second"),
		},
		{
			name: "all-decline", slices: one(10), until: 100 * time.Second,
			shows: []string{"and this job again in 4s"},
			agent: agents(map[job.ID]func(int) pickedDoes{"first": always(declines), "second": always(declines), "third": always(declines),
				"fourth": always(declines)}),
			tell: together("first", "second", "third", "fourth"),
		},
		{
			name: "dies-when-picked", slices: one(10), until: 100 * time.Second,
			shows: []string{"its agent went away when it was asked for its piece"},
			agent: agents(map[job.ID]func(int) pickedDoes{"first": always(goesAway)}), tell: beside("first"),
		},
		{
			name: "always-first", slices: one(10), until: 200 * time.Second,
			shows: []string{"its agent did not cut the piece in time"},
			agent: agents(map[job.ID]func(int) pickedDoes{"first": always(isSilent)}),
			tell: func(t *testing.T, s *story) {
				beside("first")(t, s)
				s.submit(3*time.Second, with(spec(t, "next", job.Items, 20, time.Second), alone))
			},
		},
		{
			name: "crash-when-picked", slices: one(10), until: 200 * time.Second, shows: []string{"zone z comes up", "wanted=subjob"},
			agent: agents(map[job.ID]func(int) pickedDoes{"first": always(cuts)}), tell: beside("first"),
			faults: sim.Faults{Schedule: []sim.Fault{{Kind: sim.DaemonCrash, At: at(5030 * time.Millisecond), For: 10 * time.Second}}},
		},
	}
}
