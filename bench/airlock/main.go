// Airlock runs the studies of docs/airlock.md and writes it, with its figure: `make airlock`. The same seeds give the same page on every
// machine.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"text/template"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/play"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/oom"
	"sluice.dev/sluice/internal/lab/report"
)

func main() { play.Main("airlock", "1-3", "", write) }

//go:embed airlock.md.tmpl
var text string

// page is docs/airlock.md under way.
type page struct {
	*pages.Page
	*play.Settings
	ctx      context.Context
	progress io.Writer
	// Lost is where others lose less work than Airlock, Later where their jobs complete sooner, a sentence each.
	Lost, Later []string
}

// write makes the page and its figure.
func write(ctx context.Context, s *play.Settings, progress io.Writer) error {
	out, err := pages.New(s.Out, "airlock")
	if err != nil {
		return err
	}
	return out.Write(text, template.FuncMap{"everybody": everybody, "columns": columns, "cells": cells, "losses": losses},
		&page{Page: out, Settings: s, ctx: ctx, progress: progress})
}

const ours = "airlock"

// everybody is who may act.
func everybody() []string {
	names := []string{ours}
	for _, k := range oom.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func columns() []string {
	return []string{measure.HighValueLost, measure.WrongOrderKills, measure.WorkLost, measure.Stalled, measure.TimeOverLine,
		measure.MemoryKills,
		measure.Suspended, measure.Recovered, measure.Readdressed, measure.Reclaimed, measure.Failed, measure.CompletionMean}
}

// Alone plays a scenario under Airlock, with storms that come when they like and strike whom they like.
func (p *page) Alone(title, name string, sets ...string) (play.Outcome, error) {
	return p.play(title, name, []string{ours}, sets)
}

func (p *page) play(title, name string, who, sets []string) (play.Outcome, error) {
	return p.Play(p.ctx, p.progress, title, name, who, append([]string{"memory.spread=5m"}, sets...))
}

// All plays a scenario under everybody, and notes who loses less work than Airlock, and whose jobs complete sooner.
func (p *page) All(title, name string, sets ...string) (play.Outcome, error) {
	o, err := p.play(title, name, everybody(), sets)
	if err != nil {
		return nil, err
	}
	lost, done := o.Mean(ours, measure.WorkLost).Mean, o.Mean(ours, measure.CompletionMean).Mean
	for _, n := range everybody()[1:] {
		if v := o.Mean(n, measure.WorkLost).Mean; v < lost {
			p.Lost = append(p.Lost, fmt.Sprintf("%s: %s, %.0f s against %.0f s", title, n, v, lost))
		}
		if v := o.Mean(n, measure.CompletionMean).Mean; v < done {
			p.Later = append(p.Later, fmt.Sprintf("%s: %s, %.2f h against %.2f h", title, n, v/3600, done/3600))
		}
	}
	return o, nil
}

// Bars draws the work that each lost.
func (p *page) Bars(o play.Outcome) (string, error) {
	chart := &report.Chart{Title: "Work lost to memory", Kind: report.Bars, Y: report.Axis{Label: "slice-time lost", Unit: measure.Seconds,
		Better: measure.Lower}}
	for _, name := range everybody() {
		e := o.Mean(name, measure.WorkLost)
		chart.Series = append(chart.Series, report.Series{Name: name, Dots: []report.Dot{{Y: e.Mean, Low: e.Low, High: e.High}}})
	}
	return p.Draw("lost", chart)
}

// cells of a row of the table with all columns.
func cells(o play.Outcome, name string) (out []string) {
	for _, c := range columns() {
		if v := o.Mean(name, c).Mean; c == measure.CompletionMean {
			out = append(out, fmt.Sprintf("%.2f h", v/3600))
		} else if measure.About(c).Unit == measure.Seconds {
			out = append(out, fmt.Sprintf("%.0f s", v))
		} else {
			out = append(out, fmt.Sprintf("%.1f", v))
		}
	}
	return out
}

// losses is what everybody lost: work, and in brackets of high value and in the wrong order.
func losses(o play.Outcome) (out []string) {
	for _, n := range everybody() {
		out = append(out, fmt.Sprintf("%.0f s (%.1f, %.1f)", o.Mean(n, measure.WorkLost).Mean, o.Mean(n, measure.HighValueLost).Mean,
			o.Mean(n, measure.WrongOrderKills).Mean))
	}
	return out
}
