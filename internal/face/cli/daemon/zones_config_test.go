package daemon

import (
	"testing"

	"sluice.dev/sluice/internal/edge/config"
)

// TestZonesOfTheFile reach the actors: the nodes are dealt among the zones.
func TestZonesOfTheFile(t *testing.T) {
	c, err := actorConfig(Options{Mechanism: "sja", File: config.Daemon{Policy: "fair", Zones: 2, Nodes: 3}}, "m")
	if err != nil || len(c.Zones) != 2 || len(c.Nodes) != 3 || len(c.Gate.Zones) != 2 || c.Nodes[2].Zone != c.Zones[0].ID {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := actorConfig(Options{Mechanism: "sja", File: config.Daemon{Policy: "fair"}}, "m"); err != nil || len(c.Zones) != 1 ||
		c.Nodes[0].ID != "m" {
		t.Errorf("%+v, %v", c, err)
	}
}
