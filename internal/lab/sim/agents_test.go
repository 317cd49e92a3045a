package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// echo answers every call after a time, and notes what it hears.
type echo struct {
	think time.Duration
	heard []protocol.Kind
}

func (e *echo) Hear(_ quantity.Instant, m *protocol.Message) ([]protocol.Message, time.Duration) {
	e.heard = append(e.heard, m.Kind)
	if m.Kind != protocol.Announce {
		return nil, 0
	}
	return []protocol.Message{{Kind: protocol.Answer, Body: &protocol.Proposal{Round: m.Body.(*protocol.Call).Round}},
		{Kind: protocol.Answer, Body: &protocol.Proposal{Round: m.Body.(*protocol.Call).Round}, Session: 99, Job: "x"}}, e.think
}

// market takes homes of external jobs, announces to whoever attends, and ends a job with its first answer.
type market struct {
	script
	lines []string
	first quantity.Instant
	old   uint64 // the session that it calls first instead of the one that there is, 0 for none
}

func (z *market) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if in.From.Role == protocol.Bidder {
		here, _ := in.Body.(*protocol.Attendance)
		z.lines = append(z.lines, fmt.Sprintf("%v %s %s/%s %d %t", now.Sub(z.first),
			[]string{"attends", "announce", "answers"}[in.Kind-protocol.Attend], in.From.ID, in.Job, in.Session, here != nil &&
				here.Present))
	}
	switch {
	case in.Kind == protocol.Submit:
		out.Facts = append(out.Facts, protocol.Fact{Kind: protocol.HomeTaken, Job: in.Job,
			Body: &protocol.Taking{Spec: in.Body.(*protocol.Submission).Spec}})
	case in.Kind == protocol.Attend && in.Body.(*protocol.Attendance).Present:
		if z.old != 0 {
			in.Session, z.old = z.old, 0
		}
		out.Effects = append(out.Effects, protocol.Message{
			Kind: protocol.Announce, To: in.From, Job: in.Job, Session: in.Session, Body: &protocol.Call{Round: 7},
		}, protocol.Message{
			// of a session that is not there
			Kind: protocol.Told, To: in.From, Job: in.Job, Session: in.Session + 1, Body: &protocol.News{},
		})
	case in.Kind == protocol.Answer:
		out.Facts = append(out.Facts, protocol.Fact{Kind: protocol.Ended, Job: in.Job, Body: &protocol.Final{}})
	}
}

func (z *market) Digest() uint64 { return 0 }

func talk(t *testing.T, agent Agent, o Options, specs ...*job.Spec) *market {
	t.Helper()
	return talkTo(t, &market{first: 5 * sec}, agent, o, specs...)
}

func talkTo(t *testing.T, z *market, agent Agent, o Options, specs ...*job.Spec) *market {
	t.Helper()
	o.Gates, o.Zones, o.Nodes = actor.OneGate(&script{}), []actor.ZoneAt{{ID: "z", Zone: z}}, []Node{{ID: "n", Actor: &script{}}}
	o.Agent = func(j *workload.Job, s *job.Spec) Agent {
		if j != nil || !s.External {
			t.Errorf("an agent is asked for of %v, %+v", j, s)
		}
		return agent
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		s.At(5*sec, protocol.Message{Kind: protocol.Submit, To: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: spec.Name,
			Body: &protocol.Submission{Spec: spec}})
	}
	if err := s.Run(t.Context(), 100*sec); err != nil {
		t.Fatal(err)
	}
	if n := len(s.agents.of); n > 0 && len(z.lines) > 0 && o.Network.ZoneBidder.Loss == 0 {
		t.Errorf("%d agents attend at the end", n)
	}
	return z
}

