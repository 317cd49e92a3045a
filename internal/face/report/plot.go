package report

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/drive/measure"
)

// Chart is a plot: lines over a parameter, steps of a distribution, or bars with one dot for each series.
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
)

// Axis of a chart.
type Axis struct {
	Label string
	Unit  measure.Unit
	// Log draws decades of 1+value, so that 0 has a place.
	Log bool
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
	chartRight  = 20
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
	if c.Kind == Bars {
		height = p.bars()
	} else {
		height = p.lines()
	}
	var out strings.Builder
	ink := ""
	if alone {
		ink = ` color="#222222"`
	}
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img" aria-label="%s"%s `+
		`font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12">`+"\n", chartWidth, height, chartWidth, height, html.EscapeString(c.Title), ink)
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
	p.text(chartLeft, 18, `font-size="14" font-weight="600"`, p.Title)
	bottom := float64(chartTop + chartHeight)
	from, to := p.span(func(d Dot) float64 { return d.X }, func(d Dot) float64 { return d.X })
	if p.X.Log {
		from = 0
	}
	room := 0.0
	if p.Kind == Lines {
		room = 14 // for marks at the ends
	}
	x := newScale(p.X, from, to, chartLeft+room, chartWidth-chartRight-room, 7)
	from, to = p.span(least, most)
	from = p.floor(from)
	if p.Kind == Steps || p.Y.Unit == measure.Share && to <= 1 && to > .5 {
		to = 1
	}
	y := newScale(p.Y, from, to, bottom, chartTop, 6)

	for _, t := range y.ticks {
		p.put(`<path d="M%d %.1f H%d" stroke="currentColor" stroke-opacity="0.15"/>`, chartLeft, y.at(t), chartWidth-chartRight)
		p.text(chartLeft-8, y.at(t)+4, `text-anchor="end"`, y.label(t))
	}
	for _, t := range x.ticks {
		p.put(`<path d="M%.1f %.1f v5" stroke="currentColor" stroke-opacity="0.5"/>`, x.at(t), bottom)
		p.text(x.at(t), bottom+18, `text-anchor="middle"`, x.label(t))
	}
	p.put(`<path d="M%d %d V%.1f H%d" fill="none" stroke="currentColor" stroke-opacity="0.5"/>`, chartLeft, chartTop, bottom, chartWidth-chartRight)
	p.text((chartLeft+chartWidth-chartRight)/2, bottom+36, `text-anchor="middle"`, p.X.Label+x.unit)
	p.put(`<text transform="translate(16 %d) rotate(-90)" text-anchor="middle" fill="currentColor">%s</text>`, chartTop+chartHeight/2, html.EscapeString(p.Y.Label+y.unit))
	key := [2]float64{chartLeft, bottom + 50}
	for i, s := range p.Series {
		// A series and its key are one group, so that a page can bring out the one that is pointed at.
		p.put(`<g class="series">`)
		// Whiskers at one place stand beside each other.
		p.line(s, x, y, min(3, 18/float64(len(p.Series)))*(float64(i)-float64(len(p.Series)-1)/2))
		key = p.key(s, key)
		p.put(`</g>`)
	}
	return key[1] + 24
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
	p.put(`<g stroke="%s"><title>%s</title>`, style.color, html.EscapeString(s.Name))
	p.put(`<path d="%s" fill="none" stroke-width="2" stroke-linejoin="round"%s/>`, path.String(), style.dashes())
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
	p.put(`</g>`)
}

