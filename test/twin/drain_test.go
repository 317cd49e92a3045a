package twin_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/lab/sim"
)

// drainZones drains all zones but the last, one after the other.
func (p park) drainZones(s *sim.Sim) {
	for i := range p.zones - 1 {
		s.At(parkStart.Add(p.drain*time.Duration(1+i)), protocol.Message{
			Kind: protocol.DrainZone, From: protocol.Address{Role: protocol.Person, ID: "p"}, To: protocol.Address{Role: protocol.Gate},
			Body: &protocol.Draining{Request: fmt.Sprint("drain ", i), Zone: zoneOf(i, p.zones)},
		})
	}
}

// cancelJobs has jobs cancelled around the drain.
func (p park) cancelJobs(s *sim.Sim) {
	for i := range p.jobs {
		after, cancelled := p.cancels[i]
		if !cancelled {
			continue
		}
		s.At(parkStart.Add(p.drain+after), protocol.Message{
			Kind: protocol.Cancel, From: protocol.Address{Role: protocol.Person, ID: "p"}, To: protocol.Address{Role: protocol.Gate},
			Job:  job.ID(fmt.Sprintf("j%010d", i)),
			Body: &protocol.Cancellation{Request: fmt.Sprint("cancel ", i)},
		})
	}
}

// TestDrainedAtAnyMoment: as TestDrainedZones in worlds at random, in which owners cancel jobs that are about to move.
func TestDrainedAtAnyMoment(t *testing.T) {
	t.Parallel()
	moved, cancelled := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p := park{
			nodes: 4, zones: rapid.IntRange(2, 3).Draw(rt, "zones"), jobs: 14, seed: rapid.Uint64Range(0, 1000).Draw(rt, "seed"),
			gangs: true, exact: true, gap: time.Minute,
			drain: time.Duration(rapid.IntRange(60, 1800).Draw(rt, "drain")) * time.Second, network: roughNetwork(), homes: &homes{},
			cancels: map[int]time.Duration{},
		}
		for i := range p.jobs {
			if rapid.IntRange(0, 4).Draw(rt, "cancel") == 0 {
				p.cancels[i] = time.Duration(rapid.IntRange(-2000, 8000).Draw(rt, "after"))*time.Millisecond + time.Duration(i)
			}
		}
		if rapid.Bool().Draw(rt, "crashes") {
			for _, k := range []sim.FaultKind{sim.ZoneCrash, sim.GateCrash} {
				p.faults.Random = append(p.faults.Random, sim.Rate{Fault: sim.Fault{Kind: k, For: time.Second, Keep: true},
					Every: time.Minute})
			}
		}
		w, judge := p.play(rt, 14*24*time.Hour)
		moved, cancelled = moved+p.homes.moved, cancelled+w.done[job.Cancelled]
		if w.done[job.Finished]+w.done[job.Cancelled] != p.jobs || len(judge.leases) > 0 {
			rt.Fatalf("jobs ended %v, %d leases stand", w.done, len(judge.leases))
		}
	})
	if moved == 0 || cancelled == 0 {
		t.Errorf("%d jobs moved and %d were cancelled: it shows nothing", moved, cancelled)
	}
}

// TestDrainedZones: jobs leave zones that are drained for good, whatever is lost, doubled or delayed and whoever crashes meanwhile. One
// zone sells at any moment, every job ends once, and nothing is committed twice.
func TestDrainedZones(t *testing.T) {
	every := func(k sim.FaultKind, every, length time.Duration) sim.Rate {
		return sim.Rate{Fault: sim.Fault{Kind: k, For: length, Keep: true}, Every: every}
	}
	for _, c := range []struct {
		name    string
		network sim.Network
		faults  sim.Faults
	}{
		{name: "nothing goes wrong"},
		{name: "rough network", network: roughNetwork()},
		{name: "all of it", network: roughNetwork(), faults: sim.Faults{
			Offset: time.Second, Drift: 100,
			Random: []sim.Rate{
				every(sim.ZoneCrash, 20*time.Minute, 10*time.Second), every(sim.NodeCrash, 2*time.Hour, time.Minute),
				every(sim.DaemonCrash, 20*time.Minute, 5*time.Second),
				every(sim.Partition, 2*time.Hour, time.Minute),
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				p := park{nodes: 6, zones: 2 + int(seed%2), jobs: 40, seed: seed, gangs: true,
					drain: time.Duration(20+7*seed) * time.Minute, network: c.network, faults: c.faults, homes: &homes{}}
				if seed%2 == 0 {
					p.archive, p.retain = &filing.Config{Keep: time.Minute, Most: 4}, 1000*time.Hour
				}
				w, judge := p.play(t, 14*24*time.Hour)
				if p.homes.moved == 0 || len(p.homes.drained) != p.zones-1 {
					t.Errorf("seed %d: %d jobs moved from %v: it shows nothing", seed, p.homes.moved, p.homes.drained)
				}
				if w.done[job.Finished] < 25 || len(judge.leases) > 0 {
					t.Errorf("seed %d: jobs ended %v, runs %v, %d leases stand", seed, w.done, w.outcomes, len(judge.leases))
				}
			}
		})
	}
}

// drainZone asks again, with the daemon started again where it has died, until the answer is there.
func (l *live) drainZone(t *testing.T) {
	for range 10 {
		err := l.host.DrainZone(context.Background(), "drain", l.drained)
		if err == nil {
			return
		}
		if errkind.Of(err) != errkind.Unavailable {
			t.Fatalf("drain %s: %v", l.drained, err)
		}
		l.revive(t)
	}
	t.Fatalf("%s was never drained", l.drained)
}

// TestDrainKilledAtEveryAppend: as TestKilledAtEveryAppend, while jobs leave one zone for the other. Whichever facts of gate and zones a
// kill falls between, each unit is committed once.
func TestDrainKilledAtEveryAppend(t *testing.T) {
	t.Parallel()
	jobs := []arrival{
		{0, spec(t, "one", job.Items, 103, 100*time.Millisecond)}, {time.Second, spec(t, "two", job.Steps, 61, 130*time.Millisecond)},
		{2 * time.Second, spec(t, "other", job.Items, 81, 110*time.Millisecond)},
	}
	var last *live
	killedAtEveryAppend(t, func() (*live, []arrival) {
		last = newLive(t)
		last.build = several(t, 2, 2, nil)
		last.drained = "local-1"
		last.options = func(o *host.Options) { o.NoTape, o.Inventory = true, fixed(fourGPUs()) }
		return last, jobs
	})
	seen := map[protocol.FactKind]int{}
	for _, f := range last.facts {
		seen[f.Kind]++
	}
	for _, k := range []protocol.FactKind{protocol.ZoneDrained, protocol.Rehomed, protocol.HomeLeaving, protocol.HomeKept,
		protocol.HomeDropped, protocol.JobDeparted} {
		if seen[k] == 0 {
			t.Errorf("there is no fact %d: the test shows less than it should", k)
		}
	}
}
