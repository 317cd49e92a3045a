package sim

import (
	"context"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestSuspended: one subjob of 20 s under a lease of 30 s, and what its node says of it.
func TestSuspended(t *testing.T) {
	suspend, resume := protocol.Message{Kind: protocol.Suspend, Body: &protocol.Reason{}}, protocol.Message{Kind: protocol.Resume}
	type cue struct {
		at time.Duration
		do protocol.Message
	}
	for _, c := range []struct {
		name string
		cues []cue
		said []bool // each word of whether it is suspended
		ends quantity.Instant
		want job.Outcome
		done int64
	}{
		{"it goes on where it stood", []cue{{5 * time.Second, suspend}, {9 * time.Second, resume}}, []bool{true, false}, 27 * sec, job.Done,
			200},
		{"told twice it does it once", []cue{{5 * time.Second, suspend}, {6 * time.Second, suspend}, {9 * time.Second, resume},
			{10 * time.Second, resume}}, []bool{true, true, false, false}, 27 * sec, job.Done, 200},
		{"its lease goes on without it", []cue{{5 * time.Second, suspend}}, []bool{true}, 30 * sec, job.DeadlineKilled, 120},
		{"and a later end leaves it where it is", []cue{{5 * time.Second, suspend},
			{6 * time.Second, protocol.Message{Kind: protocol.Deadline, Body: &protocol.Shift{End: 40 * sec}}}}, []bool{true}, 40 * sec,
			job.DeadlineKilled, 120},
		{"ended at once it is ended as it stands",
			[]cue{{5 * time.Second, suspend}, {15 * time.Second,
				protocol.Message{Kind: protocol.Stop, Body: &protocol.Halt{Now: true, Short: true}}}}, []bool{true}, 15 * sec, job.Stopped,
			120},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &script{}
			next := 0
			n.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
				switch in.Kind {
				case protocol.Inventory:
					out.Effects = append(out.Effects, start(job.Items))
				case protocol.Report:
					e := c.cues[next].do
					next++
					e.To, e.Token = protocol.Address{Role: protocol.Executor, ID: "n"}, job.Token{Epoch: 1, Seq: 1}
					out.Effects = append(out.Effects, e)
				default:
				}
			}
			s := world(t, n)
			for _, x := range c.cues {
				s.At(quantity.Instant(x.at), protocol.Message{Kind: protocol.Report, To: nodeAddress, Body: &protocol.Observation{}})
			}
			if err := s.Run(context.Background(), 100*sec); err != nil {
				t.Fatal(err)
			}
			var said []bool
			for i, m := range n.heard {
				switch m.Kind {
				case protocol.Suspended:
					said = append(said, m.Body.(*protocol.Stillness).Still)
				case protocol.Exited:
					r := m.Body.(*protocol.Conclusion).Result
					if n.at[i] != c.ends || r.Outcome != c.want || r.Progress != c.done {
						t.Errorf("it ended at %v with %v and %d, want %v, %v and %d", n.at[i], r.Outcome, r.Progress, c.ends, c.want,
							c.done)
					}
					said = append(said, true) // the last word
				default:
				}
			}
			want := append(c.said, true)
			if len(said) != len(want) {
				t.Fatalf("it said %v, want %v", said, want)
			}
			for i := range want {
				if said[i] != want[i] {
					t.Errorf("it said %v, want %v", said, want)
				}
			}
		})
	}
}

