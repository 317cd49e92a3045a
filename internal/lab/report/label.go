package report

import (
	"cmp"
	"html"
	"math"
	"slices"
)

// named is how many series of a chart have a name and their color; the others are drawn faint, for the whole picture.
const named = 5

// featured says which series are named: ours, then the others in their order.
func (c *Chart) featured() []bool {
	out := make([]bool, len(c.Series))
	left := named
	for _, ours := range []bool{true, false} {
		for i, s := range c.Series {
			if left > 0 && s.ours() == ours {
				out[i] = true
				left--
			}
		}
	}
	return out
}

// endLabel is a series' name at the end of its line.
type endLabel struct {
	series int
	x, y   float64
}

// lineStep is the least distance between two labels.
const lineStep = 15

// labels puts the names of the featured series at the ends of their lines, moved apart where they would meet, between top and
// bottom.
func (p *plot) labels(featured []bool, x, y *scale, top, bottom float64) []endLabel {
	var all []endLabel
	for i, s := range p.Series {
		if !featured[i] {
			continue
		}
		for n := len(s.Dots) - 1; n >= 0; n-- {
			if d := s.Dots[n]; !math.IsNaN(d.X) && !math.IsNaN(d.Y) {
				all = append(all, endLabel{i, x.at(d.X), y.at(d.Y)})
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b endLabel) int { return cmp.Compare(a.y, b.y) })
	for i := range all {
		least := top
		if i > 0 {
			least = all[i-1].y + lineStep
		}
		all[i].y = max(all[i].y, least)
	}
	for i := len(all) - 1; i >= 0; i-- {
		most := bottom
		if i+1 < len(all) {
			most = all[i+1].y - lineStep
		}
		all[i].y = min(all[i].y, most)
	}
	return all
}

// name draws a label at the right edge, with a thread to the end of the line where that lies elsewhere.
func (p *plot) name(l endLabel, edge float64, y *scale) {
	s := p.Series[l.series]
	style := styleOf(s.Name)
	end := 0.0
	for _, d := range s.Dots {
		if !math.IsNaN(d.X) && !math.IsNaN(d.Y) {
			end = y.at(d.Y)
		}
	}
	p.put(`<path d="M%.1f %.1f L%.1f %.1f" stroke="%s" stroke-opacity="0.5" fill="none"/>`, l.x, end, edge+10, l.y, style.color)
	p.put(`<text x="%.1f" y="%.1f" fill="%s" font-weight="600">%s</text>`, edge+14, l.y+4, style.color,
		html.EscapeString(clip(s.Name, nameLength)))
}

// nameLength is the longest name at the end of a line, in characters.
const nameLength = 14

// clip shortens a name to n characters, its end marked.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
