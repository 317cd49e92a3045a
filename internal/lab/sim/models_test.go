package sim

import (
	"context"
	"errors"
	"fmt"
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
	"sluice.dev/sluice/internal/lab/sim/skew"
	"sluice.dev/sluice/internal/lab/workload"
)

// link sends so many messages from the node to the zone and says when which of them arrived.
func link(t *testing.T, n int, o Options) (at []quantity.Instant, asks []uint64) {
	t.Helper()
	zone, node := &script{}, &script{}
	node.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
		if in.Kind == protocol.Inventory {
			for i := range n {
				out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Offer, To: protocol.Address{Role: protocol.Zone, ID: "z"},
					Session: uint64(i), Body: &protocol.SliceView{}})
			}
		}
	}
	o.Gates, o.Zones, o.Nodes = actor.OneGate(&script{}), []actor.ZoneAt{{ID: "z", Zone: zone}}, []Node{{ID: "n", Actor: node}}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background(), 1000*sec); err != nil {
		t.Fatal(err)
	}
	for _, m := range zone.heard {
		asks = append(asks, m.Session)
	}
	return zone.at, asks
}

func TestNetwork(t *testing.T) {
	const n = 20_000
	if at, asks := link(t, n, Options{}); len(at) != n || at[n-1] != 0 || !slices.IsSorted(asks) {
		t.Errorf("without a model %d arrive", len(at))
	}
	rough := Options{Seed: 3, Network: Network{ZoneNode: Link{Delay: time.Second, Jitter: time.Second, Loss: 100_000, Double: 200_000}}}
	at, asks := link(t, n, rough)
	times := map[uint64]int{}
	sum := 0.
	for i, a := range asks {
		times[a]++
		sum += at[i].Sub(0).Seconds()
		if at[i] < sec {
			t.Fatalf("one arrived after %v, the delay is a second", at[i].Sub(0))
		}
	}
	twice := 0
	for _, k := range times {
		if k == 2 {
			twice++
		}
	}
	if lost := n - len(times); lost < n/10-300 || lost > n/10+300 {
		t.Errorf("%d of %d are lost, a tenth should be", lost, n)
	}
	if want := n * 9 / 10 / 5; twice < want-300 || twice > want+300 {
		t.Errorf("%d come twice, about %d should", twice, want)
	}
	if mean := sum / float64(len(at)); mean < 1.97 || mean > 2.03 {
		t.Errorf("the mean delay is %v s, it should be 2", mean)
	}
	if slices.IsSorted(asks) {
		t.Error("jitter does not reorder")
	}
	if _, again := link(t, n, rough); !slices.Equal(asks, again) {
		t.Error("the same seed gives another order")
	}
	rough.Seed++
	if _, other := link(t, n, rough); slices.Equal(asks, other) {
		t.Error("another seed gives the same order")
	}
	// A draw belongs to one message: with ten fewer after it, a message fares as before.
	if _, fewer := link(t, 10, rough); slices.ContainsFunc(fewer, func(a uint64) bool { return a > 9 }) || len(fewer) > 20 {
		t.Errorf("got %v", fewer)
	}
}