// TestAgents: who attends when, and what is said in whose name.
func TestAgents(t *testing.T) {
	e := &echo{think: 250 * time.Millisecond}
	z := talk(t, e, Options{}, &job.Spec{Name: "a", External: true}, &job.Spec{Name: "b"})
	want := []string{"0s attends a/a 1 true", "250ms answers a/a 1 false", "250ms answers a/a 99 false", "250ms attends a/a 1 false"}
	if !slices.Equal(z.lines, want) {
		t.Errorf("the zone hears %q, want %q", z.lines, want)
	}
	if !slices.Equal(e.heard, []protocol.Kind{protocol.Announce}) {
		t.Errorf("the agent hears %v: what is of another session is not for it", e.heard)
	}
	late := Options{Network: Network{ZoneBidder: Link{Delay: time.Second}}}
	z = talk(t, &echo{think: 250 * time.Millisecond}, late, &job.Spec{Name: "a", External: true})
	if want := []string{"1s attends a/a 1 true", "3.25s answers a/a 1 false", "3.25s answers a/a 99 false",
		"4.25s attends a/a 1 false"}; !slices.Equal(z.lines, want) {
		t.Errorf("with a delay the zone hears %q, want %q", z.lines, want)
	}
	if z := talk(t, nil, Options{}, &job.Spec{Name: "a", External: true}); len(z.lines) > 0 {
		t.Errorf("nobody attends, and the zone hears %q", z.lines)
	}
}

// TestAgentsAttendUntilHeard: where half of all is lost an agent says again that it is there until the zone answers.
func TestAgentsAttendUntilHeard(t *testing.T) {
	for seed := range uint64(20) {
		e := &echo{}
		z := talk(t, e, Options{Seed: seed, Network: Network{ZoneBidder: Link{Loss: 500_000}}}, &job.Spec{Name: "a", External: true})
		if len(e.heard) == 0 || len(z.lines) == 0 {
			t.Errorf("seed %d: after 100 s the agent has heard %v, and the zone %q", seed, e.heard, z.lines)
		}
	}
}

// TestAgentsSayWhichConnectionIsGone: the zone calls one that is not there, since an old Attend came to it late.
func TestAgentsSayWhichConnectionIsGone(t *testing.T) {
	e := &echo{}
	z := talkTo(t, &market{first: 5 * sec, old: 9}, e, Options{}, &job.Spec{Name: "a", External: true})
	want := []string{"0s attends a/a 1 true", "0s attends a/a 9 false", "0s attends a/a 1 true", "0s answers a/a 1 false",
		"0s answers a/a 99 false", "0s attends a/a 1 false"}
	if !slices.Equal(z.lines, want) {
		t.Errorf("the zone hears %q, want %q", z.lines, want)
	}
}

// TestAgentsComeBack: after a crash of the zone every agent opens a new session, in the order of their jobs.
func TestAgentsComeBack(t *testing.T) {
	z := &market{first: 5 * sec}
	silent := &echo{}
	o := Options{
		Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: z}}, Nodes: []Node{{ID: "n", Actor: &script{}}},
		Agent:  func(*workload.Job, *job.Spec) Agent { return mute{silent} },
		Faults: Faults{Schedule: []Fault{{Kind: DaemonCrash, At: 10 * sec, For: 3 * time.Second}}},
	}
	again := &market{first: 13 * sec}
	o.Rebuild = func(a protocol.Address) protocol.Actor {
		if a.Role == protocol.Zone {
			return again
		}
		return &script{}
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []job.ID{"b", "a"} {
		s.At(5*sec, protocol.Message{Kind: protocol.Submit, To: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: id,
			Body: &protocol.Submission{Spec: &job.Spec{Name: id, External: true}}})
	}
	if err := s.Run(t.Context(), 100*sec); err != nil {
		t.Fatal(err)
	}
	if want := []string{"0s attends b/b 1 true", "0s attends a/a 1 true"}; !slices.Equal(z.lines, want) {
		t.Errorf("before the crash the zone hears %q, want %q", z.lines, want)
	}
	if want := []string{"0s attends a/a 2 true", "0s attends b/b 2 true"}; !slices.Equal(again.lines, want) {
		t.Errorf("after it %q, want %q", again.lines, want)
	}
	if want := slices.Repeat([]protocol.Kind{protocol.Announce}, 4); !slices.Equal(silent.heard, want) {
		t.Errorf("the agents hear %v, want %v", silent.heard, want)
	}
}

// mute hears and never answers.
type mute struct{ *echo }

func (m mute) Hear(now quantity.Instant, in *protocol.Message) ([]protocol.Message, time.Duration) {
	m.echo.Hear(now, in)
	return nil, 0
}
