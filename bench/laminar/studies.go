package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/all"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
)

// study varies one setting of a scenario that ships.
type study struct {
	name, title string
	// question is what the reader is to look for.
	question string
	axis     report.Axis
	// base is the scenario where a point names none.
	base   string
	points []point
	// mechanisms by name; none for all in the table.
	mechanisms []string
	// cpu: the processor's time is measured, with the first seed.
	cpu bool
	// traced: it needs published traces.
	traced bool
	// charts are the metrics drawn.
	charts []string
	// theory is the fluid model of a point; nil if there is none.
	theory func(x float64) fluid.Model
	// frontier are the points that are drawn as placed share over messages and over landing; who beats laminar is listed for all points,
	// if there are any.
	frontier []float64
}

// point is one setting.
type point struct {
	label string
	x     float64
	// base is the scenario, if it is another than the study's.
	base string
	sets []strict.Set
}

const (
	ours   = "laminar"
	theory = "fluid model"
	small  = "laminar-1k"
	medium = "laminar-10k"
	large  = "laminar-100k"
)

// What is drawn of most studies.
func usual() []string {
	return []string{measure.PlacedShare, measure.LandingP50, measure.LandingP99, measure.MessagesPerTask, measure.HopsMean,
		measure.LeftoverUse, measure.ZoneFairness}
}

// set is one replacement.
func set(path, value string) strict.Set { return strict.Set{Path: path, Value: value} }

// window is what is measured, in worlds that begin full.
func window(warmup, until time.Duration) []strict.Set {
	return []strict.Set{set("window", fmt.Sprintf("{warmup: %s, until: %s}", warmup, until))}
}

// swept makes points of a setting's values, each a number or a duration.
func swept(path string, values ...string) (list []point) {
	for _, v := range values {
		x, err := strconv.ParseFloat(v, 64)
		if d, bad := time.ParseDuration(v); err != nil && bad == nil {
			x = d.Seconds()
		}
		list = append(list, point{label: v, x: x, sets: []strict.Set{set(path, v)}})
	}
	return list
}

// named makes points that are no numbers.
func named(points ...point) []point {
	for i := range points {
		points[i].x = float64(i)
	}
	return points
}

// loads are from half to beyond what there is.
func loads() []point {
	return swept("swarm.tasks.load", "0.5", "0.7", "0.8", "0.9", "0.95", "1", "1.05", "1.1", "1.2")
}

// scales are worlds of one to a thousand times 100 nodes.
func scales() []point {
	return []point{
		{label: "1,000", x: 1_000, base: small},
		{label: "10,000", x: 10_000, base: medium},
		{label: "100,000", x: 100_000, base: large},
	}
}

