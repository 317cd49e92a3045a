package forecast

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// table is one of the answer's tables, for people.
type table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
}

// tables of the answer, in the order in which they are read.
func (a *Answer) tables() (out []table) {
	g := a.Gaps
	t := table{Title: "Idle time by length of gap", Head: []string{"gap", "gaps", "GPU-hours", "share"},
		Note: fmt.Sprintf("%s GPU-hours on %d devices over %.1f days, exact: every time in which nobody held a device, less what was "+
			"drained, reserved or down.", amount(g.GPUHours), g.Devices, g.Days)}
	for _, x := range g.Lengths {
		t.Rows = append(t.Rows, []string{x.Label, fmt.Sprint(x.Gaps), amount(x.GPUHours),
			percent(ratio(float64(x.time), float64(g.total)))})
	}
	out = append(out, t)
	if a.Measured != nil {
		out = append(out, a.Measured.table())
	}
	for i := range a.Outcomes {
		out = append(out, a.Outcomes[i].table())
	}
	best := &a.Outcomes[a.best()]
	for _, x := range []struct {
		name  string
		parts []Part
	}{{"partition", g.Partitions}, {"kind of device", g.Kinds}, {"hour of day", g.Hours}} {
		if len(x.parts) < 2 {
			continue
		}
		t := table{Title: "Where it comes from, by " + x.name,
			Note: fmt.Sprintf("Idle time is exact; what is kept of it is of the devices that were played, under %q.", best.Name),
			Head: []string{x.name, "devices", "GPU-hours", "idle", best.Ours + " keeps", best.Free + " keeps"}}
		for _, p := range x.parts {
			devices := ""
			if p.Devices > 0 {
				devices = fmt.Sprint(p.Devices)
			}
			t.Rows = append(t.Rows, []string{nameOr(p.Name), devices, amount(p.GPUHours), percent(p.Idle), known(p.Kept), known(p.Free)})
		}
		out = append(out, t)
	}
	if len(a.Assumptions) > 0 {
		t := table{Title: "What is assumed, and what it is worth", Head: []string{"assumed", "if instead", "gain then", "moves by",
			"best that is free then"},
			Note: fmt.Sprintf("Played anew under %q, each by itself; in points of the idle time.", best.Name)}
		for _, x := range a.Assumptions {
			t.Rows = append(t.Rows, []string{x.Says, x.Instead, fmt.Sprintf("%+.1f", 100*x.Gain), fmt.Sprintf("%+.1f", 100*x.Moved),
				x.Free})
		}
		out = append(out, t)
	}
	return out
}

func nameOr(name string) string {
	if name == "" {
		return "(not said)"
	}
	return name
}

func known(share float64) string {
	if share < 0 {
		return "-"
	}
	return percent(share)
}

func (o *Outcome) table() table {
	t := table{Title: "If the backlog is " + o.Name, Note: o.Doc + ".", Head: []string{"mechanism", "kept", "80%", "thrown away",
		"start, save", "GPU-hours a day", "device starts that wait", "wait, mean", "at most"}}
	for _, r := range o.Mechanisms {
		name := r.Mechanism
		if r.Own {
			name += " (Sluice)"
		}
		interval := "-"
		if r.Kept.Known {
			interval = fmt.Sprintf("%.1f to %.1f", 100*r.Kept.Low, 100*r.Kept.High)
		}
		t.Rows = append(t.Rows, []string{name, percent(r.Kept.Value), interval, percent(r.Lost), percent(r.Overhead), amount(r.PerDay),
			percent(r.Met), fmt.Sprintf("%.1f s", r.WaitMean), fmt.Sprintf("%.0f s", r.WaitMost)})
	}
	return t
}

// sentences of what was measured.
func (m *Measured) sentences() []string {
	used := "none was busy for a minute or more."
	if m.Used > 0 {
		used = fmt.Sprintf("%s were busy, for a minute or more at a time: somebody works past the scheduler, and this was taken out of "+
			"the gaps.", amount(m.Used))
	}
	return []string{
		fmt.Sprintf("Measured: %d devices, %s of all time of all devices. Of the time that jobs held them %s was idle, in stretches of a "+
			"minute or more. Sluice runs in time that nobody holds: that is not filled.", m.Devices, percent(m.Covered),
			percent(m.Idle[0].Share)),
		fmt.Sprintf("Of the %s GPU-hours that are free by the record and were measured, %s", amount(m.Free), used),
	}
}

func (m *Measured) table() table {
	t := table{Title: "Held and idle, as measured", Head: []string{"stretches of at least", "stretches", "GPU-hours", "of held time"},
		Note: fmt.Sprintf("%s GPU-hours in which a job held a device that was measured. Idle is from a sample that shows no use to the "+
			"next one that does not either.", amount(m.Held))}
	for _, x := range m.Idle {
		t.Rows = append(t.Rows, []string{x.AtLeast, fmt.Sprint(x.Stretches), amount(x.GPUHours), percent(x.Share)})
	}
	return t
}

