package supply

import (
	"cmp"
	"slices"
)

// find finds the gaps in which a pilot may be asked for now. Those that wait have begun nowhere, so the host shows the room that they are
// to have as free: each takes one of the smallest gap that holds it.
func (p *plan) find() {
	if p.s.Blind {
		p.gaps = []opening{{length: p.longest, count: max(0, p.pool.Most)}}
		return
	}
	step := max(p.pool.Step, 1)
	for _, g := range p.s.Gaps {
		if g.Start <= p.now && g.End > p.now && g.Count > 0 {
			left := g.End.Sub(p.now)
			p.gaps = append(p.gaps, opening{left, min(max(0, left-p.wait)/step*step, p.longest), g.Count})
		}
	}
	slices.SortFunc(p.gaps, func(a, b opening) int { return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.count, b.count)) })
	for i := range p.pilots {
		if x := &p.pilots[i]; x.waits() {
			if at := p.gapFor(x); at >= 0 {
				p.gaps[at].count--
			}
		}
	}
}

// gapFor is the smallest gap that a pilot which waits may start in; -1: there is none.
func (p *plan) gapFor(x *Pilot) int {
	at := slices.IndexFunc(p.gaps, func(g opening) bool { return g.count > 0 && g.left >= x.Length })
	if at < 0 && p.fresh(x, patience) { // its gap is a little shorter by now
		held := x.Length - p.now.Sub(x.Asked)
		at = slices.IndexFunc(p.gaps, func(g opening) bool { return g.count > 0 && g.left >= held })
	}
	return at
}

// startable reports whether the host shows a gap that holds a pilot which waits.
func (p *plan) startable(x *Pilot) bool {
	return slices.ContainsFunc(p.s.Gaps, func(g Gap) bool {
		return g.Start <= p.now && g.End.Sub(p.now) >= x.Length && g.Count > 0
	})
}

// room is how many more pilots there may be. Those that wait and are not needed are on their way out: a pilot that missed its gap, and all
// that wait where the host shows none, since those are matched with what is needed.
func (p *plan) room() int {
	n := p.pool.Most - len(p.asks)
	for i := range p.pilots {
		if x := &p.pilots[i]; !x.waits() || !p.s.Blind && (p.fresh(x, patience) || p.startable(x)) {
			n--
		}
	}
	return n
}
