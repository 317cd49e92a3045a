package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// stay is a message of the only node to its executor at a time.
type stay struct {
	at quantity.Instant
	m  protocol.Message
}

// piece starts ten units of a second of a job, whose program takes five seconds to start and stays, under a token of this number.
func piece(at quantity.Instant, number uint64, id job.ID, change ...func(*protocol.Work)) stay {
	w := &protocol.Work{
		Placement: protocol.Placement{Slice: "n/s", Range: job.Range{To: 10}, End: at.Add(time.Minute)},
		Spec: &job.Spec{Kind: job.Items, Total: 100, Grid: 1, Startup: 5 * time.Second, Resident: true, Template: "t",
			Launch: job.Launch{Command: []string{"work"}, Grace: 2 * time.Second}},
	}
	for _, f := range change {
		f(w)
	}
	return stay{at, protocol.Message{Kind: protocol.Start, Job: id, Token: job.Token{Epoch: 1, Seq: number}, Body: w}}
}

func other(w *protocol.Work)    { w.Spec.Template = "other" }
func ordinary(w *protocol.Work) { w.Spec.Resident = false }
func warm(w *protocol.Work)     { w.Plan.Resident = true }

func dismiss(at quantity.Instant, number uint64) stay {
	return stay{at, protocol.Message{Kind: protocol.Dismiss, Token: job.Token{Epoch: 1, Seq: number},
		Body: &protocol.Holding{Slice: "n/s"}}}
}

func shift(at quantity.Instant, number uint64, end quantity.Instant) stay {
	return stay{at, protocol.Message{Kind: protocol.Deadline, Token: job.Token{Epoch: 1, Seq: number},
		Body: &protocol.Shift{End: end, Range: job.Range{To: 10}}}}
}

