package main

import (
	_ "embed"
	"strings"

	"sluice.dev/sluice/bench/sweep"
	policies "sluice.dev/sluice/internal/core/policy/all"
)

// study varies one setting of the base scenario. In paths, the prefix WORK. means the scenario's workload. The mechanism called objectives
// stands for Sluice's own under each policy.
type study struct {
	sweep.Study `yaml:",inline"`
	// Generated: it runs on generated work, whether there are traces or not. A study that needs traces is left out where there are none.
	Generated bool
	// Every: it compares mechanisms and uses all seeds. The others vary a setting and use the first fewSeeds.
	Every bool
	// Usual is the label of the point that is the default, with which the others are compared; empty for none.
	Usual string
	// Paired are the metrics of that comparison, Table those in the page's table.
	Paired, Table []string
	// Frontier are the pairs of metrics that are drawn against each other at every point.
	Frontier [][2]string
}

const (
	mainStudy = "load"
	// fewSeeds of those that were asked for are enough for a setting.
	fewSeeds = 5
	// usualLoad is that of the base scenario.
	usualLoad = "0.9"
)

//go:embed studies.yaml
var table []byte

func studies() []study { return sweep.Read[study](table) }

// mechanisms that run at every point, by name.
func (t *study) mechanisms() []string {
	var under []string
	for _, m := range []string{sja, jasda} {
		for _, p := range policies.Names() {
			under = append(under, m+":"+p)
		}
	}
	return strings.Split(strings.Replace(t.Mechanisms, "objectives", strings.Join(under, ","), 1), ",")
}