// TestCourse: how a piece really ends whose plan was wrong. Its units take 200 ms each; a checkpoint takes 3 s.
func TestCourse(t *testing.T) {
	spec := job.Spec{Kind: job.Steps, Total: 300, Grid: 8, Checkpoint: 3 * time.Second, Launch: job.Launch{Grace: 2 * time.Second}}
	for _, c := range []struct {
		name   string
		change func(*job.Spec, *course)
		now    quantity.Instant // when it learns of its end
		at     time.Duration
		how    job.Outcome
		upTo   int64
	}{
		{"in time", nil, 0, 23 * time.Second, job.Done, 200},
		{"to the end of its job", func(_ *job.Spec, r *course) { r.rng.To = 300 }, 0, 27800 * time.Millisecond, job.Yielded, 224},
		{"it finishes its job and leaves no checkpoint", func(_ *job.Spec, r *course) { r.rng.From = 165; r.rng.To = 300 }, 0,
			27 * time.Second, job.Done, 300},
		{"at the last cut point that fits", func(_ *job.Spec, r *course) { r.end = 20 * sec }, 0, 19800 * time.Millisecond, job.Yielded,
			184},
		{"as late as that is told", func(_ *job.Spec, r *course) { r.end = 12 * sec }, 5 * sec, 11800 * time.Millisecond, job.Yielded, 144},
		{"told too late for that, in time for now",
			func(_ *job.Spec, r *course) { r.end = 12 * sec; r.does.PerUnit = 100 * time.Millisecond },
			8500 * quantity.Instant(time.Millisecond), 11500 * time.Millisecond, job.Yielded, 184},
		{"told too late for anything", func(_ *job.Spec, r *course) { r.end = 12 * sec }, 10 * sec, 12 * time.Second, job.DeadlineKilled,
			100},
		{"told too late, and its time was taken", func(_ *job.Spec, r *course) { r.end, r.cut = 12*sec, true }, 10 * sec, 12 * time.Second,
			job.Stopped, 100},
		{"nothing will be complete", func(_ *job.Spec, r *course) { r.end = 7 * sec / 2 }, 0, 1500 * time.Millisecond, job.Yielded, 100},
		{"items killed keep what is complete", func(s *job.Spec, r *course) { s.Kind = job.Items; r.does.Yields = false; r.end = 10 * sec },
			0,
			10 * time.Second, job.DeadlineKilled, 144},
		{"items yield too", func(s *job.Spec, r *course) { s.Kind = job.Items; r.end = 10 * sec }, 0, 8600 * time.Millisecond, job.Yielded,
			128},
		{"a rigid job at its walltime", func(s *job.Spec, r *course) {
			s.Kind, s.Total, r.rng, r.does.PerUnit = job.Rigid, 1, job.Range{To: 1}, time.Minute
			r.work().Plan.Wall = 20 * time.Second
			r.end = 22 * sec
		}, 0, 20 * time.Second, job.DeadlineKilled, 0},
		{"a rigid job that started late", func(s *job.Spec, r *course) {
			s.Kind, s.Total, r.rng, r.does.PerUnit = job.Rigid, 1, job.Range{To: 1}, time.Minute
			r.work().Plan.Wall = 20 * time.Second
			r.end = 21 * sec
		}, 0, 20 * time.Second, job.DeadlineKilled, 0},
		{"a rigid job that was extended", func(s *job.Spec, r *course) {
			s.Kind, s.Total, r.rng, r.does.PerUnit = job.Rigid, 1, job.Range{To: 1}, time.Minute
			r.work().Plan.Wall = 20 * time.Second
			r.end = 90 * sec
		}, 0, time.Minute, job.Done, 1},
		{"memory", func(_ *job.Spec, r *course) { r.does.Fails, r.does.FailAfter = job.MemoryKilled, 7*time.Second }, 0, 7 * time.Second,
			job.MemoryKilled, 100},
		{"memory of items", func(s *job.Spec, r *course) {
			s.Kind = job.Items
			r.does.Fails, r.does.FailAfter = job.MemoryKilled, 7*time.Second
		}, 0, 7 * time.Second, job.MemoryKilled, 128},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec
			r := &course{
				does:  Behaviour{PerUnit: 200 * time.Millisecond, Yields: true},
				start: protocol.Message{Body: &protocol.Work{Spec: &s}}, clock: &skew.Clock{},
				rng: job.Range{From: 100, To: 200}, end: 28 * sec,
			}
			if c.change != nil {
				c.change(&s, r)
			}
			at := r.plan(c.now)
			res := r.outcome(r.how, at)
			if at.Sub(0) != c.at || r.how != c.how || res.Progress != c.upTo {
				t.Errorf("it ends after %v %v, complete to %d; want %v %v, %d", at.Sub(0), r.how, res.Progress, c.at, c.how, c.upTo)
			}
			if whole := s.Kind == job.Steps && res.Progress > r.rng.From; res.Checkpoint != whole {
				t.Errorf("checkpoint: %v, want %v", res.Checkpoint, whole)
			}
		})
	}
}

