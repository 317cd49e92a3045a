package report

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
)

//go:embed page/page.html page/page.css page/page.js
var pageFiles embed.FS

// HTML writes the study as one page that needs nothing else: tables, plots, and timelines of the rows that have a history.
// The same study gives the same bytes.
func (s *Study) HTML(w io.Writer) error {
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	script, err := pageFiles.ReadFile("page/page.js")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	t, err := template.ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	data, err := json.Marshal(s.timelines()) // escapes <, > and &: it can not end its element
	if err != nil {
		return fmt.Errorf("report: timelines: %w", err)
	}
	page := page{Title: s.Title, Verdict: s.verdict(), About: s.About, Notes: s.Notes, Style: template.CSS(style),
		Script: template.JS(script), Data: template.JS(data)}
	for _, g := range s.groups() {
		page.Groups = append(page.Groups, g.view())
	}
	for _, sw := range s.sweeps() {
		v := sweepView{Name: sw.name, Param: sw.param}
		var rows []*Row
		for _, g := range sw.groups {
			rows = append(rows, g.rows...)
		}
		for _, m := range shown(rows) {
			v.Charts = append(v.Charts, template.HTML(sw.lines(m).draw(false)))
		}
		page.Sweeps = append(page.Sweeps, v)
	}
	for i := range s.Rows {
		page.Timelines = page.Timelines || s.Rows[i].Spans != nil
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// page is what the template is filled with.
type page struct {
	Title     string
	Verdict   string
	About     string
	Notes     []string
	Style     template.CSS
	Script    template.JS
	Data      template.JS
	Sweeps    []sweepView
	Groups    []groupView
	Timelines bool
}

type sweepView struct {
	Name, Param string
	Charts      []template.HTML
}

type groupView struct {
	Name, Seeds string
	// Heads of the short table, a metric each; Rows a mechanism each.
	Heads []headView
	Rows  []rowView
	// Names of the mechanisms head the long table; All has a metric in each row.
	Names []string
	All   []rowView
	// Charts of the headline metrics and of the waits.
	Charts []template.HTML
}

type headView struct{ Title, Better string }

type rowView struct {
	Name, Color, Better string
	Cells               []cellView
}

type cellView struct {
	Value, Interval string
	Lead            bool
}

// betterNames are marks for the way in which a metric improves.
var betterNames = [...]string{"", "↑", "↓"}

func (g *group) view() groupView {
	names := mechanisms(g.rows)
	v := groupView{Name: g.name, Names: names, Seeds: plural(len(g.seeds()), "seed")}
	cell := func(name, metric string, lead bool) cellView {
		e := measure.Mean(g.values(name, metric))
		c := cellView{Value: figure(e.Mean, measure.About(metric).Unit), Lead: lead}
		if half := (e.High - e.Low) / 2; half > 1e-9*math.Abs(e.Mean) {
			c.Interval = "±" + figureLike(half, e.Mean, measure.About(metric).Unit)
		}
		return c
	}
	for _, name := range names {
		v.Rows = append(v.Rows, rowView{Name: name, Color: styleOf(name).color})
	}
	short := shown(g.rows)
	for _, metric := range short {
		info := measure.About(metric)
		v.Heads = append(v.Heads, headView{info.Title, betterNames[info.Better]})
		lead := g.leading(names, metric)
		for i, name := range names {
			v.Rows[i].Cells = append(v.Rows[i].Cells, cell(name, metric, lead[i]))
		}
		bars := g.bars(metric)
		contest := g.contest()
		bars.Title += contest.short(metric)
		v.Charts = append(v.Charts, template.HTML(bars.draw(false)))
	}
	for _, metric := range metrics(g.rows) {
		info := measure.About(metric)
		row := rowView{Name: info.Title, Better: betterNames[info.Better]}
		lead := g.leading(names, metric)
		for i, name := range names {
			row.Cells = append(row.Cells, cell(name, metric, lead[i]))
		}
		v.All = append(v.All, row)
	}
	if c := g.waits(); c != nil {
		v.Charts = append(v.Charts, template.HTML(c.draw(false)))
	}
	return v
}

// timeline is a recording as the page's script reads it: flat lists of whole numbers, times in milliseconds from the first
// thing that happened to any recording of its scenario.
type timeline struct {
	Title   string   `json:"title"`
	Rows    []string `json:"rows"`
	Queues  []string `json:"queues"`
	Length  int64    `json:"length"`
	Dropped int64    `json:"dropped"`
	// Spans has spanFields numbers for each run, Depths three: time, queue, jobs.
	Spans  []int64 `json:"spans"`
	Depths []int64 `json:"depths"`
}

// page.js knows the order: job, queue, from, to, row, rows, start, end, useful, overhead, outcome, excess.
const spanFields = 12

type timelineData struct {
	Fields    int        `json:"fields"`
	Outcomes  []string   `json:"outcomes"`
	Timelines []timeline `json:"timelines"`
}

func (s *Study) timelines() timelineData {
	data := timelineData{Fields: spanFields, Timelines: []timeline{}}
	for o := job.Outcome(0); int(o) < job.Outcomes; o++ {
		data.Outcomes = append(data.Outcomes, strings.ReplaceAll(o.String(), "-", " "))
	}
	for _, g := range s.groups() {
		origin := quantity.Never
		for _, r := range g.rows {
			if r.Spans != nil {
				origin = min(origin, start(r.Spans))
			}
		}
		for _, r := range g.rows {
			if r.Spans != nil {
				data.Timelines = append(data.Timelines, newTimeline(r, origin))
			}
		}
	}
	return data
}

func newTimeline(r *Row, origin quantity.Instant) timeline {
	rec := r.Spans
	ms := func(at quantity.Instant) int64 { return at.Sub(origin).Milliseconds() }
	t := timeline{Title: rowTitle(r), Dropped: rec.DroppedSpans, Spans: make([]int64, 0, spanFields*len(rec.Spans)),
		Depths: make([]int64, 0, 3*len(rec.Depths))}
	class := classOf(rec)
	for i := range class {
		t.Rows = append(t.Rows, trackName(rec, class, i))
	}
	for i := range rec.Queues {
		t.Queues = append(t.Queues, queueName(rec, int32(i)))
	}
	for i := range rec.Spans {
		p := &rec.Spans[i]
		excess := int64(0)
		if p.Excess {
			excess = 1
		}
		t.Spans = append(t.Spans, p.Job, int64(p.Queue), p.Units.From, p.Units.To, int64(p.First), int64(max(p.Slices, 1)), ms(p.Start),
			ms(p.End),
			int64(p.Useful/time.Millisecond), int64(p.Overhead/time.Millisecond), int64(p.Outcome), excess)
		t.Length = max(t.Length, ms(p.End))
	}
	for _, d := range rec.Depths {
		t.Depths = append(t.Depths, ms(d.At), int64(d.Queue), int64(d.Jobs))
		t.Length = max(t.Length, ms(d.At))
	}
	return t
}
