package report

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// points draws the dot of each series with its name, and a line through those that none other betters in both measures.
func (p *plot) points() float64 {
	right, bottom := float64(chartWidth-chartRight), float64(chartTop+chartHeight)
	x := p.around(p.X, func(d Dot) float64 { return d.X }, chartLeft, right)
	y := p.around(p.Y, func(d Dot) float64 { return d.Y }, bottom, chartTop)
	p.frame(x, y, right)
	p.corner(right, bottom)
	var path strings.Builder
	for i, s := range p.frontier() {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x.at(s.Dots[0].X), y.at(s.Dots[0].Y))
	}
	p.put(`<path class="frontier" d="%s" fill="none" stroke="currentColor" stroke-opacity="0.3" stroke-width="3" stroke-linejoin="round"/>`,
		path.String())
	var taken []box
	for _, s := range p.Series {
		if s.dotted() {
			taken = append(taken, box{x.at(s.Dots[0].X) - 5, y.at(s.Dots[0].Y) - 5, 10, 10})
		}
	}
	for _, mine := range []bool{true, false} { // ours are named first, where there is most room
		for _, s := range p.Series {
			if s.dotted() && s.ours() == mine {
				p.point(s, x.at(s.Dots[0].X), y.at(s.Dots[0].Y), right, &taken)
			}
		}
	}
	return bottom + 46
}

// around is a scale with room around all values of one measure.
func (p *plot) around(a Axis, of func(Dot) float64, low, high float64) *scale {
	from, to := p.span(of, of)
	if a.Log && from > 0 {
		return newScale(a, from, to, low, high, 6)
	}
	room := .08 * (to - from)
	if to += room; a.Unit == measure.Share {
		to = min(to, 1)
	}
	return newScale(a, max(from-room, min(from, 0)), to, low, high, 6)
}

// point draws one dot and its name, which goes where it hides nothing; a name that finds no such place is left to the title.
func (p *plot) point(s Series, x, y, right float64, taken *[]box) {
	look := styleOf(s.Name)
	ink := `fill="currentColor" fill-opacity="0.75"`
	if s.ours() {
		ink = fmt.Sprintf(`fill="%s" font-weight="600"`, look.color)
	}
	p.put(`<g class="series"><title>%s: %s, %s</title>%s`, html.EscapeString(s.Name), figure(s.Dots[0].X, p.X.Unit),
		figure(s.Dots[0].Y, p.Y.Unit), look.mark(x, y))
	if b, ok := beside(x, y, s.Name, right, *taken); ok {
		*taken = append(*taken, b)
		p.put(`<text x="%.1f" y="%.1f" font-size="11" %s>%s</text>`, b.x, b.y+b.height-3, ink, html.EscapeString(s.Name))
	}
	p.put(`</g>`)
}

// box is a place that something takes, in pixels.
type box struct{ x, y, width, height float64 }

func (b box) meets(o box) bool {
	return b.x < o.x+o.width && o.x < b.x+b.width && b.y < o.y+o.height && o.y < b.y+b.height
}

// beside finds a free place for a name near a dot.
func beside(x, y float64, name string, right float64, taken []box) (box, bool) {
	b := box{width: 6.3 * float64(len([]rune(name))), height: 12}
	for _, far := range []float64{8, 16, 26} {
		for _, at := range [][2]float64{
			{x + far, y - 6}, {x - far - b.width, y - 6}, {x + far/2, y - far - 10}, {x + far/2, y + far - 2},
			{x - far/2 - b.width, y - far - 10}, {x - far/2 - b.width, y + far - 2},
		} {
			b.x, b.y = at[0], at[1]
			if b.x > chartLeft && b.x+b.width < right && b.y > chartTop && b.y+b.height < chartTop+chartHeight &&
				!slices.ContainsFunc(taken, b.meets) {
				return b, true
			}
		}
	}
	return b, false
}

// frontier is the series that none other betters in one measure without being worse in the other, from left to right.
func (p *plot) frontier() (best []Series) {
	x, y := sign(p.X.Better), sign(p.Y.Better)
	if x == 0 || y == 0 {
		return nil
	}
	for _, s := range p.Series {
		if s.dotted() {
			best = append(best, s)
		}
	}
	all := slices.Clone(best)
	best = slices.DeleteFunc(best, func(s Series) bool {
		return slices.ContainsFunc(all, func(o Series) bool {
			dx, dy := x*(o.Dots[0].X-s.Dots[0].X), y*(o.Dots[0].Y-s.Dots[0].Y)
			return dx >= 0 && dy >= 0 && dx+dy > 0
		})
	})
	slices.SortStableFunc(best, func(a, b Series) int { return cmp.Compare(a.Dots[0].X, b.Dots[0].X) })
	return best
}

// corner marks the good corner.
func (p *plot) corner(right, bottom float64) {
	x, y, anchor, arrow := right-6, bottom-8, "end", "↘"
	switch p.X.Better {
	case measure.Neither:
		return
	case measure.Lower:
		x, anchor, arrow = chartLeft+8, "start", "↙"
	case measure.Higher: // the right
	}
	switch p.Y.Better {
	case measure.Neither:
		return
	case measure.Higher:
		y, arrow = chartTop+14, map[string]string{"↘": "↗", "↙": "↖"}[arrow]
	case measure.Lower: // the bottom
	}
	p.text(x, y, fmt.Sprintf(`text-anchor="%s" fill-opacity="0.6"`, anchor), arrow+" better")
}

// sign is 1 where more is better, -1 where less is, 0 where neither.
func sign(b measure.Better) float64 {
	switch b {
	case measure.Higher:
		return 1
	case measure.Lower:
		return -1
	default:
		return 0
	}
}

// dotted says whether there is something to draw.
func (s Series) dotted() bool {
	return len(s.Dots) > 0 && !math.IsNaN(s.Dots[0].X) && !math.IsNaN(s.Dots[0].Y)
}

// ours says whether a mechanism is one of Sluice's own, under whatever policy.
func (s Series) ours() bool {
	base, _, _ := strings.Cut(s.Name, ":")
	return base == "sja" || base == "jasda" || base == "laminar"
}
