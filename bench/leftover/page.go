package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
)

// page is docs/leftover.md under way.
type page struct {
	bytes.Buffer
	*settings
	ctx      context.Context
	progress io.Writer
	dir      string
}

// say writes text, as it is.
func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// write makes the page and its figures.
func write(ctx context.Context, s *settings, progress io.Writer) error {
	p := &page{settings: s, ctx: ctx, progress: progress, dir: filepath.Join(s.out, "leftover")}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	p.head()
	for _, section := range []func() error{p.noticed, p.logs, p.unannounced, p.learned, p.ends, p.training, p.ablation} {
		if err := section(); err != nil {
			return err
		}
	}
	return report.Create(filepath.Join(s.out, "leftover.md"), func(w io.Writer) error { _, err := w.Write(p.Bytes()); return err })
}

func (p *page) head() {
	p.say("# Beside a host scheduler\n\n")
	p.say("What becomes of the time that a host scheduler leaves, where Sluice is meant to live. Written by `make leftover`; every " +
		"figure below comes\n")
	p.say("from that one command. `sluice sim show leftover` prints the scenario, [scenarios.md](scenarios.md#host) says what a host is " +
		"and what the\n")
	p.say("other mechanisms do, [metrics.md](metrics.md#beside-a-host) has the formulas, [0029](adr/0029-host.md) the reasons. Values "+
		"are means over %d seeds\n", len(p.seeds))
	p.say("with 95%% intervals by Student's t. Every mechanism has the same gaps, the same jobs, pays the same for start, restore and " +
		"checkpoint, and\n")
	p.say("has more to do than there is time for. Jobs are published statistics, not a log: training runs in steps of ten seconds " +
		"(start 0.3 s, restore\n")
	p.say("20 s, checkpoint 15 s) and as many scans of 20,000 units of a second, which need neither.\n\n")
	p.say("Published mark: ReclaimNet, on 54 nodes, loses 66%% less work than preempting and requeueing, and 38%% less than periodic\n")
	p.say("checkpoints. Its workload is another, so its figures are a mark and no comparison.\n\n")
}

// columns of a table of mechanisms.
func columns() []string {
	return []string{measure.LeftoverUseful, measure.LostWork, measure.HostDelayMean, measure.OverheadShare, measure.Unfinished,
		measure.CompletionMean}
}

// table has a row for each mechanism of a point.
func (p *page) table(o outcome, names []string) {
	p.say("| mechanism |")
	for _, c := range columns() {
		p.say(" %s |", measure.About(c).Title)
	}
	p.say("\n|---|%s\n", strings.Repeat("---|", len(columns())))
	for _, name := range names {
		p.say("| %s |", name)
		for _, c := range columns() {
			p.say(" %s |", estimate(c, measure.Mean(o.values(name, c))))
		}
		p.say("\n")
	}
	p.say("\n")
}

// peers of the scenarios with notice.
func peers() []string {
	return []string{"checkpoint", "time-min", "pilot", "sjf", "requeue", "nothing"}
}

func ours(others ...string) []string { return append([]string{"sja", "jasda"}, others...) }

// section plays one of the shipped scenarios and shows it.
func (p *page) section(title, name, text string, names []string) (outcome, error) {
	o, err := p.play(p.ctx, point{scenario: name, mechanisms: names}, p.progress)
	if err != nil {
		return nil, err
	}
	p.say("## %s\n\n%s\n\n", title, text)
	first := names[0]
	p.say("Scenario `%s`: %.0f gaps of %s in the mean.\n\n", name, measure.Mean(o.values(first, measure.Gaps)).Mean,
		value(measure.GapMean, measure.Mean(o.values(first, measure.GapMean)).Mean))
	p.table(o, names)
	return o, nil
}

func (p *page) noticed() error {
	names := ours(peers()...)
	o, err := p.section("Ends that are known or noticed", "leftover",
		"Sixteen GPUs under EASY backfill, whose jobs ask for twice the time they need, and four that serve by day. A gap ends where "+
			"the plan\n"+
			"foretold it, where the calendar has it, or with thirty seconds' notice.", names)
	if err != nil {
		return err
	}
	p.against(o, []string{"sja", "jasda"}, peers()[:5])
	c := &report.Chart{Title: "Leftover time that was useful, ends known or noticed", Kind: report.Bars,
		Y: report.Axis{Label: "share of the gaps", Unit: measure.Share}}
	for _, name := range names {
		e := measure.Mean(o.values(name, measure.LeftoverUseful))
		c.Series = append(c.Series, report.Series{Name: name, Dots: []report.Dot{{Y: e.Mean, Low: e.Low, High: e.High}}})
	}
	return p.draw("leftover.svg", c)
}

func (p *page) logs() error {
	if p.data == "" {
		return nil
	}
	o, err := p.section("The same with published logs", "leftover-logs",
		"The host's work is that of Philly's jobs, of the growth of a Helios cluster and of openb's pods, on sixteen GPUs; four serve "+
			"by day.", ours(peers()...))
	if err != nil {
		return err
	}
	p.against(o, []string{"sja", "jasda"}, peers()[:5])
	return nil
}