// studies in the order of the page.
func studies() []study {
	load := report.Axis{Label: "load of what rigid work leaves", Unit: measure.Plain}
	nodes := report.Axis{Label: "nodes", Unit: measure.Plain, Log: true}
	aged := swept("swarm.digest", "10ms", "30ms", "100ms", "300ms", "1s", "2s", "5s")
	ablations := []string{ours}
	for _, k := range laminar.Ablations() {
		ablations = append(ablations, k.Name)
	}
	return []study{
		{
			name: "load", title: "Load", axis: load, base: medium, points: loads(), charts: usual(), frontier: []float64{.7, .9, 1, 1.1},
			question: "10,000 nodes, digests 100 ms old. Beyond load 1 somebody has to wait or to give up: long tasks wait up to 30 s, " +
				"so within these seconds who lets them wait places all of the short ones.",
			theory: func(x float64) fluid.Model { m := fluid.Usual(100); m.Load = x; return m },
		},
		{
			name: "small", title: "Load, with 1,000 nodes", axis: load, base: small, points: loads(),
			charts: []string{measure.PlacedShare, measure.LandingP99, measure.MessagesPerTask}, frontier: []float64{.9, 1, 1.1},
			question: "The same with ten zones. What rigid work leaves changes by 5% with time here, so that load .95 is now and then " +
				"beyond 1.",
			theory: func(x float64) fluid.Model { m := fluid.Usual(10); m.Load = x; return m },
		},
		{
			name: "scale", title: "Scale", axis: nodes, points: scales(), charts: usual(), frontier: []float64{1_000, 10_000, 100_000},
			question: "Load .9, zones of 100 nodes. What a task costs must not grow.",
			theory:   func(x float64) fluid.Model { return fluid.Usual(int(x / 100)) },
		},
		{
			name: "age", title: "Age of digests", axis: report.Axis{Label: "period of digests and reports", Unit: measure.Seconds,
				Log: true}, base: medium, points: aged, charts: usual(),
			mechanisms: []string{ours, "laminar:uniform", "laminar:argmax", "two-level", "spillback", "omega"},
			question: "Load .9, 10,000 nodes. A digest is half a period old on average when a gate makes its table of it, and a " +
				"period when a task is drawn. Central queues are told of every change and are left out.",
			theory: func(x float64) fluid.Model { m := fluid.Usual(100); m.Age = x; return m },
		},
		{
			name: "parts", title: "Without a part", axis: load, base: medium, points: swept("swarm.tasks.load", "0.7", "0.9", "1", "1.1"),
			charts: []string{measure.PlacedShare, measure.LandingP99, measure.MessagesPerTask, measure.LeftoverUse,
				measure.ZoneFairness},
			mechanisms: ablations,
			question: "What each part is worth: zones drawn by the best digest (argmax) or alike (uniform), tasks submitted again " +
				"after four refusals (forgetful), hops to any node (blind), nodes that answer as probes come (first-come), no grant and " +
				"claim (direct).",
		},
		{
			name: "faults", title: "Faults", axis: report.Axis{Label: "fault", Unit: measure.Plain}, base: small,
			mechanisms: []string{ours, "two-level", "spillback", "omega", "sparrow", "central"},
			question: "Load .7, 1,000 nodes. One zone of ten dead for eight seconds with all that runs there, or cut off; one message " +
				"of 200 lost, with jitter; one node of ten five times as slow; digests of two seconds. What ran on a zone that died is " +
				"lost and not counted as unplaced.",
			points: named(
				point{label: "none", sets: []strict.Set{set("swarm.tasks.load", "0.7")}},
				point{label: "zone dies", sets: []strict.Set{set("swarm.tasks.load", "0.7"),
					set("swarm.faults", "[{at: 15s, zone: 3, for: 8s}]")}},
				point{label: "zone cut off", sets: []strict.Set{set("swarm.tasks.load", "0.7"),
					set("swarm.faults", "[{at: 15s, zone: 3, for: 8s, cut: true}]")}},
				point{label: "loss, jitter", sets: []strict.Set{set("swarm.tasks.load", "0.7"),
					set("swarm.network", "{delay: 500us, jitter: 200us, loss: 0.5%}")}},
				point{label: "stragglers", sets: []strict.Set{set("swarm.tasks.load", "0.7"),
					set("swarm.stragglers", "{share: 10%, slow: 5}")}},
				point{label: "old digests", sets: []strict.Set{set("swarm.tasks.load", "0.7"), set("swarm.digest", "2s")}},
			),
		},
		{
			name: "logs", title: "Published logs", axis: report.Axis{Label: "log", Unit: measure.Plain}, base: small, traced: true,
			question: "Requests to language models as short tasks, over and over with their gaps shrunk until they make up the load " +
				"(scenarios laminar-azure and laminar-mooncake; 0.1 ms for each token of a prompt, 20 ms for each generated). Those of " +
				"Mooncake have times in steps of three seconds and come in crowds.",
			points: named(
				point{label: "azure, .7", base: "laminar-azure"}, point{label: "azure, .9", base: "laminar-azure",
					sets: []strict.Set{set("swarm.tasks.load", "0.9")}},
				point{label: "mooncake, .7", base: "laminar-mooncake"}, point{label: "mooncake, .9", base: "laminar-mooncake",
					sets: []strict.Set{set("swarm.tasks.load", "0.9")}},
			),
		},
		{
			name: "cpu-load", title: "Processor time against load", axis: load, base: medium,
			points: swept("swarm.tasks.load", "0.5", "0.7", "0.9", "1", "1.1"), charts: []string{measure.CPUNanosPerTask}, cpu: true,
			mechanisms: append(slices.Clone(everybody()), "laminar:blind", "laminar:forgetful"),
			question: "Time of the mechanism's own calls for each task that is placed: sending, timers and slices are the world's and " +
				"left out. Each run is played three times and of each call the fastest counts.",
		},
		{
			name: "cpu-scale", title: "Processor time against scale", axis: nodes, points: scales(),
			charts: []string{measure.CPUNanosPerTask}, cpu: true,
			question: "The same at load .9. With 100,000 nodes what a call needs is no longer in a cache, since one processor plays all " +
				"parties; a zone of its own machine would have it there.",
		},
	}
}

// everybody is the table.
func everybody() (names []string) {
	for _, k := range all.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// usualWindow of a world, in which processors are measured or not: of 1,000 nodes 20 seconds and every seed are cheap, of more 5 seconds
// and one seed have as many tasks.
func usualWindow(base string, cpu bool) []strict.Set {
	switch {
	case cpu:
		return window(3*time.Second, 4*time.Second)
	case base == medium || base == large:
		return window(5*time.Second, 10*time.Second)
	}
	return window(10*time.Second, 30*time.Second)
}

// kind finds a mechanism, ablations too.
func kind(name string) (swarm.Kind, error) {
	for _, k := range append(all.Kinds(), laminar.Ablations()...) {
		if k.Name == name {
			return k, nil
		}
	}
	return swarm.Kind{}, fmt.Errorf("there is no mechanism %s; there are %s", name, strings.Join(everybody(), ", "))
}
