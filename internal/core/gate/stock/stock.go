// Package stock is what slices there are, as their nodes last reported: what a submission is judged against. The kinds are those of
// exactly the slices that were reported, of all nodes together and of each zone, so that judging costs the same whatever the number of
// slices.
package stock

import (
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostAsked nodes are asked at most in one interval of retry and have not answered.
const mostAsked = 256

// Zone is one zone as the gate is configured to know it.
type Zone struct {
	ID job.ZoneID
	// Nodes that offer their slices there. A zone alone needs none named: every node is its own.
	Nodes []job.NodeID
}

// Stock is what slices all zones have, as their nodes reported.
type Stock struct {
	zones []Zone
	// own are the nodes that are named in a zone; none: all are as if they were.
	own   map[string]bool
	nodes map[string][]protocol.Slice
	kinds atomizer.Kinds
	// in is what each zone has, by its place, and zoneOf where a node belongs; both empty where there is one zone.
	in     []inZone
	zoneOf map[string]int
	// unheard are the nodes to ask for their report, with several zones: one that is lost would keep jobs from a zone for ever.
	unheard outbox.Box[job.NodeID]
	asking  map[string]*outbox.Item[job.NodeID]
}

type inZone struct {
	kinds atomizer.Kinds
	// heard counts the nodes that have reported.
	heard int
}

// New knows of no slice. Nodes that have not reported are asked again after retry.
func New(zones []Zone, retry time.Duration) *Stock {
	v := &Stock{zones: zones, own: map[string]bool{}, nodes: map[string][]protocol.Slice{},
		unheard: outbox.New[job.NodeID](retry, mostAsked)}
	for i := range zones {
		for _, n := range zones[i].Nodes {
			v.own[string(n)] = true
		}
	}
	if len(zones) == 1 {
		return v
	}
	v.in, v.zoneOf, v.asking = make([]inZone, len(zones)), map[string]int{}, map[string]*outbox.Item[job.NodeID]{}
	for i := range zones {
		for _, n := range zones[i].Nodes {
			v.zoneOf[string(n)] = i
			v.asking[string(n)] = v.unheard.Say(nil, n)
		}
	}
	return v
}

// Takes reports whether a node's report may be taken in: it says what can be, and, of a node that is not named in a zone though others are,
// is not too long.
func (v *Stock) Takes(node string, all []protocol.Slice) bool {
	return (len(all) <= protocol.MostSlices || len(v.own) == 0 || v.own[node]) &&
		!slices.ContainsFunc(all, func(s protocol.Slice) bool { return !s.Sound() })
}

// Report replaces what is known of a node. With several zones one that belongs to none of them counts for nothing.
func (v *Stock) Report(node string, all []protocol.Slice) {
	each := []*atomizer.Kinds{&v.kinds}
	if len(v.in) > 0 {
		i, known := v.zoneOf[node]
		if !known {
			return
		}
		if _, heard := v.nodes[node]; !heard {
			v.in[i].heard++
		}
		each = append(each, &v.in[i].kinds)
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

// Remove says that a node was removed, and has none. One of several zones has been heard with that.
func (v *Stock) Remove(node string) {
	v.Report(node, nil)
	if len(v.in) == 0 {
		delete(v.nodes, node)
	}
}

// Kinds returns the kinds of all slices.
func (v *Stock) Kinds() *atomizer.Kinds { return &v.kinds }

// KindsIn returns the kinds of slices in one zone of several, by its index.
func (v *Stock) KindsIn(zone int) *atomizer.Kinds { return &v.in[zone].kinds }

// Heard says whether all nodes of one of several zones have reported. zone is its index.
func (v *Stock) Heard(zone int) bool { return v.in[zone].heard >= len(v.zones[zone].Nodes) }

// HeardAll says whether every node that is named, and is of no zone that is left out, has reported.
func (v *Stock) HeardAll(out func(job.ZoneID) bool) bool {
	for i := range v.zones {
		if out(v.zones[i].ID) {
			continue
		}
		for _, n := range v.zones[i].Nodes {
			if _, heard := v.nodes[string(n)]; !heard {
				return false
			}
		}
	}
	return true
}

// Together is how many slices of a zone that could run the job stand together on a level, where they are most.
func (v *Stock) Together(spec *job.Spec, level job.Level, zone int) (most int) {
	count := map[[2]string]int{}
	for _, name := range v.nodesOf(zone) {
		list := v.nodes[name]
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

// nodesOf are the nodes of a zone, reported or not; a single zone has every node that has reported.
func (v *Stock) nodesOf(zone int) []string {
	if len(v.zones) == 1 {
		return slices.Sorted(maps.Keys(v.nodes))
	}
	names := make([]string, 0, len(v.zones[zone].Nodes))
	for _, n := range v.zones[zone].Nodes {
		names = append(names, string(n))
	}
	return names
}

// Widest is how many slices that could run the job stand together on a level, in the zone where they are most of those that are not left
// out.
func (v *Stock) Widest(spec *job.Spec, level job.Level, out func(job.ZoneID) bool) (most int) {
	for i := range v.zones {
		if !out(v.zones[i].ID) {
			most = max(most, v.Together(spec, level, i))
		}
	}
	return most
}

// Asked are the nodes of several zones that are to be asked now what they have, by name.
func (v *Stock) Asked(now quantity.Instant) []job.NodeID {
	unheard := v.unheard.Take(now, nil)
	slices.Sort(unheard)
	return unheard
}

// Wake is when Asked has something to send.
func (v *Stock) Wake() quantity.Instant { return v.unheard.Wake() }