// TestItIsReportedSuspendedOnceItIsMovedOut: a subjob of 4 GiB is told to be suspended each second, from the second one on. Its
// executor confirms that only when its memory is in swap as far as there is room, after 10 s at the latest, so that until then Airlock
// counts its memory as being freed.
func TestItIsReportedSuspendedOnceItIsMovedOut(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	for _, c := range []struct {
		name       string
		room, pace quantity.Amount
		said       quantity.Instant
	}{
		{"all of it", 8 * gib, gib, 6 * sec},
		{"as far as there is room", 2 * gib, gib, 4 * sec},
		{"too slowly", 8 * gib, gib / 100, 12 * sec},
	} {
		n := &script{step: func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
			switch in.Kind {
			case protocol.Inventory:
				out.Effects = append(out.Effects, start(job.Items))
			case protocol.Report:
				out.Effects = append(out.Effects, protocol.Message{
					Kind: protocol.Suspend, To: protocol.Address{Role: protocol.Executor, ID: "n"}, Token: job.Token{Epoch: 1, Seq: 1},
					Body: &protocol.Reason{},
				})
			default:
			}
		}}
		memory := &HostMemory{
			Capacity: 16 * gib, Room: c.room, Pace: c.pace,
			Storms: []Storm{{At: sec, Node: "n", Shape: Jump, Size: 4 * gib, For: time.Hour}},
		}
		s, err := New(Options{
			Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}},
			Nodes: []Node{{ID: "n", Actor: n}}, Memory: memory,
		})
		if err != nil {
			t.Fatal(err)
		}
		for at := 2 * sec; at < 20*sec; at += sec {
			s.At(at+sec/20, protocol.Message{Kind: protocol.Report, To: nodeAddress, Body: &protocol.Observation{}})
		}
		if err := s.Run(context.Background(), 20*sec); err != nil {
			t.Fatal(err)
		}
		first := quantity.Instant(0)
		for i, m := range n.heard {
			if m.Kind == protocol.Suspended && first == 0 {
				first = n.at[i]
			}
		}
		if first < c.said || first > c.said+sec {
			t.Errorf("%s: it says so at %v, want about %v", c.name, time.Duration(first), time.Duration(c.said))
		}
	}
}

// TestShapesOfStorms: what each has taken after a part of its time.
func TestShapesOfStorms(t *testing.T) {
	type look struct {
		after time.Duration
		size  quantity.Amount
		over  bool
	}
	for shape, looks := range map[Shape][]look{
		Leak: {{0, 0, false}, {30 * time.Second, 512, false}, {time.Minute, 1024, true}, {time.Hour, 1024, true}},
		Many: {{30 * time.Second, 512, false}, {time.Hour, 1024, true}},
		Jump: {{0, 1024, false}, {59 * time.Second, 1024, false}, {time.Minute, 0, true}},
		Sawtooth: {{0, 0, false}, {7500 * time.Millisecond, 512, false}, {15 * time.Second, 0, false},
			{22500 * time.Millisecond, 512, false}, {time.Minute, 0, true}},
		ForkBomb:  {{0, 1, false}, {30 * time.Second, 32, false}, {54 * time.Second, 512, false}, {time.Minute, 1024, true}},
		PageCache: {{30 * time.Second, 512, false}, {time.Minute, 0, true}},
	} {
		s := Storm{Shape: shape, Size: 1024, For: time.Minute}
		for _, l := range looks {
			if size, over := s.extra(l.after); size != l.size || over != l.over {
				t.Errorf("%s after %v is %d, over: %v; want %d, %v", ShapeNames()[shape], l.after, size, over, l.size, l.over)
			}
		}
	}
	if len(ShapeNames()) != Shapes {
		t.Errorf("%d shapes have %d names", Shapes, len(ShapeNames()))
	}
}

func TestHostMemoryIsChecked(t *testing.T) {
	if errs := (&HostMemory{Capacity: 1, Storms: []Storm{{Size: 1, For: 1}}}).check(); len(errs) != 0 {
		t.Error(errs)
	}
	if errs := (*HostMemory)(nil).check(); len(errs) != 0 {
		t.Error(errs)
	}
	if errs := (&HostMemory{Capacity: 0, Storms: []Storm{{Size: 0, For: 1}, {Size: 1, For: 0},
		{Size: 1, For: 1, Shape: Shapes}}}).check(); len(errs) != 4 {
		t.Errorf("of four problems %d are found: %v", len(errs), errs)
	}
}
