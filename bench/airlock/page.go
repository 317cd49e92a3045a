package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/oom"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
)

// page is docs/airlock.md under way.
type page struct {
	bytes.Buffer
	*settings
	ctx      context.Context
	progress io.Writer
	// lost is where others lose less work than Airlock, later where their jobs complete sooner, a sentence each.
	lost, later []string
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

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
	return []string{measure.HighValueLost, measure.WrongOrderKills, measure.WorkLost, measure.StoodStill, measure.TimeOverLine,
		measure.MemoryKills,
		measure.Suspended, measure.Recovered, measure.Readdressed, measure.Reclaimed, measure.Failed, measure.CompletionMean}
}

// drawn are storms that come when they like and strike whom they like.
const drawn = "memory.spread=5m"

// write makes the page and its figure.
func write(ctx context.Context, s *settings, progress io.Writer) error {
	p := &page{settings: s, ctx: ctx, progress: progress}
	dir := filepath.Join(s.out, "airlock")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p.head()
	chart := &report.Chart{Title: "Work lost to memory", Kind: report.Bars, Y: report.Axis{Label: "slice-time lost", Unit: measure.Seconds,
		Better: measure.Lower}}
	for i, x := range []struct{ title, text, scenario, sets string }{
		{"Storms that can be absorbed", "`airlock-storm`: 16 GiB of swap, and what runs is pinned.", "airlock-storm", ""},
		{"Without swap", "The same storms. Standing still frees nothing but growth.", "airlock-storm", "memory.park=0Gi memory.hot=false"},
		{"With more swap than storms", "64 GiB of swap, a quarter of each process cold: the kernel alone has room for all of it.",
			"airlock-storm", "memory.park=64Gi memory.hot=false"},
		{"Storms that can't be absorbed", "`airlock-storm-hard`: twice as large, and no swap.", "airlock-storm-hard", ""},
	} {
		o, err := p.section(x.title, x.text, x.scenario, strings.Fields(x.sets))
		if err != nil {
			return err
		}
		if i == 0 {
			for _, name := range everybody() {
				e := mean(o[name], measure.WorkLost)
				chart.Series = append(chart.Series, report.Series{Name: name, Dots: []report.Dot{{Y: e.Mean, Low: e.Low, High: e.High}}})
			}
			if err := report.Create(filepath.Join(dir, "lost.svg"), chart.SVG); err != nil {
				return err
			}
			p.say("![Work lost to memory](airlock/lost.svg)\n\n")
		}
	}
	if err := p.orders(); err != nil {
		return err
	}
	if err := p.shapes(); err != nil {
		return err
	}
	p.say("## Where we lose\n\n")
	p.list("Others lose less work, by the means", p.lost)
	p.list("Others are done sooner, by the mean completion", p.later)
	p.say("%s\n%s", why, guest)
	return report.Create(filepath.Join(s.out, "airlock.md"), func(w io.Writer) error { _, err := w.Write(p.Bytes()); return err })
}

func (p *page) head() {
	p.say("# Where memory runs out\n\nWritten by `make airlock`; every figure but those at the end comes from that one command. " +
		"[0046](adr/0046-airlock.md) says what Airlock does, [scenarios.md](scenarios.md#memory) what the world is made of, ")
	p.say("[metrics.md](metrics.md#where-memory-runs-out) has the formulas, and `internal/lab/oom` says by which rules and defaults "+
		"others act. Two hosts of 176 GiB with 16 slices each, four hours of arrivals, some 100 storms; means over %d seeds, which draw "+
		"when storms come and whom they strike. ", len(p.seeds))
	p.say("Jobs run by priority and age, so that those of high value run when the storms come. Where not said otherwise the order of " +
		"survival is the default. Times are slice-time. What begins is held against no host's memory (`memory.excess` is not set), as a " +
		"daemon does with [joint excess](adr/0048-joint-excess.md): storms are what no profile has foreseen.\n\n")
	p.say("Played as fairly as we could: every victim keeps what its checkpoints have, is no failure of its job, and may start again at " +
		"once; SIGTERM lets a program leave a checkpoint; whoever runs a unit again that a storm struck is struck again, at most three " +
		"times; ")
	p.say("swap takes what is too much of all processes alike before anything is killed. No batch system above the killers holds " +
		"anything back, which is hard on Ray: what it ends is started again on the same host and is the newest again. One kill of a " +
		"chain that has run for long decides a figure: the intervals (95%%, in the figure) are wide with few seeds.\n\n")
}

