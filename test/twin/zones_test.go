package twin_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/sim"
)

// zoneOf is the name of the i-th of n zones.
func zoneOf(i, n int) job.ZoneID {
	if n <= 1 {
		return zoneID
	}
	return job.ZoneID(fmt.Sprint("z", i))
}

// homes judges several zones by their facts: a life of a job has one home, the gate knows which, nobody else sells it anything, every node
// serves the zone that it belongs to, and what the queue's jobs hold in all zones is never above its cap.
type homes struct {
	t     failer
	park  park
	drawn map[job.ID]job.ZoneID
	held  map[job.Token]int
	// most that was held at once, taken counts the jobs of each zone.
	holding, most int
	// away counts what was sold outside of a job's home.
	away  int
	taken map[job.ZoneID]int
	// sells is the zone that may sell a job's next piece, none while it moves. moved counts the jobs that did, drained are the zones that
	// gave them up.
	sells   map[job.ID]job.ZoneID
	moved   int
	drained map[job.ZoneID]bool
}

// draws notes where a job is to be at home.
func (h *homes) draws(name job.ID, zone job.ZoneID) {
	if h.drawn[name] = zone; h.drained[zone] {
		h.t.Errorf("job %s is drawn to zone %s, which is drained", name, zone)
	}
}

func (h *homes) fact(_ quantity.Instant, f *protocol.Fact) {
	at := job.ZoneID(f.Actor.ID)
	switch f.Kind {
	case protocol.JobAccepted:
		h.draws(f.Job, f.Body.(*protocol.Acceptance).Zone)
	case protocol.JobDrawn:
		zone := f.Body.(*protocol.InZone).Zone
		if was := h.drawn[f.Job]; was != "" {
			h.t.Errorf("job %s, at home in %s, is drawn again, to %s", f.Job, was, zone)
		}
		h.draws(f.Job, zone)
	case protocol.ZoneDrained:
		h.drained[f.Body.(*protocol.InZone).Zone] = true
	case protocol.Rehomed:
		h.draws(f.Job, f.Body.(*protocol.InZone).Zone)
	case protocol.HomeLeaving:
		if h.sells[f.Job] == at {
			h.sells[f.Job] = ""
		}
	case protocol.HomeReopened:
		h.sells[f.Job] = at
	case protocol.HomeKept:
		recalled := f.Body.(*protocol.Keeping).Recalled
		if was := h.sells[f.Job]; was != "" && !recalled {
			h.t.Errorf("zone %s takes job %s over, which zone %s may sell", at, f.Job, was)
		}
		if h.sells[f.Job] = at; !recalled {
			h.moved++
		}
	case protocol.HomeTaken:
		if h.taken[at]++; h.drawn[f.Job] != at {
			h.t.Errorf("zone %s takes job %s home, the gate drew %q", at, f.Job, h.drawn[f.Job])
		}
		h.sells[f.Job] = at
	case protocol.Claimed:
		if h.sells[f.Job] != at {
			h.t.Errorf("zone %s sells something to job %s, whose home is %q", at, f.Job, h.sells[f.Job])
		}
		sale, number := f.Body.(*protocol.Sale), 0
		if _, err := fmt.Sscanf(string(sale.Node), "n%d", &number); err != nil || zoneOf(number%h.park.zones, h.park.zones) != at {
			if h.away++; !h.park.tickets && !h.park.across {
				h.t.Errorf("zone %s sells time of node %s", at, sale.Node)
			}
		}
		h.held[f.Token] = 1 + len(sale.Also)
		h.holding += h.held[f.Token]
		if h.most = max(h.most, h.holding); h.park.cap > 0 && h.holding > h.park.cap {
			h.t.Errorf("the queue's jobs hold %d slices, and its cap is %d", h.holding, h.park.cap)
		}
	case protocol.Committed, protocol.Released:
		h.holding -= h.held[f.Token]
		delete(h.held, f.Token)
	default:
	}
}

