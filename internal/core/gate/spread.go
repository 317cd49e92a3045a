package gate

import (
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
)

// A gang is refused by where slices stand, but only once all nodes have reported: an absent one may have what it needs.

// apart says why no slices that stand as close together as a gang asks for could ever run it, and what would fit; empty if some could, or
// may.
func (g *Gate) apart(spec *job.Spec) (why, nearest string) {
	if spec.Slices < 2 || !g.heardAll() {
		return "", ""
	}
	if spec.Topology == job.SameCluster && len(g.cfg.Zones) > 1 {
		return g.scattered(spec)
	}
	most := g.widest(spec, spec.Topology)
	if most >= spec.Slices || most == 0 { // 0: not even one member fits, which atomizer.Impossible explains
		return "", ""
	}
	nearest = fmt.Sprintf("slices: %d", most)
	if wider, found := g.looser(spec); found {
		nearest += fmt.Sprintf(", or topology: %v", wider)
	}
	return fmt.Sprintf("it needs %d slices of %d MiB within one %v, and no %v has more than %d that could run it",
		spec.Slices, atomizer.WholeMiB(spec), spec.Topology, spec.Topology, most), nearest
}

// widest is how many slices that could run the job stand together on a level, in the zone where they are most.
func (g *Gate) widest(spec *job.Spec, level job.Level) (most int) {
	for i := range g.cfg.Zones {
		if !g.drained[g.cfg.Zones[i].ID] {
			most = max(most, g.together(spec, level, i))
		}
	}
	return most
}

// looser is the narrowest level wider than the gang's own that has enough slices for it.
func (g *Gate) looser(spec *job.Spec) (job.Level, bool) {
	for level := spec.Topology + 1; level <= job.SameZone; level++ {
		if g.widest(spec, level) >= spec.Slices {
			return level, true
		}
	}
	queue, found := g.findQueue(spec.Queue)
	return job.SameCluster, found && len(g.cfg.Zones) > 1 && g.acrossZones(spec, queue) >= spec.Slices
}

// heardAll says whether every node that is named, and is not of a drained zone, has reported.
func (g *Gate) heardAll() bool {
	for i := range g.cfg.Zones {
		if g.drained[g.cfg.Zones[i].ID] {
			continue
		}
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
	count := map[[2]string]int{}
	for _, name := range g.nodesOf(i) {
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

// nodesOf are the nodes of zone i, reported or not; a single zone has every node that has reported.
func (g *Gate) nodesOf(i int) []string {
	if len(g.cfg.Zones) == 1 {
		return slices.Sorted(maps.Keys(g.inventory.nodes))
	}
	names := make([]string, 0, len(g.cfg.Zones[i].Nodes))
	for _, n := range g.cfg.Zones[i].Nodes {
		names = append(names, string(n))
	}
	return names
}
