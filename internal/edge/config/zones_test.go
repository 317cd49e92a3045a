package config

import (
	"strings"
	"testing"
)

// TestZonesAndNodes of the daemon's file: left out there is one of each, and what makes no sense is said with its place.
func TestZonesAndNodes(t *testing.T) {
	for text, want := range map[string][2]int{
		"queues: []":              {0, 0},
		"zones: 2":                {2, 0},
		"zones: 2\nnodes: 6":      {2, 6},
		"nodes: 3":                {0, 3},
		"zones: 256\nnodes: 1024": {256, 1024},
	} {
		d, err := ParseDaemon("sluice.yml", []byte(text))
		if err != nil || [2]int{d.Zones, d.Nodes} != want {
			t.Errorf("%q: %d zones, %d nodes, %v; want %v", text, d.Zones, d.Nodes, err, want)
		}
	}
	for text, want := range map[string]string{
		"zones: 0":           "sluice.yml:1:8: zones",
		"zones: 257":         "want",
		"nodes: 2000":        "want",
		"zones: 3\nnodes: 2": "sluice.yml:2:8: nodes: are 2 for 3 zones",
		"zones: several":     "zones",
	} {
		if _, err := ParseDaemon("sluice.yml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
