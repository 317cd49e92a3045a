package twin_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/sim"
)

// spread is several zones and nodes of a tale, with how jobs find places among them.
type spread struct {
	mechanism    string
	zones, count int
	flow         *flow.Config
}

// arrangement is the tale's.
func (x *tale) arrangement(t *testing.T, horizon time.Duration) arrangement.Config {
	t.Helper()
	c := arrangement.Choice{
		Policy: x.policy, Mechanism: x.several.mechanism, Market: x.market, Horizon: horizon, Node: nodeID, Zones: x.several.zones,
		Nodes: x.several.count, Flow: x.several.flow,
	}
	for i := range x.slices {
		c.Capacities = append(c.Capacities, x.slices[i].Capacity[trp.Memory])
	}
	cfg, err := c.Config()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return cfg
}

// nodes deals the slices to the nodes in turn.
func (x *spread) nodes(a actor.Set, all []protocol.Slice) []sim.Node {
	nodes := make([]sim.Node, len(a.Nodes))
	for i := range nodes {
		nodes[i] = sim.Node{ID: a.Nodes[i].ID, Actor: a.Nodes[i].Node}
	}
	for i := range all {
		n := &nodes[i%len(nodes)]
		n.Slices = append(n.Slices, all[i])
	}
	return nodes
}

// zoneTales are stories of several zones.
func zoneTales() []tale {
	brief := &flow.Config{Period: 2 * time.Second, Patience: 6 * time.Second, Pace: 300 * time.Millisecond}
	short := func(patience time.Duration) func(*job.Spec) {
		return func(s *job.Spec) { s.Patience = patience }
	}
	return []tale{
		{
			name: "zones", slices: equal(2, 10), policy: shortest.Policy{}, several: &spread{mechanism: "sja", zones: 2, count: 2},
			until: 10 * time.Minute,
			shows: []string{"zone=local-1", "zone=local-2"},
			tell: func(t *testing.T, s *story) {
				for i := range 4 {
					s.submit(time.Duration(i)*time.Second, spec(t, job.ID(rune('a'+i)), job.Items, 60, time.Second))
				}
			},
		},
		{
			name: "tickets", slices: equal(2, 10), policy: shortest.Policy{}, several: &spread{mechanism: arrangement.Laminar, zones: 2,
				count: 2, flow: brief}, until: 100 * time.Second,
			shows: []string{"Probe ", "Redraw ", "Landing ", "Back ", "EXPIRED"},
			tell: func(t *testing.T, s *story) {
				for i := range 3 { // the third finds nothing, and has its patience
					s.submit(time.Duration(i)*time.Second, with(gang(t, job.ID(rune('a'+i)), time.Minute, 1), short(10*time.Second)))
				}
				s.submit(30*time.Second, with(gang(t, "d", 20*time.Second, 1), short(time.Minute)))
			},
		},
		{
			name: "visits", slices: equal(2, 10), policy: shortest.Policy{}, several: &spread{mechanism: arrangement.Laminar, zones: 2,
				count: 2, flow: brief}, until: 3 * time.Minute,
			shows: []string{"Visiting ", "Announce ", "Winning ", "Parting "},
			tell: func(t *testing.T, s *story) {
				for i := range 2 {
					s.submit(0, gang(t, job.ID(rune('a'+i)), time.Minute, 1))
				}
				s.submit(time.Second, spec(t, "long", job.Items, 40, time.Second))
			},
		},
		{
			name: "gang-zones", slices: equal(4, 10), policy: fifo.Policy{}, several: &spread{mechanism: "sja", zones: 2, count: 2},
			until: 3 * time.Minute,
			shows: []string{"Lenders ", "Borrow ", "Lent ", "ReservationMade", " members=(", "COMPLETED"},
			tell: func(t *testing.T, s *story) {
				s.submit(0, gang(t, "first", 40*time.Second, 2))
				s.submit(2*time.Second, with(gang(t, "trio", time.Minute, 3), func(s *job.Spec) { s.Topology = job.SameCluster }))
			},
		},
		{
			name: "zone-dies", slices: equal(2, 10), policy: shortest.Policy{}, several: &spread{mechanism: arrangement.Laminar, zones: 2,
				count: 2, flow: brief}, until: 3 * time.Minute,
			shows: []string{"zone local-1 comes up"},
			faults: sim.Faults{Schedule: []sim.Fault{{Kind: sim.ZoneCrash, At: at(10 * time.Second), For: 5 * time.Second,
				Zone: "local-1"}}},
			tell: func(t *testing.T, s *story) {
				for i := range 4 {
					s.submit(time.Duration(i)*time.Second, gang(t, job.ID(rune('a'+i)), 40*time.Second, 1))
				}
			},
		},
	}
}
