package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"text/template"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// bar is what a liar may gain at most: the upper end of the 95% interval.
const bar = .01

//go:embed incentives.md.tmpl
var text string

// page is docs/incentives.md under way.
type page struct {
	*pages.Page
	*results
}

// write makes the page and its figures.
func (r *results) write(s *settings) error {
	out, err := pages.New(s.out, "incentives")
	if err != nil {
		return err
	}
	return out.Write(text, template.FuncMap{
		"owners": func() int { return owners }, "arrivals": func() string { return arrivals.String() },
		"limit": func() string { return limit.String() }, "seeds": func() uint64 { return s.seeds },
		"many": func() uint64 { return s.many },
		"bar":  func() string { return fmt.Sprintf("%+.0f%%", 100*bar) }, "shipped": func() string { return shipped().name },
		"answers": func() int { return len(candidates()) }, "mechanisms": mechanismNames, "summaries": summaries,
	}, &page{out, r})
}

func mechanismNames() (names []string) {
	for _, m := range mechanisms() {
		names = append(names, m.name)
	}
	return names
}

// summaries are the rows of the mechanisms, or of the lies.
func summaries(of string) (rows []string) {
	if of == "lies" {
		for _, l := range lies() {
			rows = append(rows, pages.Row(l.name, l.summary))
		}
		return rows
	}
	for _, m := range mechanisms() {
		rows = append(rows, pages.Row(m.name, m.summary))
	}
	return rows
}

// Final are the rows about the default market, on many seeds.
func (p *page) Final() (rows []string) {
	for _, c := range p.final {
		rows = append(rows, pages.Row(c.move, fmt.Sprint(c.rounds), interval(c.gain), percent(c.work.Mean), interval(c.victims),
			verdict(c.gain)))
	}
	return rows
}

// Met says of how many lies the bar is met, and which is the furthest from it.
func (p *page) Met() string {
	met := 0
	for _, c := range p.final {
		if math.Expm1(c.gain.High) <= bar {
			met++
		}
	}
	text := fmt.Sprintf("The bar is met for %d of %d lies. ", met, len(p.final))
	worst := slices.MaxFunc(p.final, func(a, b cell) int {
		if a.gain.High > b.gain.High {
			return 1
		}
		return -1
	})
	if over := math.Expm1(worst.gain.High); over > bar {
		text += fmt.Sprintf("The furthest from it is *%s*: its upper end is %s, %.1f points over the bar. Where the interval\nholds 0 no "+
			"gain is shown, and more seeds would tell.", worst.move, percent(worst.gain.High), 100*(over-bar))
	}
	return text
}

// Table are the rows of lies in each mechanism.
func (p *page) Table() (rows []string) {
	for _, row := range p.table {
		cells := []string{row[0].move}
		for _, c := range row {
			cells = append(cells, interval(c.gain))
		}
		rows = append(rows, pages.Row(cells))
	}
	return rows
}

// Honest are the table's rows for all-truthful runs: what each mechanism costs by itself.
func (p *page) Honest() (rows []string) {
	for _, c := range p.honest {
		rows = append(rows, pages.Row(c.mechanism, interval(c.welfare), jain(c.jain)))
	}
	return rows
}

// Gains draws what three of the lies gain in each mechanism.
func (p *page) Gains() (string, error) {
	chart := &report.Chart{Title: "Gain of over-declaring, splitting and colluding", Kind: report.Lines,
		X: report.Axis{Label: "mechanism, in the order of the table"}, Y: report.Axis{Label: "gain", Unit: measure.Share}}
	for _, row := range p.table {
		if m := row[0].move; m != "over-declare" && m != "split" && m != "collude" {
			continue
		}
		line := report.Series{Name: row[0].move}
		for k, c := range row {
			line.Dots = append(line.Dots, dot(float64(k), c.gain))
		}
		chart.Series = append(chart.Series, line)
	}
	return p.Draw("gain", chart)
}

// Best are the rows of what the search found in the default market, or where nothing is paid.
func (p *page) Best(paid bool) (rows []string) {
	cells := p.unpaid
	if paid {
		cells = p.responses
	}
	for _, c := range cells {
		rows = append(rows, pages.Row(c.move, fmt.Sprint(c.rounds), interval(c.gain), percent(c.work.Mean), verdict(c.gain)))
	}
	return rows
}

// AllHonest is how fair the default market is where nobody lies.
func (p *page) AllHonest() string { return jain(p.crowds[0][0].jainHonest) }

// Crowds are the rows of what becomes of all where many lie.
func (p *page) Crowds() (rows []string) {
	for _, row := range p.crowds {
		for _, c := range row {
			rows = append(rows, pages.Row(c.move, fmt.Sprintf("%d%%", 100*c.liars/owners), interval(c.gain), interval(c.victims),
				interval(c.welfare), jain(c.jain)))
		}
	}
	return rows
}

// Victims draws how much slower the honest are where many lie.
func (p *page) Victims() (string, error) {
	chart := &report.Chart{Title: "Slowdown of the honest owners", X: report.Axis{Label: "liars", Unit: measure.Share},
		Y: report.Axis{Label: "slowdown", Unit: measure.Share}}
	for _, row := range p.crowds {
		line := report.Series{Name: row[0].move, Dots: []report.Dot{{X: 0, Y: 0, Low: math.NaN(), High: math.NaN()}}}
		for _, c := range row {
			line.Dots = append(line.Dots, dot(float64(c.liars)/owners, c.victims))
		}
		chart.Series = append(chart.Series, line)
	}
	return p.Draw("victims", chart)
}

func dot(x float64, log measure.Estimate) report.Dot {
	return report.Dot{X: x, Y: math.Expm1(log.Mean), Low: math.Expm1(log.Low), High: math.Expm1(log.High)}
}

func jain(e measure.Estimate) string { return fmt.Sprintf("%.3f", e.Mean) }

// interval is a change for people: of a logarithm with its interval.
func interval(e measure.Estimate) string {
	if e.Low == e.High {
		return percent(e.Mean)
	}
	return fmt.Sprintf("%s (%s to %s)", percent(e.Mean), percent(e.Low), percent(e.High))
}

func percent(log float64) string {
	if math.IsNaN(log) {
		return "-"
	}
	text := fmt.Sprintf("%+.1f%%", 100*math.Expm1(log))
	if text == "-0.0%" || text == "+0.0%" {
		return "0.0%"
	}
	return text
}

// verdict holds a gain against the bar.
func verdict(gain measure.Estimate) string {
	switch {
	case math.Expm1(gain.High) <= bar:
		return "met"
	case math.Expm1(gain.Low) > bar:
		return "missed"
	}
	return "not shown"
}