// intervals of checkpoint, in minutes.
func intervals() []int { return []int{1, 2, 5, 10, 20} }

func every(minutes int) string { return fmt.Sprintf("checkpoint:%dm", minutes) }

func (p *page) unannounced() error {
	var fixed []string
	for _, n := range intervals() {
		fixed = append(fixed, every(n))
	}
	names := append(ours(fixed...), "pilot", "sjf", "requeue")
	o, err := p.section("Without notice", "leftover-unannounced",
		"Nothing is foretold and what runs is killed. Programs in steps leave a checkpoint after every five minutes of work, under ours "+
			"too;\n"+
			"`checkpoint:10m` has them leave one after every ten. The best interval, which nobody knows before, is the mark.", names)
	if err != nil {
		return err
	}
	best := fixed[0]
	for _, name := range fixed {
		if measure.Mean(o.values(name, measure.LeftoverUseful)).Mean > measure.Mean(o.values(best, measure.LeftoverUseful)).Mean {
			best = name
		}
	}
	p.against(o, []string{"sja", "jasda"}, []string{best, "pilot", "sjf", "requeue"})
	short, err := p.play(p.ctx, point{
		label: "short windows", scenario: "leftover-unannounced", mechanisms: ours(), sets: []string{"workload.synthetic.saves=0s",
			"mechanism.horizon=7m", "mechanism.continue=false", "mechanism.ends=0"},
	}, p.progress)
	if err != nil {
		return err
	}
	p.say("Where programs leave no checkpoint on their way, the interval is the length of a subjob. With a horizon of seven minutes, " +
		"chosen by hand, and\n")
	p.say("without continuation and learned ends, each with its start and restore, %s of the time is useful under sja and %s under "+
		"jasda.\n\n",
		estimate(measure.LeftoverUseful, measure.Mean(short.values("sja", measure.LeftoverUseful))),
		estimate(measure.LeftoverUseful, measure.Mean(short.values("jasda", measure.LeftoverUseful))))
	p.say("The same programs under ours and under the filler, by how much work lies between two of their checkpoints:\n\n")
	c := &report.Chart{
		Title: "Leftover time that was useful, without notice", X: report.Axis{Label: "minutes of work between two checkpoints", Log: true},
		Y: report.Axis{Label: "share of the gaps", Unit: measure.Share},
	}
	line := report.Series{Name: "checkpoint"}
	for i, name := range fixed {
		line.Dots = append(line.Dots, dot(float64(intervals()[i]), o.values(name, measure.LeftoverUseful)))
	}
	own := map[string]*report.Series{"sja": {Name: "sja"}, "jasda": {Name: "jasda"}}
	for _, n := range intervals() {
		o, err := p.play(p.ctx, point{
			label: every(n), scenario: "leftover-unannounced", mechanisms: ours(),
			sets: []string{fmt.Sprintf("workload.synthetic.saves=%dm", n)},
		}, p.progress)
		if err != nil {
			return err
		}
		for name, s := range own {
			s.Dots = append(s.Dots, dot(float64(n), o.values(name, measure.LeftoverUseful)))
		}
	}
	c.Series = append(c.Series, *own["sja"], *own["jasda"], line)
	return p.draw("unannounced.svg", c)
}

func dot(x float64, values []float64) report.Dot {
	e := measure.Mean(values)
	return report.Dot{X: x, Y: e.Mean, Low: e.Low, High: e.High}
}

// against compares mechanisms with peers, seed by seed.
func (p *page) against(o outcome, names, peers []string) {
	p.say("By differences on each seed, in points of the leftover time, and the work lost against theirs:\n\n| mechanism | against | " +
		"useful, difference | lost work, of theirs |\n|---|---|---|---|\n")
	for _, name := range names {
		for _, peer := range peers {
			d := measure.Difference(o.values(name, measure.LeftoverUseful), o.values(peer, measure.LeftoverUseful))
			lost, theirs := measure.Mean(o.values(name, measure.LostWork)).Mean, measure.Mean(o.values(peer, measure.LostWork)).Mean
			text := "-"
			if theirs >= .0005 {
				text = fmt.Sprintf("%+.0f%%", 100*(lost/theirs-1))
			}
			p.say("| %s | %s | %s | %s |\n", name, peer, points(d), text)
		}
	}
	p.say("\n")
}

