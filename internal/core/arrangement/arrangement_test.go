package arrangement_test

import (
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/policy/fair"
)

// TestWhoThereIs: one of each under its plain name, or several that are numbered, each node in one zone, in turn.
func TestWhoThereIs(t *testing.T) {
	for _, c := range []struct {
		zones, nodes int
		parties      string
		dealt        []gate.Zone
	}{
		{0, 0, "the gate, zone local, node m", []gate.Zone{{ID: "local", Nodes: []job.NodeID{"m"}}}},
		{1, 2, "the gate, zone local, node m-1, node m-2", []gate.Zone{{ID: "local", Nodes: []job.NodeID{"m-1", "m-2"}}}},
		{2, 0, "the gate, zone local-1, zone local-2, node m-1, node m-2", []gate.Zone{{ID: "local-1", Nodes: []job.NodeID{"m-1"}},
			{ID: "local-2", Nodes: []job.NodeID{"m-2"}}}},
		{2, 3, "the gate, zone local-1, zone local-2, node m-1, node m-2, node m-3",
			[]gate.Zone{{ID: "local-1", Nodes: []job.NodeID{"m-1", "m-3"}}, {ID: "local-2", Nodes: []job.NodeID{"m-2"}}}},
	} {
		config, err := arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Node: "m", Zones: c.zones, Nodes: c.nodes,
			Fixed: c.nodes > 1}.Config()
		if err != nil {
			t.Fatal(err)
		}
		build, err := config.Build()
		if err != nil {
			t.Fatal(err)
		}
		set := build()
		if got := actor.Names(set.Parties()); got != c.parties || !reflect.DeepEqual(config.Gate.Zones, c.dealt) {
			t.Errorf("%d zones and %d nodes: %s, dealt %v", c.zones, c.nodes, got, config.Gate.Zones)
		}
		for i := range config.Nodes {
			if n := &config.Nodes[i]; n.Number != i || n.Fixed != (c.nodes > 1) {
				t.Errorf("node %d has the number %d, fixed: %v", i, n.Number, n.Fixed)
			}
		}
		if set.At(set.Zones[0].ID) != set.Zones[0].Zone || set.At("nowhere") != nil {
			t.Error("a zone is not found by its name")
		}
	}
}

// TestWhatDoesNotGoTogether is said.
func TestWhatDoesNotGoTogether(t *testing.T) {
	for _, c := range []struct {
		zones, nodes int
		want         string
	}{{-1, 0, "zones: -1"}, {1, 5000, "nodes: 5000"}, {3, 2, "at least 3"}} {
		if _, err := (arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Node: "m", Zones: c.zones,
			Nodes: c.nodes}).Config(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d zones, %d nodes: %v", c.zones, c.nodes, err)
		}
	}
	if c, err := (arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Node: "m", Zones: 1, ZoneNames: []job.ZoneID{"local-2"},
		Nodes: 2}).Config(); err != nil ||
		!reflect.DeepEqual(c.Gate.Zones, []gate.Zone{{ID: "local-2", Nodes: []job.NodeID{"m-1", "m-2"}}}) {
		t.Errorf("one zone of a name: %+v, %v", c.Gate.Zones, err)
	}
	if _, err := (arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Node: "m", Zones: 3,
		ZoneNames: []job.ZoneID{"a"}}).Config(); err == nil || !strings.Contains(err.Error(), "1 names") {
		t.Errorf("one name of three zones: %v", err)
	}
	good := func() arrangement.Config {
		c, err := arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Node: "m", Zones: 2}.Config()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for want, spoil := range map[string]func(c *arrangement.Config){
		"at least one of each":         func(c *arrangement.Config) { c.Nodes = nil },
		"the number 1":                 func(c *arrangement.Config) { c.Nodes[1].Number = 7 },
		`nodes[1] is "m-1"`:            func(c *arrangement.Config) { c.Nodes[1].ID = "m-1" },
		`offers to zone "x"`:           func(c *arrangement.Config) { c.Nodes[1].Zone = "x" },
		"the gate knows 1 zones":       func(c *arrangement.Config) { c.Gate.Zones = c.Gate.Zones[:1] },
		`sends jobs to zone "x"`:       func(c *arrangement.Config) { c.Gate.Zones[0].ID = "x" },
		`node "m-2" in zone "local-1"`: func(c *arrangement.Config) { c.Gate.Zones[0].Nodes[0] = "m-2" },
	} {
		c := good()
		spoil(&c)
		if _, err := c.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestNodesShareTheirMachinesMemory alike; where it is not counted none of them counts it.
func TestNodesShareTheirMachinesMemory(t *testing.T) {
	for _, memory := range []joint.Config{{}, {Memory: 90, Excess: 1000}} {
		c, err := arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Node: "m", Nodes: 3, Memory: memory}.Config()
		if err != nil || len(c.Nodes) != 3 {
			t.Fatalf("%d nodes, %v", len(c.Nodes), err)
		}
		for i := range c.Nodes {
			want := memory
			if want.Memory /= 3; c.Nodes[i].Host != want {
				t.Errorf("node %d counts %+v, want %+v", i, c.Nodes[i].Host, want)
			}
		}
	}
}
