package config

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
)

func TestAirlock(t *testing.T) {
	for text, want := range map[string]Airlock{
		"queues: []":             {},
		"airlock: {}":            {Kind: "auto"},
		"airlock: {kind: auto}":  {Kind: "auto"},
		"airlock: {kind: off}":   {Kind: "off"},
		"airlock: {kind: tree}":  {Kind: "tree"},
		"airlock: {timer: 15s}":  {Kind: "auto", Lines: airlock.Config{Timer: 15 * time.Second, Yield: 5 * time.Second}},
		"airlock: {severe: 0.9}": {Kind: "auto", Lines: airlock.Config{Severe: 900}},
		"airlock: {kind: cgroup, order: priority, calm: 70%, severe: 0.8, emergency: 0.95, entries: 5}": {
			Kind: "cgroup", Lines: airlock.Config{Order: airlock.PriorityFirst, Calm: 700, Severe: 800, Emergency: 950, Entries: 5},
		},
		"airlock: {memory: auto}":               {Kind: "auto"},
		"airlock: {memory: off}":                {Kind: "auto", Uncounted: true},
		"airlock: {memory: 12Gi, excess: 0.1%}": {Kind: "auto", Memory: 12 << 30, Excess: 1000},
	} {
		if d, err := ParseDaemon("f", []byte(text)); err != nil || d.Airlock != want {
			t.Errorf("%s: %+v, %v; want %+v", text, d.Airlock, err, want)
		}
	}
	for text, parts := range map[string][]string{
		"airlock: {kind: swap, order: age, calm: 2, timer: 1ms, entries: 0, park: 1}": {"airlock.kind", "airlock.order", "airlock.calm",
			"airlock.timer", "airlock.entries", "park"},
		"airlock: {memory: some, excess: 60%}": {"airlock.memory", "airlock.excess"},
		"airlock: {calm: 0.95}":                {"airlock", "calm 950"},
	} {
		_, err := ParseDaemon("f", []byte(text))
		if err == nil {
			t.Fatalf("%s: taken", text)
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v\ndoes not say %s", err, part)
			}
		}
	}
}
