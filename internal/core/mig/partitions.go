package mig

import (
	"cmp"
	"slices"
	"strings"
)

// Partitions lists every set of instances the board can have at once, the empty one included, each in order of starts.
// Two sets that differ only in places are two.
func (g *Geometry) Partitions() []Layout {
	var all []Layout
	counts := make([]int, len(g.Profiles))
	var walk func(slot, compute, media int, l Layout)
	walk = func(slot, compute, media int, l Layout) {
		if slot >= g.MemorySlices {
			all = append(all, slices.Clone(l))
			return
		}
		walk(slot+1, compute, media, l)
		for n, p := range g.Profiles {
			if counts[n] == p.Max || !g.bears(compute+p.Compute, media+p.Media) || !slices.Contains(p.Starts, slot) {
				continue
			}
			counts[n]++
			walk(slot+p.Size, compute+p.Compute, media+p.Media, append(l, Instance{Profile: p, Start: slot}))
			counts[n]--
		}
	}
	walk(0, 0, 0, Layout{})
	return all
}

// bears reports whether the board has this many compute slices and media engines.
func (g *Geometry) bears(compute, media int) bool {
	return compute <= g.ComputeSlices && (g.Media == 0 || media <= g.Media)
}

// nearestShown is how many legal layouts an error proposes.
const nearestShown = 3

// nearest names the legal layouts that differ least from what was wished for, counted in memory slices added and
// removed; of equal ones those that use more of the board. Profiles with more or less than others of their size (+me, +gfx, -me)
// are proposed only to whom asked for them.
// Given places are not looked at.
func (g *Geometry) nearest(wishes []wish) []string {
	want := map[string]int{}
	for _, w := range wishes {
		want[w.profile.Name] = min(want[w.profile.Name]+w.count, 1<<20)
	}
	if len(want) == 0 {
		return nil
	}
	type candidate struct {
		name           string
		distance, used int
	}
	seen := map[string]bool{}
	var found []candidate
	for _, l := range g.Partitions() {
		c := candidate{name: l.String()}
		if len(l) == 0 || seen[c.name] || slices.ContainsFunc(l, func(i Instance) bool {
			return strings.ContainsAny(i.Profile.Name, "+-") && want[i.Profile.Name] == 0
		}) {
			continue
		}
		seen[c.name] = true
		for _, p := range g.Profiles {
			have := 0
			for _, i := range l {
				if i.Profile.Name == p.Name {
					have++
				}
			}
			c.distance += max(have-want[p.Name], want[p.Name]-have) * p.Size
			c.used += have * p.Compute
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.used, a.used), strings.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(nearestShown, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// wish is a part of a layout as written: a number of one profile, at a given start or at any (-1).
type wish struct {
	profile Profile
	count   int
	start   int
}
