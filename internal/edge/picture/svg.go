package picture

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Measures of the picture, in pixels.
const (
	pictureWidth = 1200
	labelWidth   = 210
	shareWidth   = 96
	plotLeft     = labelWidth + 20
	plotWidth    = pictureWidth - plotLeft - shareWidth - 20
	rowHeight    = 26
	rowStep      = 34
	headHeight   = 52
	axisHeight   = 42
	legendStep   = 24
	margin       = 20
)

// SVG draws the panels one below the other into one self-contained picture: no script, no font, no link.
func SVG(w io.Writer, panels []Panel) error {
	d := &drawing{scale: plotWidth / reach(panels).Seconds(), longest: reach(panels), jobs: jobs(panels)}
	y := float64(margin)
	for _, p := range panels {
		y = d.panel(p, y)
	}
	y = d.legend(panels, y)

	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" `+
		`font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">`+"\n", pictureWidth, y, pictureWidth,
		y)
	out.WriteString(`<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect width="7" height="7" fill="#eceff1"/><line x1="0" y1="0" x2="0" y2="7" stroke="#90a4ae" stroke-width="3"/></pattern></defs>` + "\n")
	fmt.Fprintf(&out, `<rect width="%d" height="%.0f" fill="#ffffff"/>`+"\n", pictureWidth, y)
	out.Write(d.body.Bytes())
	out.WriteString("</svg>\n")
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// drawing is a picture under way.
type drawing struct {
	body    bytes.Buffer
	scale   float64 // pixels a second
	longest time.Duration
	jobs    []job.ID
}

// x is where an instant of a panel lies, within the plot.
func (d *drawing) x(h status.History, t quantity.Instant) float64 {
	t = max(h.From, min(t, h.To))
	return plotLeft + t.Sub(h.From).Seconds()*d.scale
}

func (d *drawing) text(x, y float64, attrs, text string) {
	fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", x, y, attrs, html.EscapeString(text))
}

// panel draws one history with its head at y and returns where the next begins.
func (d *drawing) panel(p Panel, y float64) float64 {
	d.text(margin, y+18, `font-size="17" font-weight="600" fill="#212121"`, p.Title)
	d.text(pictureWidth-margin, y+18, `font-size="15" font-weight="600" fill="#212121" text-anchor="end"`, summary(p))
	top := y + headHeight - 16
	bottom := top + float64(len(p.History.Slices))*rowStep
	d.axis(top, bottom)
	for i, s := range p.History.Slices {
		d.row(p, s, top+float64(i)*rowStep+(rowStep-rowHeight)/2)
	}
	if len(p.History.Slices) == 0 {
		d.text(plotLeft, top+20, `fill="#757575"`, "no slices")
		bottom += rowStep
	}
	if p.cut() {
		x := d.x(p.History, p.measured())
		fmt.Fprintf(&d.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#c62828" stroke-width="1.5" stroke-dasharray="6 3"/>`+
			"\n", x, top-4, x, bottom+6)
		d.text(x, bottom+32, `font-size="11" fill="#c62828" text-anchor="middle"`, "measured to here")
	}
	return bottom + axisHeight
}