// key names a series at a place, or in the next line if there is no room, and returns the place behind it.
func (p *plot) key(s Series, at [2]float64) [2]float64 {
	x, y := at[0], at[1]
	wide := 40 + 7*float64(len([]rune(s.Name)))
	if x+wide > chartWidth && x > chartLeft {
		x, y = chartLeft, y+20
	}
	style := styleOf(s.Name)
	p.put(`<g stroke="%s"><path d="M%.1f %.1f h24" stroke-width="2"%s/>`, style.color, x, y+4, style.dashes())
	if p.Kind != Steps {
		p.put(`%s`, style.mark(x+12, y+4))
	}
	p.put(`</g>`)
	p.text(x+30, y+8, "", s.Name)
	return [2]float64{x + wide, y}
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
		d, style := s.Dots[0], styleOf(s.Name)
		p.put(`<g><title>%s: %s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`, html.EscapeString(s.Name), html.EscapeString(figure(d.Y, p.Y.Unit)),
			min(y.at(0), y.at(d.Y)), top+4, math.Abs(y.at(d.Y)-y.at(0)), barStep-8, style.color)
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

// scale maps values to pixels.
type scale struct {
	from, to, low, high float64
	log                 bool
	ticks               []float64
	label               func(float64) string
	unit                string // " (h)"
}

// newScale covers from to to with about n ticks.
func newScale(a Axis, from, to, low, high float64, n int) *scale {
	s := &scale{from: from, to: to, low: low, high: high, log: a.Log}
	if a.Log {
		s.ticks, s.label = decades(a.Unit, to)
		s.to = max(to, 1)
		return s
	}
	if to <= from {
		s.to = from + 1
	}
	factor := 1.0
	switch a.Unit {
	case measure.Share:
		s.label = func(v float64) string { return short(100*v) + "%" }
	case measure.Seconds:
		var name string
		factor, name = timeUnit(max(math.Abs(s.from), math.Abs(s.to)))
		s.unit = " (" + name + ")"
		s.label = func(v float64) string { return short(v / factor) }
	default:
		s.label = short
	}
	step := nice((s.to-s.from)/factor/float64(n)) * factor
	for k := math.Ceil(s.from/step - 1e-9); k*step <= s.to+step*1e-9; k++ {
		s.ticks = append(s.ticks, k*step+0) // never -0
	}
	return s
}

// at is the pixel of a value.
func (s *scale) at(v float64) float64 {
	f := (v - s.from) / (s.to - s.from)
	if s.log {
		f = math.Log10(1+v) / math.Log10(1+s.to)
	}
	return s.low + f*(s.high-s.low)
}

// decades are the ticks of a logarithmic axis: moments that people know, or powers of ten.
func decades(unit measure.Unit, to float64) ([]float64, func(float64) string) {
	if unit == measure.Seconds {
		ticks := []float64{0}
		for _, t := range []float64{1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000} {
			if t <= to {
				ticks = append(ticks, t)
			}
		}
		return ticks, moment
	}
	ticks := []float64{0}
	for t := 1.0; t <= to; t *= 10 {
		ticks = append(ticks, t)
	}
	return ticks, short
}

// moment labels the ticks of decades of time, which are whole in the largest unit that they reach.
func moment(v float64) string {
	switch {
	case v >= 86400:
		return short(v/86400) + " d"
	case v >= 3600:
		return short(v/3600) + " h"
	case v >= 60:
		return short(v/60) + " min"
	default:
		return short(v) + " s"
	}
}

// nice is the least of 1, 2, 2.5, 5 times a power of ten that is at least v.
func nice(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 2.5, 5} {
		if v <= k*base*(1+1e-9) {
			return k * base
		}
	}
	return 10 * base
}

// timeUnit is the unit in which a time is best said, in seconds.
func timeUnit(v float64) (float64, string) {
	switch v = math.Abs(v); {
	case v >= 3*86400:
		return 86400, "d"
	case v >= 2*3600:
		return 3600, "h"
	case v >= 120:
		return 60, "min"
	default:
		return 1, "s"
	}
}

// short is a number with at most four digits that count, for ticks.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// figure is a value for people: 83.2%, 4.1 min, 1.25.
func figure(v float64, unit measure.Unit) string { return figureLike(v, v, unit) }

// figureLike says v in the unit that is best for another value.
func figureLike(v, like float64, unit measure.Unit) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case unit == measure.Share:
		return digits(100*v) + "%"
	case unit == measure.Seconds:
		factor, name := timeUnit(like)
		return digits(v/factor) + " " + name
	default:
		return digits(v)
	}
}

// digits rounds to three digits that count, and never drops digits before the point.
func digits(v float64) string {
	decimals := 0
	if a := math.Abs(v); a > 0 && a < 100 {
		decimals = min(2-int(math.Floor(math.Log10(a))), 6)
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
