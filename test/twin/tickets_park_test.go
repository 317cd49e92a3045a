package twin_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/sim"
)

// search is how tickets search in a park.
func (p park) search(t failer, zones []gate.Zone) *search.Config {
	c := search.Config{Gates: p.gates, Flow: flow.Config{Seed: p.seed, Classes: flow.Classes{5 << 30, 10 << 30, 20 << 30}}}
	for _, z := range zones {
		c.Zones = append(c.Zones, search.Zone{ID: z.ID, Nodes: z.Nodes})
	}
	checked, err := c.Checked()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return checked
}

// audited looks at every zone's tickets after each of its steps, and notes when that was, and how often gates came up again.
func audited(t failer, last *quantity.Instant, restarts map[string]int) func(*sim.Options) {
	return func(o *sim.Options) {
		broken := false
		gates := map[string]protocol.Actor{}
		o.Stepped = func(now quantity.Instant, p actor.Party) {
			*last = now
			if id := p.Address.ID; p.Address.Role == protocol.Gate {
				if gates[id] != nil && gates[id] != p.Actor {
					restarts[id]++
				}
				gates[id] = p.Actor
			}
			if z, is := p.Actor.(*zone.Zone); is && !broken {
				if why := z.AuditSearch(); why != "" {
					broken = true
					t.Errorf("at %v, zone %s: %s", now.Time(), p.Address.ID, why)
				}
			}
		}
	}
}

// TestTicketsUnderFaults: in worlds in which messages are lost, doubled, late and out of order, and gate, zones and nodes crash and are
// cut off, nothing that tickets find is sold twice, no ticket passes its bounds, and every job ends: by its work, or since it gave up.
func TestTicketsUnderFaults(t *testing.T) {
	t.Parallel()
	rate := func(k sim.FaultKind, every, length time.Duration) sim.Rate {
		return sim.Rate{Fault: sim.Fault{Kind: k, For: length, Offset: 2 * time.Second}, Every: every}
	}
	kept := rate(sim.NodeCrash, time.Hour, time.Minute)
	kept.Keep = true
	gangs, err := backfill.Named("gangs")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		network sim.Network
		faults  sim.Faults
		gates   protocol.Gates
	}{
		{name: "calm"},
		{name: "rough network", network: roughNetwork()},
		{name: "zones crash", faults: sim.Faults{Random: []sim.Rate{rate(sim.ZoneCrash, 20*time.Minute, 5*time.Second)}}},
		{name: "one of two gates crashes", network: roughNetwork(), gates: protocol.Gates{"a", "b"},
			faults: sim.Faults{Random: []sim.Rate{rate(sim.GateCrash, 10*time.Minute, 20*time.Second)}}},
		{name: "all of it", network: roughNetwork(), faults: sim.Faults{
			Offset: time.Second, Drift: 100,
			Random: []sim.Rate{
				rate(sim.NodeCrash, 2*time.Hour, time.Minute), kept, rate(sim.DaemonCrash, time.Hour, 5*time.Second),
				rate(sim.ZoneCrash, time.Hour, time.Minute),
				rate(sim.Partition, 2*time.Hour, time.Minute), rate(sim.PartitionIn, 4*time.Hour, time.Minute),
				rate(sim.PartitionOut, 4*time.Hour, time.Minute),
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expired, away, restarts := 0, 0, map[string]int{}
			for seed := range uint64(2) {
				last := quantity.Instant(0)
				p := park{
					nodes: 6, zones: 3, jobs: 40, seed: seed, gap: time.Minute, gangs: true, rigid: gangs, network: c.network,
					faults: c.faults, gates: c.gates, tickets: true, patience: 2 * time.Second,
					also: audited(t, &last, restarts), homes: &homes{},
				}
				if seed%3 == 1 {
					p.cap = 9
				}
				w, judge := p.play(t, 14*24*time.Hour)
				if w.done[job.Finished] < 20 {
					t.Errorf("seed %d: jobs ended %v, runs %v", seed, w.done, w.outcomes)
				}
				for token, l := range judge.leases { // of a node that is away: they are over by themselves
					if l.end > last {
						t.Errorf("seed %d: %v of %s on %v stands until %v, and all is over at %v", seed, token, l.job, l.slices,
							l.end.Time(), last.Time())
					}
				}
				expired += w.done[job.Expired]
				away += p.homes.away
			}
			for _, id := range c.gates {
				if restarts[string(id)] == 0 {
					t.Errorf("gate %s was never away: the worlds show nothing", id)
				}
			}
			if expired == 0 || away == 0 {
				t.Errorf("%d jobs gave up, %d places were found outside of home: the worlds show nothing", expired, away)
			}
		})
	}
}
