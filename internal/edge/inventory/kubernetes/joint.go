//go:build kubernetes

package kubernetes

import (
	"slices"

	"sluice.dev/sluice/internal/core/giveback"
)

// A Pod that wants several devices gets them together: the set whose subjobs cost least to stop, all of which are told at once. One device after the other would take the
// cheapest first, and then stop more for the second than both need.

// mostPrices bounds how many sets of devices are priced on one machine. The first is that of taking one after the other; within the bound the one that is found costs least.
const mostPrices = 1024

// pick is a device of a pool.
type pick struct {
	of *remains
	d  *device
}

// joint looks for the cheapest devices for all that somebody wants.
type joint struct {
	r     *room
	all   remainders
	wants []want
	looks int

	found bool
	best  []pick
	stops []giving
	cost  giveback.Cost
}

// giving is the subjobs to stop on devices of a pool, by the devices' names.
type giving struct {
	of    *remains
	names []string
}

// devices gives the devices that together cost least to somebody who wants several.
func (all remainders) devices(r *room, wants []want, g *reclaim) (giveback.Cost, bool) {
	j := &joint{r: r, all: all, wants: wants}
	j.from(0, 0, nil, map[*device]bool{})
	for _, p := range j.best {
		g.devices = append(g.devices, place{p.of.pooled, p.d.name})
	}
	for _, s := range j.stops {
		for _, name := range s.names {
			g.slices = append(g.slices, s.of.ours[name])
		}
	}
	return j.cost, j.found
}

// from goes on with the n-th device of the k-th want. What is barred was looked at in the same place before.
func (j *joint) from(k int, n int64, picks []pick, barred map[*device]bool) {
	for k < len(j.wants) && n >= min(j.wants[k].n, mostDevices) {
		k, n, barred = k+1, 0, map[*device]bool{}
	}
	type child struct {
		pick
		cost giveback.Cost
	}
	if k == len(j.wants) {
		if cost, stops, ok := j.price(picks); ok && (!j.found || cost.Compare(j.cost) < 0) {
			j.found, j.best, j.stops, j.cost = true, slices.Clone(picks), stops, cost
		}
		return
	}
	var list []child
	for _, x := range j.all {
		for i := range x.devices {
			d := &x.devices[i]
			if barred[d] || slices.ContainsFunc(picks, func(p pick) bool { return p.d == d }) || !x.meant(j.r, &j.wants[k], d) {
				continue
			}
			if j.looks++; j.looks > mostPrices && (j.found || j.looks > 2*mostPrices) {
				return
			}
			p := pick{x, d}
			if cost, _, ok := j.price(append(slices.Clip(picks), p)); ok {
				list = append(list, child{p, cost})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b child) int { return a.cost.Compare(b.cost) })
	barred = cloned(barred)
	for _, c := range list {
		if j.found && c.cost.Compare(j.cost) >= 0 {
			return // one more device never makes it cheaper
		}
		j.from(k, n+1, append(slices.Clip(picks), c.pick), barred)
		barred[c.d] = true
	}
}

func cloned(m map[*device]bool) map[*device]bool {
	c := make(map[*device]bool, len(m)+1)
	for d := range m {
		c[d] = true
	}
	return c
}

// meant says whether a device may be given for a want. One that is free is none if nobody knows whether it is meant: the scheduler would have taken it.
func (x *remains) meant(r *room, w *want, d *device) bool {
	if d.machine != r.Name || d.tainted != "" || x.has[d.name] {
		return false
	}
	m := r.means(w, x.driver, d)
	return m != isNot && (m != maybe || x.ours[d.name] != "" || !x.left.bear(d.uses))
}

// price is what it costs to have devices together, and which subjobs are stopped for it.
func (j *joint) price(picks []pick) (cost giveback.Cost, stops []giving, ok bool) {
	for _, x := range j.all {
		at := map[[2]string]int{}
		var short []int64
		need := func(k [2]string, n, left int64) {
			if _, there := at[k]; !there {
				at[k] = len(short)
				short = append(short, -left)
			}
			short[at[k]] += n
		}
		for _, p := range picks {
			if p.of != x {
				continue
			}
			for _, u := range p.d.uses {
				k := [2]string{u.set, u.counter}
				need(k, u.n, x.left[k])
			}
			if x.ours[p.d.name] != "" {
				need([2]string{"", p.d.name}, 1, 0) // the device itself
			}
		}
		if !slices.ContainsFunc(short, func(n int64) bool { return n > 0 }) {
			continue
		}
		names := sortedNames(x.ours)
		var pieces []giveback.Piece
		for _, name := range names {
			frees := make([]int64, len(short))
			k := slices.IndexFunc(x.devices, func(d device) bool { return d.name == name })
			for _, u := range x.devices[k].uses {
				if i, there := at[[2]string{u.set, u.counter}]; there {
					frees[i] += u.n
				}
			}
			if i, there := at[[2]string{"", name}]; there {
				frees[i] = 1
			}
			pieces = append(pieces, giveback.Piece{Frees: frees, Cost: j.r.costs(x.ours[name])})
		}
		set, c, enough := giveback.Choose(short, pieces)
		if !enough {
			return cost, nil, false
		}
		s := giving{of: x}
		for _, i := range set {
			s.names = append(s.names, names[i])
		}
		cost, stops = cost.Plus(c), append(stops, s)
	}
	return cost, stops, true
}
