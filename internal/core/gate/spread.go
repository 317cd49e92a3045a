package gate

import (
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
)

// A gang that may lie on several nodes is judged by where these stand, once all have said so.

// apart says why no slices that stand as close together as a job asks for could ever run it, and what would fit; empty if some could, or may.
func (g *Gate) apart(spec *job.Spec) (why, nearest string) {
	if spec.Topology == job.SameNode || !g.heardAll() {
		return "", ""
	}
	if spec.Topology == job.SameCluster && len(g.cfg.Zones) > 1 {
		return g.scattered(spec)
	}
	most, all := 0, 0
	for i := range g.cfg.Zones {
		most, all = max(most, g.together(spec, spec.Topology, i)), max(all, g.together(spec, job.SameZone, i))
	}
	if most >= spec.Slices || most == 0 { // of nothing nothing is known
		return "", ""
	}
	nearest = fmt.Sprintf("slices: %d", most)
	if all >= spec.Slices {
		nearest += ", or topology: zone"
	}
	return fmt.Sprintf("it needs %d slices within one %v, and no %v has more than %d that could run it", spec.Slices, spec.Topology, spec.Topology, most), nearest
}

// heardAll says whether every node that is named has reported.
func (g *Gate) heardAll() bool {
	for i := range g.cfg.Zones {
		for _, n := range g.cfg.Zones[i].Nodes {
			if _, heard := g.inventory.nodes[string(n)]; !heard {
				return false
			}
		}
	}
	return true
}

// together is how many slices of zone i that could run the job stand together on a level, where they are most.
func (g *Gate) together(spec *job.Spec, level job.Level, i int) (most int) {
	names := slices.Sorted(maps.Keys(g.inventory.nodes))
	count := map[[2]string]int{}
	for _, name := range names {
		if at, known := g.inventory.zoneOf[name]; len(g.cfg.Zones) > 1 && (!known || at != i) {
			continue
		}
		list := g.inventory.nodes[name]
		for k := range list {
			if !atomizer.Holds(spec, &list[k]) {
				continue
			}
			key := [2]string{"node " + name}
			switch s := &list[k]; {
			case level >= job.SameZone:
				key = [2]string{}
			case level == job.SameBlock && s.Block != "":
				key = [2]string{"block " + s.Block}
			case level == job.SameRack && s.Rack != "":
				key = [2]string{"block " + s.Block, "rack " + s.Rack}
			}
			count[key]++
			most = max(most, count[key])
		}
	}
	return most
}