// stayed plays what a node tells its executor, and returns what it hears of ends: a line each.
func stayed(t *testing.T, list []stay, change ...func(*Options)) (lines []string) {
	t.Helper()
	n := &script{}
	n.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
		if in.Kind == protocol.Report { // stands for the test's own cue
			m := list[in.Session].m
			m.To = protocol.Address{Role: protocol.Executor, ID: "n"}
			out.Effects = append(out.Effects, m)
		}
	}
	o := Options{
		Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}},
		Nodes:   []Node{{ID: "n", Actor: n, Slices: []protocol.Slice{{ID: "n/s", Profile: "p"}}}},
		Rebuild: func(protocol.Address) protocol.Actor { return n },
		Model: func(m *protocol.Message) Behaviour {
			w := m.Body.(*protocol.Work)
			return Behaviour{Restore: w.Spec.Startup, Startup: w.Spec.Startup, PerUnit: time.Second, Peak: trp.Vector{7}, Yields: true}
		},
	}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		s.At(list[i].at, protocol.Message{Kind: protocol.Report, To: nodeAddress, Session: uint64(i), Body: &protocol.Observation{}})
	}
	if err := s.Run(context.Background(), 1000*sec); err != nil {
		t.Fatal(err)
	}
	numbers := map[job.Token]uint64{}
	for i := range list {
		if w, ok := list[i].m.Body.(*protocol.Work); ok {
			numbers[list[i].m.Token] = w.Spec.Residence(list[i].m.Job)
		}
	}
	for i, m := range n.heard {
		line := fmt.Sprintf("%v: %d ", n.at[i].Sub(0), m.Token.Seq)
		switch m.Kind {
		case protocol.Dismissed:
			line += "dismissed"
		case protocol.Exited:
			c := m.Body.(*protocol.Conclusion)
			line += fmt.Sprint(c.Result.Outcome, " from ", c.Result.Start.Sub(0), ", startup ", c.Result.Startup)
			if c.Result.Stayed {
				line += ", stayed"
			}
			if x := c.Resident; x != nil {
				line += fmt.Sprintf(", stays with %d since %v", x.Memory, x.Since.Sub(0))
				if want := numbers[m.Token]; x.Number != want {
					t.Errorf("the program that stays has the number %d, want %d", x.Number, want)
				}
			}
			if c.Result.Detail != "" {
				line += ": " + c.Result.Detail
			}
		default:
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// TestProgramsStay: what a simulated executor does with a program that stays between subjobs, and when it does not.
func TestProgramsStay(t *testing.T) {
	crash := func(k FaultKind, keep bool) func(*Options) {
		return func(o *Options) {
			o.Faults.Schedule = []Fault{{Kind: k, Node: "n", At: 20 * sec, For: time.Second, Keep: keep}}
		}
	}
	for _, c := range []struct {
		name   string
		list   []stay
		change []func(*Options)
		want   []string
	}{
		{"one after another, of several jobs of its template", []stay{piece(0, 1, "a"), piece(20*sec, 2, "b", warm), piece(40*sec, 3, "a")},
			nil, []string{
				"15s: 1 done from 0s, startup 5s, stays with 7 since 0s",
				"30s: 2 done from 20s, startup 0s, stayed, stays with 7 since 0s",
				"50s: 3 done from 40s, startup 0s, stayed, stays with 7 since 0s",
			}},
		{"without a template it is of its job alone", []stay{
			piece(0, 1, "a", func(w *protocol.Work) { w.Spec.Template, w.Spec.Resident = "", false }), piece(20*sec, 2, "a"),
		}, nil, []string{"15s: 1 done from 0s, startup 0s", "35s: 2 done from 20s, startup 5s, stays with 7 since 20s"}},
		{"one that was told twice that it begins says twice that its program stays", []stay{piece(0, 1, "a"), piece(20*sec, 1, "a"),
			dismiss(30*sec, 1), piece(30*sec, 1, "a")}, nil, []string{
			"15s: 1 done from 0s, startup 5s, stays with 7 since 0s", "20s: 1 done from 0s, startup 5s, stays with 7 since 0s",
			"30s: 1 done from 0s, startup 5s", "31s: 1 dismissed",
		}},
		{"dismissed, and asked again", []stay{piece(0, 1, "a"), dismiss(20*sec, 1), dismiss(20*sec+sec/2, 1), dismiss(22*sec, 1),
			piece(23*sec, 2, "b", other)}, nil, []string{
			"15s: 1 done from 0s, startup 5s, stays with 7 since 0s", "21s: 1 dismissed", "22s: 1 dismissed",
			"38s: 2 done from 23s, startup 5s, stays with 7 since 23s",
		}},
		{"a subjob that is for a program which is gone", []stay{piece(0, 1, "a"), dismiss(20*sec, 1), piece(22*sec, 2, "b", warm),
			piece(23*sec, 2, "b", warm)}, nil, []string{
			"15s: 1 done from 0s, startup 5s, stays with 7 since 0s", "21s: 1 dismissed",
			"22s: 2 node-failed from 0s, startup 0s: the program that stayed is gone",
			"23s: 2 node-failed from 0s, startup 0s: the program that stayed is gone",
		}},
		{"stopped by its node", []stay{piece(0, 1, "a"), {8 * sec, protocol.Message{Kind: protocol.Stop, Token: job.Token{Epoch: 1, Seq: 1},
			Body: &protocol.Halt{}}}, piece(20*sec, 2, "b", warm)}, nil, []string{
			"10s: 1 yielded from 0s, startup 5s", "20s: 2 node-failed from 0s, startup 0s: the program that stayed is gone",
		}},
		{"its time is taken", []stay{piece(0, 1, "a"), shift(8*sec, 1, 12*sec)}, nil, []string{"12s: 1 yielded from 0s, startup 5s"}},
		{"it gives up the rest by itself", []stay{piece(0, 1, "a", func(w *protocol.Work) { w.End = 12 * sec })}, nil,
			[]string{"12s: 1 yielded from 0s, startup 5s, stays with 7 since 0s"}},
		{"its time is over before it is ready", []stay{piece(0, 1, "a", func(w *protocol.Work) { w.End = 4 * sec })}, nil,
			[]string{"2s: 1 yielded from 0s, startup 0s, stays with 7 since 0s"}},
		{"it fails", []stay{piece(0, 1, "a")}, []func(*Options){func(o *Options) {
			model := o.Model
			o.Model = func(m *protocol.Message) Behaviour {
				b := model(m)
				b.Fails, b.FailAfter = job.ExitFailed, 8*time.Second
				return b
			}
		}}, []string{"8s: 1 failed from 0s, startup 5s: it failed"}},
		{"its machine crashes while it waits", []stay{piece(0, 1, "a"), piece(30*sec, 2, "b", warm), piece(40*sec, 3, "b", other)},
			[]func(*Options){crash(NodeCrash, false)}, []string{
				"15s: 1 done from 0s, startup 5s, stays with 7 since 0s",
				"30s: 2 node-failed from 0s, startup 0s: the program that stayed is gone",
				"55s: 3 done from 40s, startup 5s, stays with 7 since 40s",
			}},
		{"its daemon crashes while it waits", []stay{piece(0, 1, "a"), piece(30*sec, 2, "b", warm)},
			[]func(*Options){crash(NodeCrash, true)}, []string{"15s: 1 done from 0s, startup 5s, stays with 7 since 0s",
				"30s: 2 node-failed from 0s, startup 0s: the program that stayed is gone"}},
		{"the daemon crashes while it works", []stay{piece(10*sec, 1, "a"), piece(30*sec, 2, "b", warm)},
			[]func(*Options){crash(DaemonCrash, false)}, []string{"25s: 1 done from 10s, startup 5s",
				"30s: 2 node-failed from 0s, startup 0s: the program that stayed is gone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := stayed(t, c.list, c.change...); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestOthersEndWhatStays: what others begin on a slice ends the program that stays there, and what they announce does not.
func TestOthersEndWhatStays(t *testing.T) {
	hears := func(in protocol.Intrusion) (lines []string) {
		n := &script{}
		n.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
			if in.Kind == protocol.Inventory {
				m := piece(0, 1, "a").m
				m.To = protocol.Address{Role: protocol.Executor, ID: "n"}
				out.Effects = append(out.Effects, m)
			}
		}
		s := world(t, n)
		in.Slice = "n/s"
		s.At(90*sec, protocol.Message{Kind: protocol.Foreign, To: nodeAddress, Body: &in})
		if err := s.Run(context.Background(), 1000*sec); err != nil {
			t.Fatal(err)
		}
		for i, m := range n.heard {
			if m.Kind == protocol.Dismissed {
				lines = append(lines, fmt.Sprint(n.at[i].Sub(0), m.Token.Seq))
			}
		}
		return lines
	}
	hold := func(from, to quantity.Instant) protocol.Intrusion {
		return protocol.Intrusion{Closures: []protocol.Reservation{{Kind: protocol.ForForeign, Start: from, End: to}}}
	}
	for _, c := range []struct {
		in   protocol.Intrusion
		ends bool
	}{
		{protocol.Intrusion{Present: true, Text: "a process"}, true}, {hold(90*sec, quantity.Never), true}, {hold(0, 91*sec), true},
		{hold(100*sec, quantity.Never), false}, {hold(0, 90*sec), false}, {protocol.Intrusion{}, false},
	} {
		if got := hears(c.in); (len(got) == 1) != c.ends || c.ends && got[0] != "1m30s 1" {
			t.Errorf("%+v: it hears %v of ends; want one at once: %v", c.in, got, c.ends)
		}
	}
}

// TestSlicesAreNotSoldUnderAProgram: nobody else's subjob may begin on a slice before the program that stays there is confirmed gone.
func TestSlicesAreNotSoldUnderAProgram(t *testing.T) {
	for _, c := range []struct {
		name, want string
		list       []stay
	}{
		{"another template", "node n starts 1-2 of job b on slice n/s, where the program of job a that stayed after 1-1 waits",
			[]stay{piece(0, 1, "a"), piece(20*sec, 2, "b", other)}},
		{"no program that stays", "1-1 waits", []stay{piece(0, 1, "a"), piece(20*sec, 2, "b", ordinary)}},
		{"another command", "1-1 waits", []stay{piece(0, 1, "a"),
			piece(20*sec, 2, "b", func(w *protocol.Work) { w.Spec.Launch.Command = []string{"rest"} })}},
		{"one of several slices", "1-1 waits", []stay{piece(0, 1, "a"),
			piece(20*sec, 2, "b", ordinary, func(w *protocol.Work) { w.Slice, w.Also = "n/o", []job.SliceID{"n/s"} })}},
		{"not gone yet", "has been dismissed and is not gone", []stay{piece(0, 1, "a"), dismiss(20*sec, 1), piece(20*sec+sec/2, 2, "a")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, c.want) {
					t.Errorf("got %v, want that %s", said, c.want)
				}
			}()
			stayed(t, c.list, func(o *Options) {
				o.Nodes[0].Slices = append(o.Nodes[0].Slices, protocol.Slice{ID: "n/o", Profile: "p"})
			})
			t.Error("nobody minds")
		})
	}
}

// TestWaitingMemoryCounts: what a program has while it waits is used memory of its host.
func TestWaitingMemoryCounts(t *testing.T) {
	var s *Sim
	used := func() quantity.Amount { return s.hosts.used(&s.hosts.of[s.node], nil) }
	n := &script{}
	n.step = func(now quantity.Instant, in protocol.Message, out *protocol.Out) {
		m := piece(0, 1, "a").m
		switch in.Kind {
		case protocol.Inventory:
		case protocol.Report:
			m = dismiss(0, 1).m
		default:
			return
		}
		m.To = protocol.Address{Role: protocol.Executor, ID: "n"}
		out.Effects = append(out.Effects, m)
	}
	var err error
	if s, err = New(Options{
		Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}},
		Nodes: []Node{{ID: "n", Actor: n, Slices: []protocol.Slice{{ID: "n/s"}}}}, Memory: &HostMemory{Capacity: 100},
		Model: func(*protocol.Message) Behaviour { return Behaviour{PerUnit: time.Second, Peak: trp.Vector{7}} },
	}); err != nil {
		t.Fatal(err)
	}
	s.At(30*sec, protocol.Message{Kind: protocol.Report, To: nodeAddress, Body: &protocol.Observation{}})
	for _, c := range []struct {
		at   quantity.Instant
		want quantity.Amount
	}{{5 * sec, 0}, {20 * sec, 7}, {40 * sec, 0}} {
		if err := s.Run(context.Background(), c.at); err != nil {
			t.Fatal(err)
		}
		if got := used(); got != c.want {
			t.Errorf("at %v the host has %d in use beside subjobs, want %d", c.at.Sub(0), got, c.want)
		}
	}
}
