package twin_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/sim"
)

// runLive submits jobs to a live shell, in a bubble with a fake clock, and stops it when all of them and those it had are
// over. It returns when it was opened.
func runLive(t *testing.T, l *live, jobs []arrival, had int) (start quantity.Instant) {
	t.Helper()
	start = quantity.At(time.Now())
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for _, a := range jobs {
		time.Sleep(a.after - time.Since(begin))
		if _, err := l.host.Submit(context.Background(), a.request(), a.spec, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !l.finished(len(jobs)+had, 2*time.Hour) {
		list, _ := l.jobs(context.Background())
		for _, j := range list {
			t.Errorf("%s: %v %d of %d, %s", j.Name, j.State, j.Progress, j.Total, j.Reason)
		}
	}
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	return start
}

// simOptions are those of a simulation of actors on the machine.
func simOptions(a actor.Set) sim.Options {
	return sim.Options{Gates: a.Gates, Zones: a.Zones, Nodes: []sim.Node{{ID: nodeID, Actor: a.Nodes[0].Node, Slices: machine("n/")}}}
}

// runSim plays the same in the simulator.
func runSim(t failer, start quantity.Instant, jobs []arrival, o sim.Options) []protocol.Fact {
	t.Helper()
	var facts []protocol.Fact
	tell := o.Fact
	if o.Gates == nil {
		o = simOptions(build(t)())
		o.Fact = tell
	}
	o.Start = start
	o.Fact = func(now quantity.Instant, f *protocol.Fact) {
		facts = append(facts, *f)
		if tell != nil {
			tell(now, f)
		}
	}
	s, err := sim.New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, a := range jobs {
		s.At(start.Add(a.after), protocol.Message{
			Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person}, To: protocol.Address{Role: protocol.Gate},
			Body: &protocol.Submission{Request: a.request(), Spec: a.spec, Digest: "content of " + string(a.spec.Name)}, Job: a.spec.Name,
		})
	}
	if err := s.Run(context.Background(), start.Add(2*time.Hour)); err != nil {
		t.Fatalf("%v", err)
	}
	return facts
}

// TestTwins: the same scenario live, with a fake executor and messages through the memory fabric, and in the simulator
// gives the same awards.
func TestTwins(t *testing.T) {
	t.Run("jobs stay", func(t *testing.T) { twins(t, newLive(t)) })
	t.Run("jobs leave to the archive", func(t *testing.T) { // and the simulator's stay
		l := newLive(t)
		l.archives(time.Second)
		twins(t, l)
		if size, err := l.kept.Size(); err != nil || size.Jobs == 0 || size.Homes == 0 {
			t.Errorf("the archive has %d jobs and %d homes: %v", size.Jobs, size.Homes, err)
		}
	})
}

func twins(t *testing.T, l *live) {
	jobs := scenario(t)
	var start quantity.Instant
	synctest.Test(t, func(t *testing.T) { start = runLive(t, l, jobs, 0) })
	checkOnce(t, l.facts, jobs)
	simulated := runSim(t, start, jobs, sim.Options{})
	checkOnce(t, simulated, jobs)
	a, b := awards(l.facts), awards(simulated)
	if len(a) < 5 {
		t.Errorf("only %d awards: the scenario shows nothing", len(a))
	}
	if !slices.Equal(a, b) {
		for i := range max(len(a), len(b)) {
			var x, y string
			if i < len(a) {
				x = a[i]
			}
			if i < len(b) {
				y = b[i]
			}
			if x != y {
				t.Fatalf("award %d differs\n live: %s\n sim:  %s", i, x, y)
			}
		}
	}
}

// TestReplay: the tape of a live run, played into fresh actors, gives the digest of the live ones after every step, and
// the same facts; also after a restart in the middle.
func TestReplay(t *testing.T) {
	jobs := scenario(t)
	l := newLive(t)
	l.archives(10 * time.Second)
	synctest.Test(t, func(t *testing.T) {
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		for _, a := range jobs {
			if _, err := l.host.Submit(context.Background(), a.request(), a.spec, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(100 * time.Second)
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
		runLive(t, l, nil, len(jobs))
	})
	checkOnce(t, l.facts, jobs)
	var facts []string
	calls := 0
	for back := 1; back >= 0; back-- {
		r, err := sim.Replay(l.openTape(back), l.build().Parties(), func(f *protocol.Fact) {
			if f.Kind == protocol.Claimed {
				facts = append(facts, award(f))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Compared != r.Calls || r.Calls == 0 {
			t.Errorf("%d of %d calls compared", r.Compared, r.Calls)
		}
		calls += r.Calls
	}
	if want := awards(l.facts); !slices.Equal(facts, want) {
		t.Errorf("%d awards replayed in %d calls, %d were made", len(facts), calls, len(want))
	}
}

// TestReplayFindsADifference: with another configuration the digests part, and the step is named.
func TestReplayFindsADifference(t *testing.T) {
	jobs := scenario(t)
	l := newLive(t)
	synctest.Test(t, func(t *testing.T) { runLive(t, l, jobs, 0) })
	actors := l.build()
	actors.Zones[0].Zone = otherZone(t)
	if _, err := sim.Replay(l.openTape(0), actors.Parties(), nil); err == nil {
		t.Error("another horizon gave the same digests after every step")
	}
}

// TestFold: after every step of a simulation, fresh actors that were only told the facts have the same digest, and so
// have actors that were told a snapshot.
func TestFold(t *testing.T) {
	jobs := scenario(t)
	make := build(t)
	shadow := map[protocol.Address]protocol.Actor{}
	for _, p := range make().Parties() {
		shadow[p.Address] = p.Actor
	}
	steps := 0
	o := simOptions(make())
	o.Fact = func(_ quantity.Instant, f *protocol.Fact) { shadow[f.Actor].Apply(*f) }
	o.Stepped = func(now quantity.Instant, p actor.Party) {
		steps++
		if got, want := shadow[p.Address].Digest(), p.Actor.Digest(); got != want {
			t.Fatalf("step %d at %v: %s folds to %x, it is %x", steps, now.Time(), actor.Name(p.Address), got, want)
		}
		if steps%17 != 0 {
			return
		}
		facts := capture.All(p.Actor.(capture.Source))
		for _, q := range make().Parties() {
			if q.Address == p.Address {
				for _, f := range facts {
					q.Actor.Apply(f)
				}
				if got, want := q.Actor.Digest(), p.Actor.Digest(); got != want {
					t.Fatalf("step %d at %v: the snapshot of %s folds to %x, it is %x", steps, now.Time(), actor.Name(p.Address), got, want)
				}
			}
		}
	}
	checkOnce(t, runSim(t, quantity.Instant(946684800e9), jobs, o), jobs)
	if steps < 100 {
		t.Errorf("only %d steps", steps)
	}
}