// watched judges the facts of several zones, and that after every hundredth step the facts so far fold to what the actor is, in pieces too.
func (p park) watched(t failer, o *sim.Options, also func(quantity.Instant, *protocol.Fact)) func(quantity.Instant, *protocol.Fact) {
	h := p.homes
	*h = homes{t: t, park: p, drawn: map[job.ID]job.ZoneID{}, held: map[job.Token]int{}, taken: map[job.ZoneID]int{},
		sells: map[job.ID]job.ZoneID{}, drained: map[job.ZoneID]bool{}}
	shadow := map[protocol.Address]protocol.Actor{}
	for i := range o.Zones {
		a := protocol.Address{Role: protocol.Zone, ID: string(o.Zones[i].ID)}
		shadow[a] = o.Rebuild(a)
	}
	for _, a := range p.gates.All() {
		shadow[a] = o.Rebuild(a)
	}
	steps := 0
	before := o.Stepped
	o.Stepped = func(now quantity.Instant, q actor.Party) {
		if before != nil {
			before(now, q)
		}
		if steps++; steps%100 != 0 || shadow[q.Address] == nil {
			return
		}
		kept := o.Rebuild(q.Address)
		for _, f := range capture.All(q.Actor.(capture.Source)) {
			kept.Apply(f)
		}
		if is := q.Actor.Digest(); shadow[q.Address].Digest() != is || kept.Digest() != is {
			t.Fatalf("step %d: %s has the digest %x, of its facts %x, of its snapshot %x", steps, actor.Name(q.Address), is,
				shadow[q.Address].Digest(), kept.Digest())
		}
	}
	return func(now quantity.Instant, f *protocol.Fact) {
		if s := shadow[f.Actor]; s != nil {
			s.Apply(*f)
		}
		h.fact(now, f)
		also(now, f)
	}
}

// setCap sets the cap of the queue before anything is submitted.
func (p park) setCap(s *sim.Sim, limit int) {
	s.At(parkStart, protocol.Message{
		Kind: protocol.SetQueue, From: protocol.Address{Role: protocol.Person, ID: "p"}, To: p.gates.First(),
		Body: &protocol.QueueSetting{Request: fmt.Sprint("cap ", limit),
			Queue: &protocol.Queue{Name: gate.DefaultQueue, Weight: 1, Cap: limit}},
	})
}

// TestSeveralZones: whatever goes wrong between gate, zones and nodes, every job comes to its end, at the one home that was drawn for it.
func TestSeveralZones(t *testing.T) {
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
		{name: "zones crash", faults: sim.Faults{Random: []sim.Rate{every(sim.ZoneCrash, 20*time.Minute, 10*time.Second)}}},
		{name: "all of it", network: roughNetwork(), faults: sim.Faults{
			Offset: time.Second, Drift: 100,
			Random: []sim.Rate{
				every(sim.ZoneCrash, time.Hour, 10*time.Second), every(sim.NodeCrash, 2*time.Hour, time.Minute),
				every(sim.DaemonCrash, time.Hour, 5*time.Second),
				every(sim.Partition, 2*time.Hour, time.Minute),
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				p := park{nodes: 4 + int(seed), zones: 2 + int(seed%3), jobs: 40, seed: seed, gangs: true, network: c.network,
					faults: c.faults, homes: &homes{}}
				if seed%2 == 0 {
					p.archive, p.retain = &filing.Config{Keep: time.Minute, Most: 4}, 1000*time.Hour
				}
				if seed%4 == 1 {
					p.cap, p.gap = 2*p.zones+1, time.Minute
				}
				w, judge := p.play(t, 14*24*time.Hour)
				if len(p.homes.taken) != p.zones || p.cap > 0 && p.homes.most < p.cap-1 || p.cap == 0 && p.homes.most < 2*p.zones {
					t.Errorf("seed %d: homes of %v, at most %d slices held: it shows nothing", seed, p.homes.taken, p.homes.most)
				}
				if w.done[job.Finished] < 25 || len(judge.leases) > 0 {
					t.Errorf("seed %d: jobs ended %v, runs %v, %d leases stand", seed, w.done, w.outcomes, len(judge.leases))
				}
			}
		})
	}
}
