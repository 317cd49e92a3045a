package sim

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/tape"
)

const sec = quantity.Instant(time.Second)

// script is an actor that does what a test says and remembers what it heard.
type script struct {
	heard []protocol.Message
	at    []quantity.Instant
	step  func(now quantity.Instant, in protocol.Message, out *protocol.Out)
	sum   uint64
}

func (s *script) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	s.heard, s.at = append(s.heard, in), append(s.at, now)
	if s.step != nil {
		s.step(now, in, out)
	}
}
func (s *script) Apply(f protocol.Fact)                                     { s.sum += uint64(len(f.Job)) + 1 }
func (s *script) Recover(quantity.Instant, *protocol.Out)                   {}
func (s *script) Digest() uint64                                            { return s.sum }
func (s *script) Slices(quantity.Instant) []status.Slice                    { return nil }
func (s *script) Page(quantity.Instant, status.JobQuery) (p status.JobPage) { return p }
func (s *script) Windows(quantity.Instant) []status.Window                  { return nil }
func (s *script) Queues(quantity.Instant) []status.Queue                    { return nil }
func (s *script) Check(quantity.Instant, *job.Spec) error                   { return nil }
func (s *script) Life(job.ID) job.Generation                                { return 0 }
func (s *script) Home(job.ID) job.ZoneID                                    { return "z" }
func (s *script) Draw(*job.Spec) job.ZoneID                                 { return "z" }
func (s *script) Costs(cuts []status.Cut) []status.Cut                      { return cuts }
func (s *script) Cuts(quantity.Instant, protocol.Reservation) ([]status.Cut, error) {
	return nil, nil
}
func (*script) Strain(quantity.Instant) status.Strain                           { return status.Strain{} }
func (*script) Airlock(quantity.Instant) status.Airlock                         { return status.Airlock{} }
func (*script) AirlockSteps(job.ID, job.Generation) (none []status.AirlockStep) { return none }
func (*script) Reclaims(quantity.Instant) (none status.Reclaims)                { return none }
func (*script) HostWaits(uint64) (none []status.HostWait)                       { return none }
func (s *script) Brief(quantity.Instant, job.ID) (status.Job, bool)             { return status.Job{}, false }
func (s *script) Job(quantity.Instant, job.ID) (status.Job, bool) {
	return status.Job{}, false
}
func (s *script) ExplainFiled(quantity.Instant, *protocol.Record) (e status.Explanation) { return e }
func (s *script) Explain(quantity.Instant, job.ID) (status.Explanation, bool) {
	return status.Explanation{}, false
}
func (s *script) DryRun(quantity.Instant, *job.Spec) status.Explanation {
	return status.Explanation{}
}

func world(t *testing.T, node *script) *Sim {
	t.Helper()
	s, err := New(Options{Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}},
		Nodes: []Node{{ID: "n", Actor: node}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var nodeAddress = protocol.Address{Role: protocol.Node, ID: "n"}

func start(k job.Kind) protocol.Message {
	return protocol.Message{
		Kind: protocol.Start, To: protocol.Address{Role: protocol.Executor, ID: "n"}, Token: job.Token{Epoch: 1, Seq: 1},
		Body: &protocol.Work{Placement: protocol.Placement{Range: job.Range{From: 100, To: 200}, End: 30 * sec,
			Plan: protocol.Plan{Run: 20 * time.Second}}, Spec: &job.Spec{Kind: k, Total: 300, Grid: 8, Checkpoint: 3 * time.Second}},
	}
}

// TestMachine runs one subjob whose plan is 20 s of work and, for a piece that does not finish its job, 3 s of checkpoint.
func TestMachine(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   job.Kind
		after  time.Duration // when the effect is sent
		effect protocol.Message
		ends   quantity.Instant
		want   job.Result
	}{
		{"as planned", job.Steps, 0, protocol.Message{}, 23 * sec, job.Result{Outcome: job.Done, Progress: 200, Checkpoint: true}},
		{"a later deadline changes nothing", job.Steps, 1, protocol.Message{Kind: protocol.Deadline, Body: &protocol.Shift{End: 90 * sec}},
			23 * sec,
			job.Result{Outcome: job.Done, Progress: 200, Checkpoint: true}},
		{"extended by half", job.Items, 5 * time.Second,
			protocol.Message{Kind: protocol.Deadline, Body: &protocol.Shift{End: 90 * sec, Range: job.Range{From: 100, To: 250}}}, 33 * sec,
			job.Result{Outcome: job.Done, Progress: 250}},
		{"items cut short count to the grid", job.Items, 5 * time.Second,
			protocol.Message{Kind: protocol.Deadline, Body: &protocol.Shift{End: 10 * sec}}, 10 * sec,
			job.Result{Outcome: job.Stopped, ExitCode: -1, Signal: 9, Progress: 144}},
		{"a chain cut short counts nothing", job.Steps, 5 * time.Second,
			protocol.Message{Kind: protocol.Deadline, Body: &protocol.Shift{End: 10 * sec}}, 10 * sec,
			job.Result{Outcome: job.Stopped, ExitCode: -1, Signal: 9, Progress: 100}},
		{"stopped", job.Items, 5 * time.Second, protocol.Message{Kind: protocol.Stop, Body: &protocol.Halt{}}, 5 * sec,
			job.Result{Outcome: job.Stopped, ExitCode: -1, Signal: 9, Progress: 120}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &script{}
			n.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
				switch in.Kind {
				case protocol.Inventory:
					out.Effects = append(out.Effects, start(c.kind), start(c.kind))
				case protocol.Report: // stands for the test's own cue
					e := c.effect
					e.To, e.Token = protocol.Address{Role: protocol.Executor, ID: "n"}, job.Token{Epoch: 1, Seq: 1}
					out.Effects = append(out.Effects, e)
				}
			}
			s := world(t, n)
			s.At(quantity.Instant(c.after), protocol.Message{Kind: protocol.Report, To: nodeAddress, Body: &protocol.Observation{}})
			if err := s.Run(context.Background(), 100*sec); err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(n.heard, func(m protocol.Message) bool { return m.Kind == protocol.Exited })
			if i < 0 || n.at[i] != c.ends {
				t.Fatalf("heard %d messages, ended at %v, want %v", len(n.heard), n.at, c.ends)
			}
			got := *n.heard[i].Body.(*protocol.Conclusion).Result
			c.want.End, c.want.FirstProgress = c.ends, got.FirstProgress
			if got != c.want || got.FirstProgress != 200*quantity.Instant(time.Millisecond) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			exits := 0
			for _, m := range n.heard {
				if m.Kind == protocol.Exited {
					exits++
				}
			}
			if exits != 1 {
				t.Errorf("it ended %d times", exits)
			}
		})
	}
}