func mean(results []scenario.Result, metric string) measure.Estimate {
	var v []float64
	for _, r := range results {
		v = append(v, r.Metrics.Get(metric))
	}
	return measure.Mean(v)
}

// header of a table.
func (p *page) header(first string) {
	p.say("| %s |", first)
	for _, c := range columns() {
		p.say(" %s |", c)
	}
	p.say("\n|---|%s\n", strings.Repeat("---|", len(columns())))
}

func (p *page) row(label string, results []scenario.Result) {
	p.say("| %s |", label)
	for _, c := range columns() {
		if v := mean(results, c).Mean; c == measure.CompletionMean {
			p.say(" %.2f h |", v/3600)
		} else if measure.About(c).Unit == measure.Seconds {
			p.say(" %.0f s |", v)
		} else {
			p.say(" %.1f |", v)
		}
	}
	p.say("\n")
}

func (p *page) section(title, text, name string, sets []string) (map[string][]scenario.Result, error) {
	o, err := p.play(p.ctx, point{title, name, everybody(), append([]string{drawn}, sets...)}, p.progress)
	if err != nil {
		return nil, err
	}
	p.say("## %s\n\n%s\n\n", title, text)
	p.header("who acts")
	for _, n := range everybody() {
		p.row(n, o[n])
	}
	p.say("\n")
	p.compare(title, o)
	return o, nil
}

// compare notes which mechanisms lose less work than Airlock, and which complete jobs sooner.
func (p *page) compare(title string, o map[string][]scenario.Result) {
	lost, done := mean(o[ours], measure.WorkLost).Mean, mean(o[ours], measure.CompletionMean).Mean
	for _, n := range everybody()[1:] {
		if v := mean(o[n], measure.WorkLost).Mean; v < lost {
			p.lost = append(p.lost, fmt.Sprintf("%s: %s, %.0f s against %.0f s", title, n, v, lost))
		}
		if v := mean(o[n], measure.CompletionMean).Mean; v < done {
			p.later = append(p.later, fmt.Sprintf("%s: %s, %.2f h against %.2f h", title, n, v/3600, done/3600))
		}
	}
}

// list writes one list of where others are better.
func (p *page) list(what string, where []string) {
	if len(where) == 0 {
		p.say("%s: nowhere here.\n\n", what)
		return
	}
	p.say("%s:\n\n", what)
	for _, l := range where {
		p.say("- %s\n", l)
	}
	p.say("\n")
}

// orders are Airlock's orders of survival beside each other, with and without swap.
func (p *page) orders() error {
	p.say("## Orders of survival\n\nWhat comes first, and whether it counts before that who has outgrown what was planned for it. A " +
		"kill is judged by the order that is played.\n\n")
	p.header("order")
	for _, swap := range []string{"16Gi", "0Gi"} {
		for _, order := range []string{"class", "priority"} {
			for _, outgrown := range []string{"first", "alike"} {
				label := fmt.Sprintf("%s, outgrown %s, swap %s", order, outgrown, swap)
				o, err := p.play(p.ctx, point{label, "airlock-storm", []string{ours},
					[]string{drawn, "memory.park=" + swap, "memory.order=" + order, "memory.outgrown=" + outgrown}}, p.progress)
				if err != nil {
					return err
				}
				p.row(label, o[ours])
			}
		}
	}
	p.say("\n")
	return nil
}

