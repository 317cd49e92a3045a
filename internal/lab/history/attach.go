package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const strangeGauge = "a measured device that is none of its node's in the log"

// attach gives the devices of the site what was measured of them: of whole ones the one of its index, if the node has one kind; of slices
// of a profile in the order of their GPUs and instances, if the log has as many.
func (s *site) attach() {
	all := s.log.samples.gauges.all
	matched := false
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].Node == all[from].Node {
			to++
		}
		matched = s.fit(all[from:to]) || matched
		from = to
	}
	if matched && !s.anywhere {
		s.log.Assume("which of a node's devices a job held the log does not say: of those that were free it is taken to be those that " +
			"were measured busy longest while it ran")
	}
}

// fit attaches the gauges of one node, and says whether any fits.
func (s *site) fit(of []gauge) (matched bool) {
	number, ok := s.log.nodes.known[of[0].Node]
	if !ok || s.anywhere {
		s.log.samples.Odd(homelessGauge, gaugeLeftOut, of[0].Node)
		return false
	}
	x := &s.spots[s.at[number]]
	groups := map[string][]*gauge{}
	for i := range of {
		if g := &of[i]; g.tells() {
			kind := ""
			if g.Slice != "" {
				kind = s.log.samples.gauges.kind(g)
			}
			groups[kind] = append(groups[kind], g)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		list := groups[kind]
		p := x.of(s.kinds, kind)
		for k, g := range list {
			if p != nil && kind == "" && len(list) != len(p.devices) {
				k = int(g.Index)
			}
			if p == nil || kind != "" && len(list) != len(p.devices) || k >= len(p.devices) {
				s.log.samples.Odd(strangeGauge, gaugeLeftOut, strings.TrimSuffix(fmt.Sprintf("%s/%d/%s", g.Node, g.Index, g.Slice), "/"))
				continue
			}
			p.devices[k].use, p.measured, matched = g.use(), true, true
		}
	}
	return matched
}

// of is a spot's one pool of whole devices, or that of a profile of MIG; nil if there is none, or several.
func (x *spot) of(kinds []Kind, profile string) (found *pool) {
	for _, p := range x.pools {
		k := &kinds[p.kind]
		if len(p.devices) == 0 || profile == "" && k.Weight != 1000 ||
			profile != "" && k.Name != profile && !strings.HasSuffix(k.Name, "_"+profile) && !strings.HasSuffix(k.Name, "-"+profile) {
			continue
		}
		if found != nil {
			return nil
		}
		found = p
	}
	return found
}