// axis draws the ticks of time through a panel's rows and their labels below.
func (d *drawing) axis(top, bottom float64) {
	every := step(d.longest, 12)
	for t := time.Duration(0); t <= d.longest; t += every {
		x := plotLeft + t.Seconds()*d.scale
		fmt.Fprintf(&d.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e0e0e0"/>`+"\n", x, top, x, bottom+4)
		d.text(x, bottom+18, `font-size="11" fill="#616161" text-anchor="middle"`, elapsed(t))
	}
}

// row draws one slice: label, spans, share.
func (d *drawing) row(p Panel, s status.SliceHistory, y float64) {
	h := p.History
	mid := y + rowHeight/2 + 4
	d.text(labelWidth, mid, `fill="#212121" text-anchor="end"`, clip(about(s.Slice), 30))
	for _, span := range layers(s) {
		if span.End > h.From && span.Start < h.To {
			d.span(h, span, y)
		}
	}
	share := Filled(s, h.From, p.measured())
	x := float64(pictureWidth - margin - shareWidth + 12)
	fmt.Fprintf(&d.body,
		`<rect x="%.1f" y="%.1f" width="40" height="8" fill="#eeeeee"/><rect x="%.1f" y="%.1f" width="%.1f" height="8" fill="#616161"/>`+
			"\n",
		x, mid-8, x, mid-8, 40*share.Ratio())
	d.text(pictureWidth-margin, mid, `fill="#212121" text-anchor="end"`, percent(share))
}

// span draws one stretch of time.
func (d *drawing) span(h status.History, s status.Span, y float64) {
	x1, x2 := d.x(h, s.Start), d.x(h, s.End)
	width := max(x2-x1, 0.6)
	fmt.Fprintf(&d.body, `<g><title>%s</title>`, html.EscapeString(hint(h, s)))
	switch s.Kind {
	case 0:
		// A hair inside its edges, so that two windows that touch are two.
		fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="#ffffff" stroke="#9e9e9e" stroke-dasharray="3 2"/>`,
			x1+0.5, y+0.5, max(width-1, 0.1), rowHeight-1)
	case protocol.ForLease:
		color := d.color(s.Job)
		fmt.Fprintf(&d.body,
			`<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s" fill-opacity="0.3" stroke="#ffffff" stroke-width="0.8"/>`, x1, y,
			width, rowHeight, color)
		if u := usedPart(&s, h.To); u.start < u.end {
			u1, u2 := d.x(h, u.start), d.x(h, u.end)
			fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s" stroke="#ffffff" stroke-width="0.8"/>`, u1,
				y+3, max(u2-u1, 0.6), rowHeight-6, color)
		}
		if bad(s.Outcome) {
			fmt.Fprintf(&d.body, `<path d="M%.1f %.1f l-5 -7 l10 0 z" fill="#c62828" stroke="#ffffff" stroke-width="0.8"/>`, x2, y+6)
		}
		if width > 8*float64(len(s.Job))+10 {
			d.text((x1+x2)/2, y+rowHeight/2+4, `font-size="11" fill="#ffffff" text-anchor="middle"`, string(s.Job))
		}
	default:
		fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="url(#hatch)" stroke="#78909c"/>`, x1+0.5, y+0.5,
			max(width-1, 0.1), rowHeight-1)
		label := s.Kind.String()
		if wide := 6.5*float64(len(label)) + 8; width > wide+6 {
			fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="16" rx="2" fill="#ffffff" fill-opacity="0.9"/>`,
				(x1+x2-wide)/2, y+5, wide)
			d.text((x1+x2)/2, y+rowHeight/2+4, `font-size="11" fill="#37474f" text-anchor="middle"`, label)
		}
	}
	d.body.WriteString("</g>\n")
}

// legend explains the colors and shapes that occur, in as many lines as it needs.
func (d *drawing) legend(panels []Panel, y float64) float64 {
	x := float64(margin)
	entry := func(text, shape string) {
		wide := 34 + 7.2*float64(len(text))
		if x+wide > pictureWidth-margin {
			x, y = margin, y+legendStep
		}
		fmt.Fprintf(&d.body, `<g transform="translate(%.1f %.1f)">%s</g>`+"\n", x, y, shape)
		d.text(x+28, y+12, `fill="#212121"`, text)
		x += wide + 8
	}
	box := func(attrs string) string { return `<rect width="22" height="14" ` + attrs + `/>` }
	for _, id := range d.jobs {
		entry(string(id), box(`fill="`+d.color(id)+`"`))
	}
	if len(d.jobs) > 0 {
		entry("leased, not used", box(`fill="#757575" fill-opacity="0.3"`))
		entry("ended badly", `<path d="M11 12 l-5 -9 l10 0 z" fill="#c62828"/>`)
	}
	if len(reserved(panels)) > 0 {
		entry("reserved", box(`fill="url(#hatch)" stroke="#78909c"`))
	}
	entry("empty window", box(`fill="#ffffff" stroke="#9e9e9e" stroke-dasharray="3 2"`))
	y += legendStep + 6
	d.text(margin, y+8, `font-size="11" fill="#757575"`, "filled = time in which a leased process ran / time not reserved by others")
	return y + margin
}

// palette of the first jobs, told apart by most people and dark enough for white text.
func palette() []string {
	return []string{"#1f6fb4", "#c2550a", "#2b8a3e", "#8a3ab9", "#a61e4d", "#0b7285", "#7a5c00", "#5f3dc4", "#4a5568", "#9c4221"}
}

// color of a job: the palette in order of names, then hues a golden angle apart.
func (d *drawing) color(id job.ID) string {
	i, _ := slices.BinarySearch(d.jobs, id)
	if list := palette(); i < len(list) {
		return list[i]
	}
	hue := math.Mod(float64(i)*137.50776, 360)
	return fmt.Sprintf("hsl(%.0f 55%% 38%%)", hue)
}

// clip shortens a text to n characters, its end marked.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