// TestTruth: how a job goes on a slice by its workload.
func TestTruth(t *testing.T) {
	j := workload.Job{
		Kind: job.Steps, Slices: 1, Units: 100, Grid: 1, Parallelism: 1, Work: 100 * time.Second, Restore: 5 * time.Second,
		Startup: 2 * time.Second,
		Speeds:  []job.SpeedOn{{Profile: "half", Permille: 500}},
		Memory:  workload.Memory{Phases: []trp.Phase{{UpTo: 40, Mean: 5}, {UpTo: 100, Mean: 15}}},
	}
	at := func(profile string, capacity quantity.Amount) place {
		return place{slice: &protocol.Slice{Profile: profile, Speed: 250, Capacity: trp.Vector{capacity}}}
	}
	start := func(from int64, resume uint64) *protocol.Message {
		return &protocol.Message{Body: &protocol.Work{Placement: protocol.Placement{Range: job.Range{From: from, To: 100},
			Plan: protocol.Plan{Resume: job.Token{Seq: resume}}}, Spec: &job.Spec{Total: 100}}}
	}
	for _, c := range []struct {
		name string
		got  Behaviour
		want Behaviour
	}{
		{"at its own speed", truth(&j, 0, start(0, 0), []place{at("half", 20)}), Behaviour{Yields: true, Restore: 2 * time.Second,
			Startup: 2 * time.Second, PerUnit: 2 * time.Second}},
		{"at the slice's, restored", truth(&j, 0, start(10, 1), []place{at("other", 20)}), Behaviour{Yields: true, Restore: 7 * time.Second,
			Startup: 2 * time.Second, PerUnit: 4 * time.Second}},
		{"it outgrows the slice with unit 40", truth(&j, 0, start(10, 0), []place{at("half", 14)}), Behaviour{
			Yields: true, Restore: 2 * time.Second, Startup: 2 * time.Second,
			PerUnit: 2 * time.Second, Fails: job.MemoryKilled, FailAfter: 62 * time.Second,
		}},
		{"in the middle of a phase", truth(&j, 0, start(60, 0), []place{at("half", 14)}), Behaviour{
			Yields: true, Restore: 2 * time.Second, Startup: 2 * time.Second,
			PerUnit: 2 * time.Second, Fails: job.MemoryKilled, FailAfter: 2 * time.Second,
		}},
		{"a gang goes as its slowest and smallest slice", truth(&j, 0, start(0, 0), []place{at("half", 20), at("other", 14)}), Behaviour{
			Yields: true, Restore: 2 * time.Second, Startup: 2 * time.Second,
			PerUnit: 4 * time.Second, Fails: job.MemoryKilled, FailAfter: 162 * time.Second,
		}},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, c.got, c.want)
		}
	}
	j.Kind = job.Rigid
	block := start(0, 0)
	block.Body.(*protocol.Work).Range, block.Body.(*protocol.Work).Spec = job.Range{To: 1}, &job.Spec{Total: 1}
	if got, want := truth(&j, 0, block, []place{at("half", 14)}),
		(Behaviour{Yields: true, PerUnit: 200 * time.Second, Fails: job.MemoryKilled, FailAfter: 80 * time.Second}); got != want {
		t.Errorf("rigid: got %+v, want %+v", got, want)
	}
	r := &course{does: Behaviour{PerUnit: 200 * time.Second}, rng: job.Range{To: 1}, start: *block}
	for ran, want := range map[time.Duration]int64{-1: 0, 0: 1, 80*time.Second - 1: 40, 80 * time.Second: 41, 300 * time.Second: 100} {
		if got := r.entered(&j, quantity.Instant(0).Add(ran)); got != want {
			t.Errorf("after %v it has entered %d units, want %d", ran, got, want)
		}
	}
	sum := time.Duration(0)
	for n := range int64(7) {
		sum += j.Worth(n+1, 7) - j.Worth(n, 7)
	}
	if sum != j.Work {
		t.Errorf("the parts are worth %v, the whole %v", sum, j.Work)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	twice := Node{ID: "n", Actor: &script{}, Slices: []protocol.Slice{{ID: "n/s"}}}
	_, err := New(Options{
		Nodes: []Node{twice, twice, {}}, Network: Network{GateZone: Link{Delay: -1}, ZoneNode: Link{Loss: 2e6}},
		Spec: func(*workload.Job) (*job.Spec, error) { return nil, nil },
		Faults: Faults{
			Schedule: []Fault{{Kind: NodeCrash, Node: "m"}, {Kind: 99, For: 1, Node: "n"}},
			Random:   []Rate{{Fault: Fault{Kind: ClockSet, Drift: 2e6}}},
			Drift:    -1,
		},
	})
	if errkind.Of(err) != errkind.Invalid {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"it needs a gate and at least one zone", "belong together", `two nodes "n"`, `slice "n/s" is one of node n too`,
		"nodes[2]: it needs an id", "gate-zone: delay -1ns",
		"zone-node: loss 2000000", "a node-crash lasts 0s", `no node "m"`, "give Rebuild", "no fault 99", "drift of 2000000",
		"random[0]: one in 0s", "clocks off by",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

// TestStops: a simulation can be stopped and goes on where it was; it says how far it has come.
func TestStops(t *testing.T) {
	node := &script{}
	node.step = func(now quantity.Instant, in protocol.Message, out *protocol.Out) {
		node.heard, node.at = nil, nil
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Wake, To: protocol.Address{Role: protocol.Timer},
			Body: &protocol.Moment{At: now.Add(time.Millisecond)}})
	}
	ctx, cancel := context.WithCancel(context.Background())
	words := 0
	s, err := New(Options{
		Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}}, Nodes: []Node{{ID: "n", Actor: node}},
		Progress: func(now quantity.Instant, live int) {
			if words++; now > 50*sec {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx, 1000*sec); !errors.Is(err, context.Canceled) || s.Now() < 50*sec || s.Now() > 70*sec || words < 20 {
		t.Fatalf("%v at %v, %d words", err, s.Now(), words)
	}
	if err := s.Run(context.Background(), 100*sec); err != nil || s.Now() != 100*sec {
		t.Errorf("%v at %v", err, s.Now())
	}
}

// TestPeopleTryAgain: a call that comes while its receiver is down is heard when it is up, and what an actor says is lost.
func TestPeopleTryAgain(t *testing.T) {
	node, again := &script{}, &script{}
	s, err := New(Options{
		Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}}, Nodes: []Node{{ID: "n", Actor: node}},
		Faults:  Faults{Schedule: []Fault{{Kind: NodeCrash, Node: "n", At: 10 * sec, For: 5 * time.Second}}},
		Rebuild: func(protocol.Address) protocol.Actor { return again },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, from := range []protocol.Address{{Role: protocol.Person}, {Role: protocol.Zone, ID: "z"}} {
		s.At(12*sec, protocol.Message{Kind: protocol.Reserve, From: from, To: nodeAddress, Session: uint64(i), Body: &protocol.Booking{}})
	}
	if err := s.Run(context.Background(), 20*sec); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, m := range again.heard {
		got = append(got, fmt.Sprint(m.Kind, m.Session, again.at[i].Sub(0)))
	}
	if want := []string{fmt.Sprint(protocol.Inventory, 0, 15*time.Second), fmt.Sprint(protocol.Reserve, 0, 15*time.Second)}; !slices.Equal(
		got, want) {
		t.Errorf("it hears %v, want %v", got, want)
	}
	if s.Actor(nodeAddress) != actor.Node(again) || s.Actor(protocol.Address{Role: protocol.Zone, ID: "other"}) != nil {
		t.Error("another actor answers")
	}
}

// TestTokensAreTold: nodes that make the same token are a mistake of the configuration, found where it shows first.
func TestTokensAreTold(t *testing.T) {
	both := func() *script {
		n := &script{}
		n.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
			if in.Kind == protocol.Inventory {
				m := start(job.Items)
				m.To = in.From
				out.Effects = append(out.Effects, m)
			}
		}
		return n
	}
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "node n and node m both use the token 1-1") {
			t.Errorf("got %v", said)
		}
	}()
	s, err := New(Options{Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}},
		Nodes: []Node{{ID: "n", Actor: both()}, {ID: "m", Actor: both()}}})
	if err == nil {
		err = s.Run(context.Background(), sec)
	}
	t.Errorf("nobody minds: %v", err)
}