// facts are sentences behind the answer.
func (a *Answer) facts() []string {
	best := &a.Outcomes[a.best()]
	own := best.Row(best.Ours)
	found := []string{
		fmt.Sprintf("What your users lose: under %s %s of the starts of a job on a device find a filler there and wait for it, %.1f s in "+
			"the mean of all these starts and %.0f s at most, with a grace time of %.0f s; a job waits for the last of its devices.",
			best.Ours, percent(own.Met), own.WaitMean, own.WaitMost, a.Notice),
		fmt.Sprintf("Played: %s of %s, spread over the log, on %d devices each, which stand for all (seed %d).", stretches(a.Stretches),
			history.Many(a.StretchDays, "day"), a.Devices, a.Seed)}
	if a.Measured != nil {
		found = append(found, a.Measured.sentences()...)
	}
	found = append(found, a.Said...)
	for i := range a.Odd {
		found = append(found, a.Odd[i].sentence())
	}
	return append(found, a.short()...)
}

// short says where there is too little for an interval.
func (a *Answer) short() []string {
	if a.Outcomes[0].Gain.Known {
		return nil
	}
	return []string{fmt.Sprintf("There is no 80%% interval: it needs a log of %d days, better of four weeks.", leastStretches*stretchDays)}
}

// Text writes the answer for a terminal.
func (a *Answer) Text(w io.Writer) error {
	fmt.Fprintln(w, a.Says)
	if len(a.Why) > 1 {
		fmt.Fprintln(w)
		for _, x := range a.Why {
			fmt.Fprintln(w, "- "+x)
		}
	}
	fmt.Fprintln(w)
	for _, x := range a.facts() {
		fmt.Fprintln(w, x)
	}
	for _, t := range a.tables() {
		fmt.Fprintf(w, "\n%s\n%s\n", t.Title, t.Note)
		lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(lines, strings.ToUpper(strings.Join(t.Head, "\t")))
		for _, row := range t.Rows {
			fmt.Fprintln(lines, strings.Join(row, "\t"))
		}
		if err := lines.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Figure is one picture of the answer.
type Figure struct {
	Name  string
	Chart *report.Chart
}

// Figures of the answer.
func (a *Answer) Figures() (out []Figure) {
	g, best := a.Gaps, &a.Outcomes[a.best()]
	bar := func(name string, y Interval) report.Series {
		d := report.Dot{Y: y.Value, Low: math.NaN(), High: math.NaN()}
		if y.Known {
			d.Low, d.High = y.Low, y.High
		}
		return report.Series{Name: name, Dots: []report.Dot{d}}
	}
	gaps := &report.Chart{Title: "Idle time, by length of gap", Kind: report.Bars,
		Y: report.Axis{Label: "share of it", Unit: measure.Share}}
	for _, x := range g.Lengths {
		gaps.Series = append(gaps.Series, bar(x.Label, Interval{Value: ratio(float64(x.time), float64(g.total))}))
	}
	out = append(out, Figure{"gaps", gaps})
	for i := range a.Outcomes {
		o := &a.Outcomes[i]
		c := &report.Chart{Title: "Idle time that becomes kept work: " + o.Name, Kind: report.Bars,
			Y: report.Axis{Label: "share of it", Unit: measure.Share}}
		for _, r := range o.Mechanisms {
			c.Series = append(c.Series, bar(r.Mechanism, r.Kept))
		}
		out = append(out, Figure{o.Name, c})
	}
	hours := &report.Chart{Title: "Idle share of the devices, by hour of day", X: report.Axis{Label: "hour"},
		Y: report.Axis{Label: "share", Unit: measure.Share}}
	lines := []report.Series{{Name: "idle"}, {Name: best.Ours}, {Name: best.Free}}
	for i, x := range g.Hours {
		for k, y := range []float64{x.Idle, x.Idle * x.Kept, x.Idle * x.Free} {
			if y >= 0 {
				lines[k].Dots = append(lines[k].Dots, report.Dot{X: float64(i), Y: y, Low: math.NaN(), High: math.NaN()})
			}
		}
	}
	hours.Series = lines
	return append(out, Figure{"hours", hours})
}

//go:embed page.html
var pageText string

// HTML writes the answer as one page that needs nothing else.
func (a *Answer) HTML(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("forecast: %w", err)
	}
	page := struct {
		*Answer
		Facts   []string
		Tables  []table
		Figures []template.HTML
	}{Answer: a, Facts: a.facts(), Tables: a.tables()}
	for _, f := range a.Figures() {
		var b strings.Builder
		if err := f.Chart.SVG(&b); err != nil {
			return err
		}
		page.Figures = append(page.Figures, template.HTML(b.String())) //nolint:gosec // our own picture, which escapes its texts
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("write the forecast: %w", err)
	}
	return nil
}

func stretches(n int) string {
	if n == 1 {
		return "1 stretch"
	}
	return fmt.Sprintf("%d stretches", n)
}
