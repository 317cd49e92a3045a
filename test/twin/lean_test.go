package twin_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// seen is what a lean world's tasks did: how long each that landed took.
type seen struct {
	tasks  map[swarm.TaskID]swarm.Task
	landed map[swarm.TaskID]quantity.Instant
	length map[swarm.TaskID]time.Duration
}

func (s *seen) Landed(now quantity.Instant, t swarm.Task, _ int32, _ int8) {
	s.tasks[t.ID], s.landed[t.ID] = t, now
}

func (s *seen) Over(now quantity.Instant, t swarm.Task, f world.Fate) {
	if s.tasks[t.ID] = t; f == world.Ran {
		s.length[t.ID] = now.Sub(s.landed[t.ID])
	}
}

// TestLeanNodesAreAsTheRealActors: the tasks of a small lean world, offered to the real gate, zones and nodes over the same slices and
// network, land as often, with as many probes. They are not the same one by one: the lean zones' digests know of reports alone, those of
// the real ones of every answer too, so other zones are drawn. With twelve seeds the shares that are placed differ by .01 at most, and the
// hops by a fifteenth (adr 0039).
func TestLeanNodesAreAsTheRealActors(t *testing.T) {
	for _, load := range []int64{700_000, 950_000} {
		o, did, w := leanWorld(t, 3, load, 15*time.Second)
		c := w.Counts()
		lean := float64(c.Placed) / float64(c.Arrived)
		leanHops := float64(c.Hops(o.Kind.Messages)) / float64(c.Starts)
		said := playLean(t, o, did, sim.Link{Delay: o.Network.Delay})
		real, hops := float64(said.placed)/float64(len(did.tasks)), float64(said.kinds[protocol.Probe])/float64(said.placed)
		t.Logf("load %d: of %d tasks lean nodes place %.4f with %.3f hops, the real actors %.4f with %.3f", load, len(did.tasks), lean,
			leanHops, real, hops)
		if len(did.tasks) < 500 || math.Abs(lean-real) > .01 || math.Abs(hops-leanHops) > .1*leanHops {
			t.Errorf("load %d: of %d tasks lean nodes place %.4f with %.3f hops, the real actors %.4f with %.3f", load, len(did.tasks),
				lean, leanHops, real, hops)
		}
	}
}

// leanWorld has run one of so many zones of ten nodes, into which tasks come for a time.
func leanWorld(t *testing.T, zones int, load int64, during time.Duration) (*world.Options, *seen, *world.World) {
	t.Helper()
	o := world.Usual(zones, laminar.Kind(), load)
	o.Cluster.PerZone, o.Gates, o.Rigid.Share, o.Flow.LongShare, o.Flow.Begun = 10, 1, 0, 0, false
	o.From, o.Until = 0, quantity.Instant(during)
	did := &seen{map[swarm.TaskID]swarm.Task{}, map[swarm.TaskID]quantity.Instant{}, map[swarm.TaskID]time.Duration{}}
	o.Observer = did
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Never)
	return &o, did, w
}

// playLean offers the tasks of a lean world to real actors over links like this, and counts what they say.
func playLean(t *testing.T, o *world.Options, did *seen, link sim.Link) *census {
	t.Helper()
	count := newCensus()
	cfg := search.Config{Flow: flow.Config{Seed: 1, Period: o.Period, Patience: o.Flow.Patience}}
	for c := range o.Cluster.Classes {
		cfg.Flow.Classes = append(cfg.Flow.Classes, quantity.Amount(c+1)<<30)
	}
	var zones []gate.Zone
	for z := range o.Cluster.Zones {
		at := gate.Zone{ID: zoneOf(z, o.Cluster.Zones)}
		for i := range o.Cluster.PerZone {
			at.Nodes = append(at.Nodes, job.NodeID(fmt.Sprintf("n%03d", z*o.Cluster.PerZone+i)))
		}
		zones, cfg.Zones = append(zones, at), append(cfg.Zones, search.Zone{ID: at.ID, Nodes: at.Nodes})
	}
	tickets, err := cfg.Checked()
	if err != nil {
		t.Fatal(err)
	}
	const spare = time.Minute // a lease is longer than what runs in it, which begins when the messages of its sale are through
	const begin = quantity.Instant(1000 * time.Second)
	opts := sim.Options{Start: begin.Add(-2 * time.Second), Network: sim.Network{GateZone: link, ZoneNode: link}, Seed: 1}
	g, err := gate.New(gate.Config{Zones: zones, Retain: time.Hour, Search: tickets})
	if err != nil {
		t.Fatal(err)
	}
	opts.Gates = actor.OneGate(countedGate{g, count})
	for z := range zones {
		x, err := zone.New(zone.Config{ID: zones[z].ID, Policy: fifo.Policy{}, Search: tickets})
		if err != nil {
			t.Fatal(err)
		}
		opts.Zones = append(opts.Zones, actor.ZoneAt{ID: zones[z].ID, Zone: countedZone{x, count}})
		for i, id := range zones[z].Nodes {
			n := sim.Node{ID: id, Actor: countedNode{node.New(node.Config{ID: id, Zone: zones[z].ID, Number: z*o.Cluster.PerZone + i,
				Search: tickets}), count}}
			for k, class := range o.Cluster.Slots(int32(z*o.Cluster.PerZone + i)) {
				n.Slices = append(n.Slices, protocol.Slice{
					ID: job.SliceID(fmt.Sprintf("%s/%d", id, k)), Profile: o.Cluster.Classes[class],
					Capacity: trp.Vector{cfg.Flow.Classes[class]}, Speed: 1000, Simulated: true,
				})
			}
			opts.Nodes = append(opts.Nodes, n)
		}
	}
	opts.Fact = func(_ quantity.Instant, f *protocol.Fact) {
		if f.Kind == protocol.Ended && f.Body.(*protocol.Final).Verdict.State == job.Finished {
			count.placed++
		}
	}
	opts.Reply = func(_ quantity.Instant, m *protocol.Message) {
		if r, ok := m.Body.(*protocol.Receipt); ok && r.Err != nil {
			t.Fatalf("refused: %v", r.Err)
		}
	}
	opts.Model = func(m *protocol.Message) sim.Behaviour { return sim.Behaviour{PerUnit: sim.Planned(m).PerUnit - spare} }
	s, err := sim.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	tasks := make([]swarm.Task, 0, len(did.tasks))
	for _, x := range did.tasks {
		tasks = append(tasks, x)
	}
	slices.SortFunc(tasks, func(a, b swarm.Task) int { return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), cmp.Compare(a.ID, b.ID)) })
	for i, x := range tasks {
		length, ran := did.length[x.ID]
		if !ran {
			length = o.Flow.Mean // how long it would have taken nobody has seen
		}
		j := spec(t, job.ID(fmt.Sprintf("task-%d", i)), job.Rigid, 1, max(length, time.Millisecond)+spare)
		j.Launch.Grace, j.Patience = 0, o.Flow.Patience
		j.Safe.Least = [][]quantity.Amount{{cfg.Flow.Classes[x.Class]}}
		s.At(begin.Add(time.Duration(x.Arrived)), protocol.Message{
			Kind: protocol.Submit, From: protocol.Address{Role: protocol.Person}, To: protocol.Address{Role: protocol.Gate},
			Job: j.Name, Body: &protocol.Submission{Request: fmt.Sprint(i), Spec: j, Digest: string(j.Name)},
		})
	}
	if err := s.Run(context.Background(), begin.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return count
}
