// Forecast runs `sluice forecast` on published logs, holds forecasts of a week against the week, and writes docs/forecast.md with its
// figures: `make forecast DATA=../traces`. The same data and seed give the same page on every machine.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/program"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/lab/forecast"
	"sluice.dev/sluice/internal/lab/history"
	histories "sluice.dev/sluice/internal/lab/history/all"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

func main() {
	var p page
	flag.StringVar(&p.data, "data", os.Getenv("SLUICE_DATA"), "folder of published traces")
	flag.IntVar(&p.days, "days", forecast.Recent, "how many of the days before a week, and of a log's last ones, count")
	flag.StringVar(&p.out, "out", "docs", "folder to write forecast.md and forecast/*.svg to")
	flag.Parse()
	program.Main("forecast", p.write)
}

//go:embed forecast.md.tmpl
var text string

// page is docs/forecast.md under way.
type page struct {
	*pages.Page
	ctx       context.Context
	data, out string
	days      int
}

func (p *page) write(ctx context.Context) (err error) {
	p.ctx = ctx
	if p.Page, err = pages.New(p.out, "forecast"); err != nil {
		return err
	}
	return p.Write(text, template.FuncMap{}, p)
}

// published is a log with what it does not say of itself.
type published struct {
	name  string
	files []string
	gpus  int
	// weeks are how many of its last ones are forecast.
	weeks int
}

func logs() []published {
	return []published{
		{"philly", []string{"philly/philly_sep-oct.csv.gz"}, 800, 5},
		{"hpc2n", []string{"swf/hpc2n.swf.gz"}, 0, 5},
		{"openb", []string{"openb/openb_pod_list_default.csv.gz"}, 0, 2},
		{"helios", []string{
			"helios/Earth_vc6YE_cluster_sequence_vc.csv.gz", "helios/Earth_vcTJs_cluster_sequence_vc.csv.gz",
			"helios/Earth_vcpDC_cluster_sequence_vc.csv.gz",
		}, 0, 2},
	}
}

func (p *page) log(x published) (*forecast.Log, error) {
	var files []string
	for _, f := range x.files {
		files = append(files, filepath.Join(p.data, f))
	}
	h, err := histories.Read(history.Options{GPUs: x.gpus}, files...)
	if err != nil {
		return nil, fmt.Errorf("%w; give the folder of published traces with -data", err)
	}
	return forecast.Recorded(h), nil
}

func (p *page) forecast(l *forecast.Log, quick bool, devices int, backlogs ...forecast.Backlog) (*forecast.Answer, error) {
	fmt.Fprintf(os.Stderr, "%d days of %d GPUs\n", l.Days(), len(l.Devices))
	table := play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}
	return forecast.Forecast(p.ctx, l, forecast.Options{Table: table, Notice: forecast.Notice, Seed: 1, Workers: runtime.GOMAXPROCS(0),
		Quick: quick, Backlogs: backlogs, Devices: devices, Days: p.days})
}

// Answer is the command's answer to a log, with the pictures of it.
func (p *page) Answer(name string) (string, error) {
	for _, x := range logs() {
		if x.name != name {
			continue
		}
		l, err := p.log(x)
		if err != nil {
			return "", err
		}
		a, err := p.forecast(l, false, 0)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		if err = a.Text(&b); err != nil {
			return "", err
		}
		var pictures []pages.Picture
		for _, f := range a.Figures() {
			pictures = append(pictures, pages.Picture{Name: name + "-" + f.Name, Chart: f.Chart})
		}
		shown, err := p.DrawAll(pictures)
		return "```\n" + b.String() + "```\n\n" + strings.Join(shown, "\n"), err
	}
	return "", fmt.Errorf("there is no log %s", name)
}

// Says is the head of the command's answer to a log.
func (p *page) Says(name string) (string, error) {
	i := slices.IndexFunc(logs(), func(x published) bool { return x.name == name })
	l, err := p.log(logs()[i])
	if err != nil {
		return "", err
	}
	a, err := p.forecast(l, true, 0)
	if err != nil {
		return "", err
	}
	return "```\n" + a.Says + "\n\n- " + strings.Join(a.Why, "\n- ") + "\n```", nil
}

// week is a forecast of days from those before, and what they came to.
type week struct {
	Log, Backlog string
	First        int
	Kept         forecast.Interval
	Truth        float64
	Gain, Gained float64
	Inside       bool
}

// A week that is forecast has so many days.
const (
	weekDays = 7
	// playedDevices is how many devices the week itself is played on.
	playedDevices = 24
)

// Weeks forecasts the last weeks of each log from all days before, and plays them.
func (p *page) Weeks() (out []week, err error) {
	for _, x := range logs() {
		l, err := p.log(x)
		if err != nil {
			return nil, err
		}
		for i := range x.weeks {
			first := l.Days() - weekDays*(x.weeks-i)
			backlogs := forecast.Stated(forecast.StatedMemory)
			backlogs = []forecast.Backlog{backlogs[1], backlogs[2]}
			before, err := p.forecast(l.Between(0, first), true, 0, backlogs...)
			if err != nil {
				return nil, err
			}
			after, err := p.forecast(l.Between(first, first+weekDays), true, playedDevices, backlogs...)
			if err != nil {
				return nil, err
			}
			for k := range before.Outcomes {
				b, a := &before.Outcomes[k], &after.Outcomes[k]
				w := week{Log: x.name, Backlog: b.Name, First: first, Kept: b.Row("sja").Kept, Truth: a.Row("sja").Kept.Value,
					Gain: b.Gain.Value, Gained: a.Gain.Value}
				w.Inside = w.Kept.Low <= w.Truth && w.Truth <= w.Kept.High
				out = append(out, w)
			}
		}
	}
	return out, nil
}

// Table of the weeks under a backlog.
func (p *page) Table(weeks []week, backlog string) string {
	lines := []string{"| log | days | forecast | 80% | played | inside | gain, forecast | gain, played |",
		"|---|---|---|---|---|---|---|---|"}
	inside, of, wide := 0, 0, 0.
	for _, w := range weeks {
		if w.Backlog != backlog {
			continue
		}
		of++
		mark := "no"
		if w.Inside {
			inside++
			mark = "yes"
		}
		wide = max(wide, w.Kept.High-w.Kept.Low)
		lines = append(lines, fmt.Sprintf("| %s | %d to %d | %.2f%% | %.2f to %.2f | %.2f%% | %s | %+.2f | %+.2f |", w.Log, w.First,
			w.First+weekDays, 100*w.Kept.Value, 100*w.Kept.Low, 100*w.Kept.High, 100*w.Truth, mark, 100*w.Gain, 100*w.Gained))
	}
	return fmt.Sprintf("%s\n\nInside: %d of %d; the widest interval has %.2f points.", strings.Join(lines, "\n"), inside, of, 100*wide)
}