// shapes plays each shape of storm by itself: work lost by each.
func (p *page) shapes() error {
	p.say("## Each shape by itself\n\n`airlock-storm` with one shape, every 10 minutes on each host. Work lost, and in brackets what " +
		"was lost of high value and ended in the wrong order. Where all lose nothing such a storm alone finds room.\n\n| storm |")
	for _, n := range everybody() {
		p.say(" %s |", n)
	}
	p.say("\n|---|%s\n", strings.Repeat("---|", len(everybody())))
	for _, x := range []struct{ label, storm string }{
		{"slow leak, 30 GiB in 3 min", "shape: leak, size: 30Gi, for: 3m"},
		{"sudden jump, 36 GiB for 20 s", "shape: jump, size: 36Gi, for: 20s"},
		{"many small, 40 GiB in 2 min", "shape: many, size: 40Gi, for: 2m"},
		{"one giant, 120 GiB in 1 min", "shape: leak, size: 120Gi, for: 1m"},
		{"sawtooth, 40 GiB", "shape: sawtooth, size: 40Gi, for: 2m"},
		{"fork bomb, 30 GiB in 1 min", "shape: fork-bomb, size: 30Gi, for: 1m"},
		{"tmpfs, 40 GiB for 1 min", "shape: tmpfs, size: 40Gi, for: 1m"}, {"page cache, 80 GiB", "shape: page-cache, size: 80Gi, for: 1m"},
	} {
		o, err := p.play(p.ctx, point{x.label, "airlock-storm", everybody(), []string{drawn, "memory.storms=[{at: 20m, every: 10m, " +
			x.storm + "}]"}}, p.progress)
		if err != nil {
			return err
		}
		p.say("| %s |", x.label)
		for _, n := range everybody() {
			p.say(" %.0f s (%.1f, %.1f) |", mean(o[n], measure.WorkLost).Mean, mean(o[n], measure.HighValueLost).Mean,
				mean(o[n], measure.WrongOrderKills).Mean)
		}
		p.say("\n")
		p.compare(x.label, o)
	}
	p.say("\n")
	return nil
}

// why is what people have made of the tables above.
const why = `Why. *Without swap* and in *storms that can't be absorbed* there is nothing outside to move anything to. earlyoom asks the largest at 90%, whatever its rank, and ends hundreds more, of which most had just begun; what Airlock loses there are jumps past the end of the memory
between two looks: then the kernel ends the largest, and no order is kept. *Sooner*: who ends the largest, or lets all swap, has
those that were not struck go on; under Airlock the lowest stand still or are asked to leave so that those of high value do not ` +
	`lose theirs, and what has left waits for a place. With more swap than storms nobody had to.
*The kubelet* leaves it to the kernel, and has told it who uses more than it has asked for: the same as our outgrown first. Ray ends the newest, which is started again at once and is the newest again.
`

// guest is what was measured elsewhere.
const guest = `## On a real kernel

Not by ` + "`make airlock`: `SLUICE_VM_STORMS=20 make vmtest` (`TestGuestOutlivesStorms`" +
	`). A guest with 512 MiB, a disk as swap and control groups of version 2 (Linux 6.1, emulated without hardware support on two cores with other load), two subjobs of 40 MiB of different priority, level full.
A program that is none of ours grows over the severe line again and again. Each time the lower subjob was frozen and moved to swap, all 40 MiB of it, and went on when there was room; the higher one stood still only where the lower one did (with the storm's growth counted both were wanted), and nobody was ended.
From the moment the kernel's own figures cross the line to ` + "`frozen 1`" + `, with the time until a look sees it; two runs:

| who decides | p50 | worst of 20 |
|---|---|---|
| the watcher | 11 and 9 ms | 33 and 76 ms |
| the node, in the daemon | 37 and 66 ms | 258 and 719 ms |
`
