package main

import (
	_ "embed"
	"fmt"
	"strings"

	"sluice.dev/sluice/bench/sweep"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/all"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
)

// study varies one setting of a scenario that ships.
type study struct {
	sweep.Study `yaml:",inline"`
	// Base is the scenario where a point names none.
	Base string
	// CPU: the processor's time is measured, with the first seed.
	CPU bool
	// Theory is what the fluid model varies, nothing where there is no theory, and for how many zones.
	Theory struct {
		Zones int
		Vary  string
	}
	// Frontier are the points that are drawn as placed share over messages and over landing; who beats laminar is listed for all points,
	// if there are any.
	Frontier []float64
}

const (
	ours   = "laminar"
	theory = "fluid model"
	medium = "laminar-10k"
	large  = "laminar-100k"
)

//go:embed studies.yaml
var table []byte

// studies in the order of the page.
func studies() []study { return sweep.Read[study](table) }

// model is the theory of a point.
func (t *study) model(x float64) fluid.Model {
	m := fluid.Usual(t.Theory.Zones)
	switch t.Theory.Vary {
	case "load":
		m.Load = x
	case "age":
		m.Age = x
	case "nodes":
		m = fluid.Usual(int(x / 100))
	}
	return m
}

// usual are the metrics that most studies draw.
func usual() []string {
	return []string{measure.PlacedShare, measure.LandingP50, measure.LandingP99, measure.MessagesPerTask, measure.HopsMean,
		measure.LeftoverUse, measure.ZoneFairness}
}

// kinds are the mechanisms of a study: those of the table (all, as without any), the ablations after laminar itself, and others by name.
func (t *study) kinds() (list []swarm.Kind, err error) {
	ablations := laminar.Ablations()
	for _, name := range strings.Split(t.Mechanisms, ",") {
		switch name {
		case "", "all":
			list = append(list, all.Kinds()...)
			continue
		case "ablations":
			own, err := kind(ours)
			if err != nil {
				return nil, err
			}
			list = append(append(list, own), ablations...)
			continue
		}
		k, err := kind(name)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

// kind finds a mechanism, ablations too.
func kind(name string) (swarm.Kind, error) {
	var names []string
	for _, k := range append(all.Kinds(), laminar.Ablations()...) {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return swarm.Kind{}, fmt.Errorf("there is no mechanism %s; there are %s", name, strings.Join(names, ", "))
}

// window of a world that begins full, in which processors are measured or not: of 1,000 nodes 20 seconds and every seed are cheap, of more
// 5 seconds and one seed have as many tasks.
func window(base string, cpu bool) strict.Set {
	text := "{warmup: 10s, until: 30s}"
	switch {
	case cpu:
		text = "{warmup: 3s, until: 4s}"
	case base == medium || base == large:
		text = "{warmup: 5s, until: 10s}"
	}
	return strict.Set{Path: "window", Value: text}
}
