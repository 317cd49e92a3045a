package sim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/workload"
)

// TestTelling plays a zone that hears of a result late: the next run is on the slices by then, and the observer still never
// hears of two runs on one slice, nor of a job's end before that of its runs. The gate refuses the third job.
func TestTelling(t *testing.T) {
	gate, zone, node := &script{}, &script{}, &script{}
	gate.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
		if in.Kind == protocol.Submit && in.Job == "c" {
			out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Reply, To: in.From,
				Body: &protocol.Receipt{Request: in.Body.(*protocol.Submission).Request, Err: errkind.Errorf(errkind.Invalid, "no")}})
		}
	}
	launch := func(seq uint64, id job.ID, also ...job.SliceID) protocol.Message {
		return protocol.Message{
			Kind: protocol.Start, To: protocol.Address{Role: protocol.Executor, ID: "n"}, Token: job.Token{Epoch: 1, Seq: seq}, Job: id,
			Body: &protocol.Work{Placement: protocol.Placement{Slice: "n/0", Also: also, Range: job.Range{To: 1}, End: 1000 * sec,
				Plan: protocol.Plan{Wall: time.Minute}}, Spec: &job.Spec{Name: id, Kind: job.Rigid, Total: 1}},
		}
	}
	node.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
		switch {
		case in.Kind == protocol.Report: // stands for the test's own cue
			out.Effects = append(out.Effects, launch(1, "a", "n/1", "n/2"))
		case in.Kind == protocol.Exited && in.Job == "a":
			out.Effects = append(out.Effects, launch(2, "b"))
		}
	}
	zone.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) { // the test's cues
		f := protocol.Fact{Job: in.Job, Token: job.Token{Epoch: 1, Seq: in.Session}, Body: &protocol.ClaimEnd{Range: job.Range{To: 1}}}
		switch in.Kind {
		case protocol.Result:
			f.Kind = protocol.Committed
		case protocol.Refused:
			f.Kind = protocol.Released
		default:
			f.Kind, f.Body = protocol.Ended, &protocol.Final{Verdict: job.Verdict{State: job.Finished}}
		}
		out.Facts = append(out.Facts, f)
	}
	h := &heard{}
	names := []job.ID{"a", "b", "c"}
	jobs := list{oneJob(4), oneJob(4), oneJob(4)}
	nodes := []Node{{ID: "n", Actor: node}}
	for _, s := range []string{"n/0 small", "n/1 large", "n/2 small"} {
		id, profile, _ := strings.Cut(s, " ")
		nodes[0].Slices = append(nodes[0].Slices, protocol.Slice{ID: job.SliceID(id), Profile: profile, Capacity: trp.Vector{10},
			Speed: 1000})
	}
	s, err := New(Options{
		Gates: actor.OneGate(gate), Zones: []actor.ZoneAt{{ID: "z", Zone: zone}}, Nodes: nodes, Observer: h, Source: &jobs,
		Spec: func(*workload.Job) (*job.Spec, error) {
			name := names[0]
			names = names[1:]
			return &job.Spec{Name: name, Kind: job.Rigid, Total: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	to := protocol.Address{Role: protocol.Zone, ID: "z"}
	s.At(2*sec, protocol.Message{Kind: protocol.Report, To: nodeAddress, Body: &protocol.Observation{}})
	// its home has given up the run, and ended the job
	s.At(70*sec, protocol.Message{Kind: protocol.Closed, To: to, Job: "a", Body: &protocol.Closing{}})
	s.At(80*sec, protocol.Message{Kind: protocol.Result, To: to, Job: "a", Session: 1, Body: &protocol.Conclusion{}})
	s.At(130*sec, protocol.Message{Kind: protocol.Refused, To: to, Job: "b", Session: 2, Body: &protocol.Refusal{}})
	s.At(131*sec, protocol.Message{Kind: protocol.Closed, To: to, Job: "b", Body: &protocol.Closing{}})
	over, err := s.RunOut(context.Background(), 500*sec)
	if !over || err != nil || s.Now() != 131*sec {
		t.Errorf("over %v, %v, at %v", over, err, s.Now().Sub(0))
	}
	want := []string{
		"1s arrived 0", "1s arrived 1", "1s arrived 2", "1s done 2: NEVER",
		"2s began 0 on 2 of 0", "2s began 0 on 1 of 1",
		"1m20s ended 0: done, work 1m0s useful 1m0s overhead 0s", "1m20s ended 0: done, work 1m0s useful 1m0s overhead 0s",
		"1m20s done 0: COMPLETED",
		"1m20s began 1 on 1 of 0", "2m10s ended 1: done, work 0s useful 0s overhead 0s", "2m11s done 1: COMPLETED",
	}
	got := slices.DeleteFunc(slices.Clone(h.lines), func(l string) bool { return strings.HasPrefix(l, "sent") })
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p := h.pieces; len(p) == 3 && (p[0].First != 0 || p[0].Slices != 2 || p[1].First != 1 || p[0].End != 62*sec ||
		p[2].Start != 62*sec || p[2].Peak != 4) {
		t.Errorf("pieces %+v", p)
	}
}