func (p *page) ends() error {
	p.say("## How ends are known\n\n`leftover` with walltimes that are true, twice too long (as above) or missing, and with other " +
		"notices. Leftover time that was useful,\nand work thrown away:\n\n")
	names := ours("checkpoint", "time-min", "pilot")
	p.say("| walltimes | notice |")
	for _, name := range names {
		p.say(" %s |", name)
	}
	p.say("\n|---|---|%s\n", strings.Repeat("---|", len(names)))
	for _, w := range []struct{ label, set string }{
		{"true", "host.synthetic.timeError={bias: 0, sigma: 0}"}, {"twice too long", "host.notice="}, {"missing", "host.walltimes=none"},
	} {
		for _, notice := range []string{"15s", "30s", "2m"} {
			sets := []string{w.set, "host.notice=" + notice}
			if w.set == "host.notice=" {
				sets = sets[1:]
			}
			o, err := p.play(p.ctx, point{label: w.label + " " + notice, scenario: "leftover", mechanisms: names, sets: sets}, p.progress)
			if err != nil {
				return err
			}
			p.say("| %s | %s |", w.label, notice)
			for _, name := range names {
				p.say(" %.1f%% (%.2f%%) |", 100*measure.Mean(o.values(name, measure.LeftoverUseful)).Mean,
					100*measure.Mean(o.values(name, measure.LostWork)).Mean)
			}
			p.say("\n")
		}
	}
	p.say("\n")
	return nil
}

func (p *page) training() error {
	p.say("## Training alone\n\nThe same without scans: all that is left to choose is which chain runs, and where it is cut. " +
		"Checkpointing on notice is then as good as can\nbe, and no mechanism has more than its margins to gain.\n\n")
	for _, c := range []struct {
		name  string
		names []string
	}{
		{"leftover", ours("checkpoint", "time-min")},
		{"leftover-unannounced", ours(every(2), every(5), every(10))},
	} {
		o, err := p.play(p.ctx, point{label: "training", scenario: c.name, mechanisms: c.names, sets: []string{"workload.jobs=[]"}},
			p.progress)
		if err != nil {
			return err
		}
		p.say("`%s`\n\n", c.name)
		p.table(o, c.names)
	}
	return nil
}

// parts of the market, each changed alone.
func parts() []part {
	return []part{
		{"one variant of a job (4)", "market.variants=1"},
		{"exclusive (not)", "market.exclusive=true"},
		{"joint (not)", "market.joint=true"},
		{"one round (3)", "market.rounds=1"},
		{"repack withdraw (rolling)", "market.repack=withdraw"},
		{"repack never (rolling)", "market.repack=never"},
		{"nothing is paid (first)", "market.payment=free"},
		{"no continuation", "mechanism.continue=false"},
	}
}

type part struct{ label, set string }

func (p *page) ablation() error {
	p.say("## What each part of the market is worth here\n\nJASDA with one part changed (the default in brackets), minus JASDA as it " +
		"is, on the same seeds. An interval that holds 0 shows nothing.\n\n")
	for _, name := range []string{"leftover", "leftover-unannounced"} {
		whole, err := p.play(p.ctx, point{label: "whole", scenario: name, mechanisms: []string{"jasda"}}, p.progress)
		if err != nil {
			return err
		}
		useful := measure.Mean(whole.values("jasda", measure.LeftoverUseful))
		p.say("`%s`: %s useful as it is\n\n| changed | useful, difference | lost work, difference | completion, difference | messages "+
			"per award |\n|---|---|---|---|---|\n", name, estimate(measure.LeftoverUseful, useful))
		for _, part := range parts() {
			o, err := p.play(p.ctx, point{label: part.label, scenario: name, mechanisms: []string{"jasda"}, sets: []string{part.set}},
				p.progress)
			if err != nil {
				return err
			}
			diff := func(metric string) measure.Estimate {
				return measure.Difference(o.values("jasda", metric), whole.values("jasda", metric))
			}
			took := diff(measure.CompletionMean)
			p.say("| %s | %s | %s | %+.1f min (%+.1f to %+.1f) | %.1f |\n", part.label, points(diff(measure.LeftoverUseful)),
				points(diff(measure.LostWork)),
				took.Mean/60, took.Low/60, took.High/60, measure.Mean(o.values("jasda", measure.MessagesPerAward)).Mean)
		}
		p.say("\n")
	}
	return nil
}

func (p *page) draw(name string, c *report.Chart) error {
	if err := report.Create(filepath.Join(p.dir, name), c.SVG); err != nil {
		return err
	}
	p.say("![%s](leftover/%s)\n\n", c.Title, name)
	return nil
}

// points of a share, with their interval.
func points(e measure.Estimate) string {
	if math.IsNaN(e.Low) {
		return fmt.Sprintf("%+.2f", 100*e.Mean)
	}
	return fmt.Sprintf("%+.2f (%+.2f to %+.2f)", 100*e.Mean, 100*e.Low, 100*e.High)
}

// value of a metric for people.
func value(metric string, v float64) string {
	switch about := measure.About(metric); {
	case math.IsNaN(v):
		return "-"
	case metric == scenario.Finished || about.Unit == measure.Plain:
		return fmt.Sprintf("%.0f", v)
	case about.Unit == measure.Share:
		return fmt.Sprintf("%.1f%%", 100*v)
	case v < 1e-6:
		return "0"
	}
	return time.Duration(v * float64(time.Second)).Round(time.Second).String()
}

// estimate is a mean with half of its interval.
func estimate(metric string, e measure.Estimate) string {
	if math.IsNaN(e.Low) || value(metric, e.High-e.Mean) == value(metric, 0) {
		return value(metric, e.Mean)
	}
	return value(metric, e.Mean) + " ± " + value(metric, e.High-e.Mean)
}