// TestStoppedRunsYield: a program that can stop by itself has its grace to leave a checkpoint; another is gone at once.
func TestStoppedRunsYield(t *testing.T) {
	for _, yields := range []bool{false, true} {
		n := &script{}
		n.step = func(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
			m := start(job.Steps)
			m.Body.(*protocol.Work).Spec.Launch.Grace = 4 * time.Second
			switch in.Kind {
			case protocol.Inventory:
				out.Effects = append(out.Effects, m)
			case protocol.Report: // stands for the test's own cue
				out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Stop, To: m.To, Token: m.Token, Body: &protocol.Halt{}},
					protocol.Message{Kind: protocol.Stop, To: m.To, Token: m.Token, Body: &protocol.Halt{}})
			}
		}
		s, err := New(Options{
			Gates: actor.OneGate(&script{}), Zones: []actor.ZoneAt{{ID: "z", Zone: &script{}}}, Nodes: []Node{{ID: "n", Actor: n}},
			Model: func(m *protocol.Message) Behaviour { b := Planned(m); b.Yields = yields; return b },
		})
		if err != nil {
			t.Fatal(err)
		}
		s.At(5*sec, protocol.Message{Kind: protocol.Report, To: nodeAddress, Body: &protocol.Observation{}})
		if err := s.Run(context.Background(), 100*sec); err != nil {
			t.Fatal(err)
		}
		want := job.Result{Outcome: job.Stopped, ExitCode: -1, Signal: 9, Progress: 100, End: 5 * sec, FirstProgress: sec / 5}
		if yields {
			want = job.Result{Outcome: job.Yielded, ExitCode: 85, Progress: 128, Checkpoint: true, End: 86 * sec / 10,
				FirstProgress: sec / 5}
		}
		i := slices.IndexFunc(n.heard, func(m protocol.Message) bool { return m.Kind == protocol.Exited })
		if i < 0 || *n.heard[i].Body.(*protocol.Conclusion).Result != want {
			t.Errorf("it yields: %v; heard %+v", yields, n.heard)
		}
	}
}
