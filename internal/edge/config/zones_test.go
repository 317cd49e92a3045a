package config

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
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
	if d, err := ParseDaemon("sluice.yml", []byte("zones: [local-1, east]\nnodes: 3")); err != nil || d.Zones != 2 ||
		!slices.Equal(d.ZoneNames, []job.ZoneID{"local-1", "east"}) || d.Nodes != 3 {
		t.Errorf("names of zones: %+v, %v", d, err)
	}
	text := "nodes: [{count: 2, rack: r1, block: b1}, {rack: r1}, {}]"
	places := []arrangement.Location{{Rack: "r1", Block: "b1"}, {Rack: "r1", Block: "b1"}, {Rack: "r1"}, {}}
	if d, err := ParseDaemon("sluice.yml", []byte(text)); err != nil || d.Nodes != 4 || !slices.Equal(d.Places, places) {
		t.Errorf("%q: %d nodes, %v, %v; want %v", text, d.Nodes, d.Places, err, places)
	}
	for text, want := range map[string]gang.Ports{
		"queues: []": {}, "gangs: {}": {}, "gangs: {ports: 4000-4001}": {First: 4000, Last: 4001},
	} {
		if d, err := ParseDaemon("sluice.yml", []byte(text)); err != nil || d.Ports != want {
			t.Errorf("%q: ports %+v, %v; want %+v", text, d.Ports, err, want)
		}
	}
	for text, want := range map[string]string{
		"gangs: {ports: 4000}":             "gangs.ports",
		"gangs: {ports: 80-90}":            "within 1024 and 65535",
		"gangs: {ports: 5000-4000}":        "29400-30399",
		"gangs: {port: 5000-6000}":         "port",
		"nodes: []":                        "are 0",
		"nodes: [{rack: R 1}]":             "nodes[0].rack",
		"nodes: [{count: 1024}, {row: r}]": "row",
		"zones: []":                        "are none",
		"zones: [a, b, a]":                 `sluice.yml:1:15: zones[2]: "a" is named twice`,
		"zones: [A b]":                     "zones[0]",
		"zones: [a, b]\nnodes: 1":          "are 1 for 2 zones",
		"zones: 0":                         "sluice.yml:1:8: zones",
		"zones: 257":                       "want",
		"nodes: 2000":                      "want",
		"zones: 3\nnodes: 2":               "sluice.yml:2:8: nodes: are 2 for 3 zones",
		"zones: several":                   "zones",
	} {
		if _, err := ParseDaemon("sluice.yml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
