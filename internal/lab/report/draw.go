package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// SVG writes the chart as a picture of its own, on white.
func (c *Chart) SVG(w io.Writer) error {
	if _, err := io.WriteString(w, c.draw(true)+"\n"); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}

// draw gives the picture; one that does not stand alone takes the color of the text around it.
func (c *Chart) draw(alone bool) string {
	p := &plot{Chart: c}
	var height float64
	switch c.Kind {
	case Bars:
		height = p.bars()
	case Points:
		height = p.points()
	default:
		height = p.lines()
	}
	var out strings.Builder
	ink := ""
	if alone {
		ink = ` color="#222222"`
	}
	fmt.Fprintf(&out,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img" aria-label="%s"%s `+
			`font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12">`+"\n", chartWidth, height,
		chartWidth, height, html.EscapeString(c.Title), ink)
	if alone {
		fmt.Fprintf(&out, `<rect width="%d" height="%.0f" fill="#ffffff"/>`+"\n", chartWidth, height)
	}
	out.Write(p.body.Bytes())
	out.WriteString("</svg>")
	return out.String()
}

// lines draws dots over X.
func (p *plot) lines() float64 {
	bottom := float64(chartTop + chartHeight)
	from, to := p.span(func(d Dot) float64 { return d.X }, func(d Dot) float64 { return d.X })
	if p.X.Log {
		from = p.positive()
	}
	room := 0.0
	if p.Kind == Lines {
		room = 14 // for marks at the ends
	}
	right := float64(chartWidth - chartNames)
	x := newScale(p.X, from, to, chartLeft+room, right-room, 7)
	if p.X.Log && p.zeros() {
		first, label := x.ticks[0], x.label
		x.label = func(v float64) string {
			if v == first {
				return "≤ " + label(v)
			}
			return label(v)
		}
	}
	from, to = p.span(least, most)
	if !p.Y.Log {
		from = p.floor(from)
	}
	if p.Kind == Steps || p.Y.Unit == measure.Share && to <= 1 && to > .5 {
		to = 1
	}
	y := newScale(p.Y, from, to, bottom, chartTop, 6)

	p.frame(x, y, right)
	featured := p.featured()
	for i, s := range p.Series {
		if !featured[i] {
			p.faint(s, x, y)
		}
	}
	ends := p.labels(featured, x, y, chartTop, bottom)
	for i, s := range p.Series {
		if !featured[i] {
			continue
		}
		// A series and its name are one group, so that a page can bring out the one that is pointed at.
		p.put(`<g class="series">`)
		// Whiskers at one place stand beside each other.
		p.line(s, x, y, min(3, 18/float64(len(p.Series)))*(float64(i)-float64(len(p.Series)-1)/2))
		for _, l := range ends {
			if l.series == i {
				p.name(l, right, y)
			}
		}
		p.put(`</g>`)
	}
	return bottom + 46
}

// bars draws one bar for each series, from 0.
func (p *plot) bars() float64 {
	p.text(12, 18, `font-size="14" font-weight="600"`, p.Title)
	bottom := float64(chartTop + barStep*len(p.Series))
	from, to := p.span(least, most)
	if p.Y.Unit == measure.Share && to <= 1 && to > .5 {
		to = 1
	}
	y := newScale(p.Y, p.floor(from), max(to, 0), barLabel, chartWidth-chartRight-56, 5)
	for _, t := range y.ticks {
		p.put(`<path d="M%.1f %d V%.1f" stroke="currentColor" stroke-opacity="0.15"/>`, y.at(t), chartTop-4, bottom+4)
		p.text(y.at(t), bottom+18, `text-anchor="middle"`, y.label(t))
	}
	for i, s := range p.Series {
		top := float64(chartTop + barStep*i)
		p.text(barLabel-8, top+barStep/2+4, `text-anchor="end"`, clip(s.Name, 18))
		if len(s.Dots) == 0 || math.IsNaN(s.Dots[0].Y) {
			p.text(barLabel+6, top+barStep/2+4, `fill-opacity="0.6"`, "not measured")
			continue
		}
		d, color := s.Dots[0], styleOf(s.Name).color
		p.put(`<g><title>%s: %s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`, html.EscapeString(s.Name),
			html.EscapeString(figure(d.Y, p.Y.Unit)),
			min(y.at(0), y.at(d.Y)), top+4, math.Abs(y.at(d.Y)-y.at(0)), barStep-8, color)
		if d.Low < d.High {
			p.put(`<path d="M%.1f %.1f H%.1f m0 -4 v8 M%.1f %.1f v8" fill="none" stroke="currentColor" stroke-width="1.5"/>`,
				y.at(max(d.Low, y.from)), top+barStep/2, y.at(min(d.High, y.to)), y.at(max(d.Low, y.from)), top+barStep/2-4)
		}
		p.put(`</g>`)
		p.text(y.at(min(most(d), y.to))+6, top+barStep/2+4, "", figure(d.Y, p.Y.Unit))
	}
	p.put(`<path d="M%.1f %d V%.1f" stroke="currentColor" stroke-opacity="0.5"/>`, y.at(0), chartTop-4, bottom+4)
	if y.unit == "" {
		return bottom + 28
	}
	p.text((barLabel+chartWidth-chartRight-56)/2, bottom+36, `text-anchor="middle"`, strings.Trim(y.unit, " ()"))
	return bottom + 46
}
