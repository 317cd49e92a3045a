package cli

import "testing"

// TestZonesOfTheFile reach the actors: the nodes are dealt among the zones.
func TestZonesOfTheFile(t *testing.T) {
	c, err := actorConfig(UpOptions{Mechanism: "sja", Policy: "fair", Zones: 2, Nodes: 3}, "m")
	if err != nil || len(c.Zones) != 2 || len(c.Nodes) != 3 || len(c.Gate.Zones) != 2 || c.Nodes[2].Zone != c.Zones[0].ID {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := actorConfig(UpOptions{Mechanism: "sja", Policy: "fair"}, "m"); err != nil || len(c.Zones) != 1 || c.Nodes[0].ID != "m" {
		t.Errorf("%+v, %v", c, err)
	}
}