func TestRestlessActorsAreFound(t *testing.T) {
	n := &script{}
	n.step = func(_ quantity.Instant, _ protocol.Message, out *protocol.Out) {
		n.heard, n.at = nil, nil
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Report, To: nodeAddress, Body: &protocol.Observation{}})
	}
	if err := world(t, n).Run(context.Background(), sec); err == nil || !strings.Contains(err.Error(), "do not come to rest") {
		t.Errorf("got %v", err)
	}
}

func TestSameInstantKeepsTheOrderOfTheCalls(t *testing.T) {
	n := &script{}
	s := world(t, n)
	for i := range uint64(600) { // more than a round takes
		s.At(5*sec, protocol.Message{Kind: protocol.Report, To: nodeAddress, Session: i, Body: &protocol.Observation{}})
	}
	if err := s.Run(context.Background(), 9*sec); err != nil || s.Now() != 9*sec {
		t.Fatalf("%v, now %d", err, s.Now())
	}
	for i, m := range n.heard[1:] {
		if m.Session != uint64(i) || n.at[i+1] != 5*sec {
			t.Fatalf("message %d came at place %d, at %d", m.Session, i, n.at[i+1])
		}
	}
}

// reel is a tape made by hand.
type reel []tape.Entry

func (r *reel) Next() (tape.Entry, error) {
	if len(*r) == 0 {
		return tape.Entry{}, io.EOF
	}
	e := (*r)[0]
	*r = (*r)[1:]
	return e, nil
}

func TestReplayErrors(t *testing.T) {
	recovered := tape.Entry{Kind: tape.Recovered, Fact: protocol.Fact{Kind: protocol.Booted, Actor: nodeAddress}}
	call := tape.Entry{Kind: tape.StepCall, Actor: nodeAddress, Now: sec, Message: protocol.Message{Kind: protocol.Tick}}
	for _, c := range []struct {
		name string
		reel reel
		kind errkind.Kind
	}{
		{"another digest", reel{recovered, call, {Kind: tape.Digest, Digest: 9}}, errkind.Conflict},
		{"a gap", reel{recovered, {Kind: tape.Lost, Missing: 3}}, errkind.Unavailable},
		{"an unknown actor", reel{{Kind: tape.StepCall, Actor: protocol.Address{Role: protocol.Node, ID: "other"}}}, errkind.Invalid},
		{"a digest before any call", reel{{Kind: tape.Digest}}, errkind.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Replay(&c.reel, []actor.Party{{Address: nodeAddress, Actor: &script{}}}, nil); errkind.Of(err) != c.kind {
				t.Errorf("got %v, want kind %v", err, c.kind)
			}
		})
	}
	good := reel{recovered, call, {Kind: tape.Digest, Digest: 1}}
	if r, err := Replay(&good, []actor.Party{{Address: nodeAddress, Actor: &script{}}}, nil); err != nil || r.Compared != 1 ||
		r.Recovered != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
