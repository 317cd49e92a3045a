package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// plot is a chart under way.
type plot struct {
	*Chart
	body bytes.Buffer
}

func (p *plot) put(format string, args ...any) { fmt.Fprintf(&p.body, format+"\n", args...) }

func (p *plot) text(x, y float64, attrs, text string) {
	p.put(`<text x="%.1f" y="%.1f" fill="currentColor" %s>%s</text>`, x, y, attrs, html.EscapeString(text))
}

// span of all values with their intervals.
func (p *plot) span(low, high func(Dot) float64) (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, s := range p.Series {
		for _, d := range s.Dots {
			// Comparisons with NaN are false.
			if v := low(d); v < from {
				from = v
			}
			if v := high(d); v > to {
				to = v
			}
		}
	}
	if from > to {
		return 0, 1
	}
	return from, to
}

func least(d Dot) float64 {
	if d.Low < d.Y {
		return d.Low
	}
	return d.Y
}

func most(d Dot) float64 {
	if d.High > d.Y {
		return d.High
	}
	return d.Y
}

// frame draws the title, the grid and the axes of a chart that has both.
func (p *plot) frame(x, y *scale, right float64) {
	p.text(chartLeft, 18, `font-size="14" font-weight="600"`, p.Title)
	bottom := float64(chartTop + chartHeight)
	for _, t := range y.ticks {
		p.put(`<path d="M%d %.1f H%.0f" stroke="currentColor" stroke-opacity="0.15"/>`, chartLeft, y.at(t), right)
		p.text(chartLeft-8, y.at(t)+4, `text-anchor="end"`, y.label(t))
	}
	for _, t := range x.ticks {
		p.put(`<path d="M%.1f %.1f v5" stroke="currentColor" stroke-opacity="0.5"/>`, x.at(t), bottom)
		p.text(x.at(t), bottom+18, `text-anchor="middle"`, x.label(t))
	}
	p.put(`<path d="M%d %d V%.1f H%.0f" fill="none" stroke="currentColor" stroke-opacity="0.5"/>`, chartLeft, chartTop, bottom, right)
	p.text((chartLeft+right)/2, bottom+36, `text-anchor="middle"`, p.X.Label+x.unit)
	p.put(`<text transform="translate(16 %d) rotate(-90)" text-anchor="middle" fill="currentColor">%s</text>`, chartTop+chartHeight/2,
		html.EscapeString(p.Y.Label+y.unit))
}

// zeros says whether a value of X has no place on a logarithmic axis.
func (p *plot) zeros() bool {
	for _, s := range p.Series {
		for _, d := range s.Dots {
			if d.X <= 0 {
				return true
			}
		}
	}
	return false
}

// positive is the smallest value of X above 0, where a logarithmic axis begins.
func (p *plot) positive() float64 {
	least := math.Inf(1)
	for _, s := range p.Series {
		for _, d := range s.Dots {
			if d.X > 0 && d.X < least {
				least = d.X
			}
		}
	}
	if math.IsInf(least, 1) {
		return 1
	}
	return least
}

// floor is where values begin: at 0, unless a value itself is below. An interval that reaches below 0 is cut there, since
// nothing that is measured can.
func (p *plot) floor(least float64) float64 {
	for _, s := range p.Series {
		for _, d := range s.Dots {
			if d.Y < 0 {
				return least
			}
		}
	}
	return 0
}

// line draws one series, its whiskers moved aside; it breaks where a value is missing.
func (p *plot) line(s Series, x, y *scale, aside float64) {
	style := styleOf(s.Name)
	p.put(`<g stroke="%s"><title>%s</title>`, style.color, html.EscapeString(s.Name))
	p.put(`<path d="%s" fill="none" stroke-width="2" stroke-linejoin="round"%s/>`, p.path(s, x, y), style.dashes())
	p.whiskers(s, x, y, aside, style)
	p.put(`</g>`)
}

// faint draws a series that has no name of its own.
func (p *plot) faint(s Series, x, y *scale) {
	p.put(`<g class="series" stroke="currentColor" stroke-opacity="0.25"><title>%s</title><path d="%s" fill="none"/></g>`,
		html.EscapeString(s.Name), p.path(s, x, y))
}

// path joins the dots of a series; it breaks where a value is missing.
func (p *plot) path(s Series, x, y *scale) string {
	var path strings.Builder
	pen := "M"
	var last float64
	for _, d := range s.Dots {
		if math.IsNaN(d.X) || math.IsNaN(d.Y) {
			pen = "M"
			continue
		}
		if p.Kind == Steps && pen == "L" {
			fmt.Fprintf(&path, "L%.1f %.1f", x.at(d.X), last)
		}
		last = y.at(d.Y)
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, x.at(d.X), last)
		pen = "L"
	}
	return path.String()
}

func (p *plot) whiskers(s Series, x, y *scale, aside float64, style style) {
	for _, d := range s.Dots {
		if p.Kind == Steps || math.IsNaN(d.X) || math.IsNaN(d.Y) {
			continue
		}
		if d.Low < d.High {
			at, low, high := x.at(d.X)+aside, y.at(max(d.Low, y.from)), y.at(min(d.High, y.to))
			p.put(`<path d="M%.1f %.1f V%.1f m-2 0 h4 M%.1f %.1f h4" fill="none" stroke-opacity="0.6"/>`, at, low, high, at-2, low)
		}
		p.put(`%s`, style.mark(x.at(d.X), y.at(d.Y)))
	}
}
