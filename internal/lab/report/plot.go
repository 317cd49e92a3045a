package report

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// Chart is a plot: lines over a parameter, steps of a distribution, or, with one dot for each series, bars or points.
type Chart struct {
	Title string
	Kind  ChartKind
	// X is not drawn for bars; Y is the value.
	X, Y   Axis
	Series []Series
}

// ChartKind says how the dots of a series are joined.
type ChartKind uint8

// The kinds of charts.
const (
	Lines ChartKind = iota
	Steps
	Bars
	// Points are measured two ways, and the best of them are joined: those that no other betters in both.
	Points
)

// Axis of a chart.
type Axis struct {
	Label string
	Unit  measure.Unit
	// Log draws decades, from the smallest value above 0 on; what is 0 lies at the beginning.
	Log bool
	// Better says which end is the good one; points alone ask.
	Better measure.Better
}

// Series is the values of one mechanism.
type Series struct {
	Name string
	Dots []Dot
}

// Dot is a value with its interval, whose ends are NaN if there is none.
type Dot struct{ X, Y, Low, High float64 }

// Measures of a chart, in pixels.
const (
	chartWidth  = 560
	chartHeight = 300 // of the frame
	chartLeft   = 74
	chartRight  = 20  // of bars
	chartNames  = 124 // of lines, whose names stand there
	chartTop    = 40
	barStep     = 24
	barLabel    = 130
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
