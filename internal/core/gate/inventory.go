package gate

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
)

// inventory is the slices of every node that has reported, and how many there are of each kind: what a submission is judged
// against, whatever the number of slices.
type inventory struct {
	nodes map[string][]protocol.Slice
	kinds atomizer.Kinds
	// zones are those of each zone, by its place, and zoneOf where a node belongs; both empty where there is one zone.
	zones  []inZone
	zoneOf map[string]int
	// unheard are the nodes to ask for their report, with several zones: one that is lost would keep jobs from a zone for ever.
	unheard outbox.Box[job.NodeID]
	asking  map[string]*outbox.Item[job.NodeID]
}

// inZone is what one zone has.
type inZone struct {
	kinds atomizer.Kinds
	// heard counts the nodes that have reported.
	heard int
}

func newInventory(cfg *Config) inventory {
	v := inventory{nodes: map[string][]protocol.Slice{}, unheard: outbox.New[job.NodeID](cfg.Retry, mostDismissed)}
	if len(cfg.Zones) == 1 {
		return v
	}
	v.zones, v.zoneOf, v.asking = make([]inZone, len(cfg.Zones)), map[string]int{}, map[string]*outbox.Item[job.NodeID]{}
	for i := range cfg.Zones {
		for _, n := range cfg.Zones[i].Nodes {
			v.zoneOf[string(n)] = i
			v.asking[string(n)] = v.unheard.Say(nil, n)
		}
	}
	return v
}

// report replaces what is known of a node. With several zones one that belongs to none of them counts for nothing.
func (v *inventory) report(node string, all []protocol.Slice) {
	each := []*atomizer.Kinds{&v.kinds}
	if len(v.zones) > 0 {
		i, known := v.zoneOf[node]
		if !known {
			return
		}
		if _, heard := v.nodes[node]; !heard {
			v.zones[i].heard++
		}
		each = append(each, &v.zones[i].kinds)
		v.asking[node] = v.unheard.Confirm(v.asking[node])
	}
	for _, kinds := range each {
		for i := range v.nodes[node] {
			kinds.Remove(&v.nodes[node][i])
		}
		for i := range all {
			kinds.Add(&all[i])
		}
	}
	v.nodes[node] = all
}
