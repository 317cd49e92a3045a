package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// page is docs/laminar.md under way.
type page struct {
	bytes.Buffer
	dir string
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// write makes the page and its figures.
func write(s *settings, done []result) error {
	p := &page{dir: filepath.Join(s.out, "laminar")}
	if err := os.RemoveAll(p.dir); err != nil { // no figure of an earlier page stays
		return err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	p.head(s, done)
	for i := range done {
		if err := p.study(&done[i]); err != nil {
			return err
		}
	}
	return report.Create(filepath.Join(s.out, "laminar.md"), func(w io.Writer) error { _, err := w.Write(p.Bytes()); return err })
}

func (p *page) head(s *settings, done []result) {
	var seeds []string
	for _, n := range s.seeds {
		seeds = append(seeds, fmt.Sprint(n))
	}
	p.say("# Evaluation of Laminar's flow\n\n")
	p.say("Written by `make laminar` (and by `make evaluation`); every figure below comes from that one command. " +
		"[adr/0036](adr/0036-flow.md) says what the flow is,\n")
	p.say("[adr/0037](adr/0037-lean-nodes.md) what the world is made of, [scenarios.md](scenarios.md#swarm) who the peers are, and " +
		"[metrics.md](metrics.md#of-short-tasks-on-lean-nodes) has the formulas.\n")
	p.say("Zones of 100 nodes of four slices; rigid work holds 40%%, coming and going; tasks are exponential, of 1 s on average and a " +
		"fifth of them of 6.8 s, over all\n")
	p.say("size classes; a short one gives up after 1 s and a long one after 30 s. Digests are 100 ms old where nothing else is said. " +
		"Worlds begin full; what is measured are seconds 10 to 30 of\n")
	p.say("1,000 nodes, with seeds %s and intervals of 95%%, seconds 5 to 10 of larger worlds with one seed, which have more tasks, and "+
		"second 4 where a processor is measured. The line of the [fluid model](../internal/lab/swarm/fluid/doc.go) is arithmetic, and "+
		"nothing in\n", strings.Join(seeds, ", "))
	p.say("it was fitted. Lines without a name are the peers that the tables have.\n\n")
	p.targets(done)
	p.wins(done)
	p.parted(done)
}

// by is a study by its name, nil if it was not run.
func by(done []result, name string) *result {
	for i := range done {
		if done[i].name == name && len(done[i].rows) > 0 {
			return &done[i]
		}
	}
	return nil
}

// targets are what the flow has to reach here, beside what it does.
func (p *page) targets(done []result) {
	p.say("## What it has to reach\n\n| what | target | measured |\n|---|---|---|\n")
	if r := by(done, "load"); r != nil {
		p.say("| placed share at load .9, 10,000 nodes | .995 | %.4f |\n", r.mean(.9, ours, measure.PlacedShare))
		p.say("| leftover use at load .9 | .85 | %.3f |\n", r.mean(.9, ours, measure.LeftoverUse))
	}
	if r := by(done, "scale"); r != nil {
		p.say("| messages a task, 100,000 nodes against 1,000 | 1.1 times | %.2f times (%.2f, %.2f) |\n",
			r.mean(1e5, ours, measure.MessagesPerTask)/r.mean(1e3, ours, measure.MessagesPerTask),
			r.mean(1e5, ours, measure.MessagesPerTask), r.mean(1e3, ours, measure.MessagesPerTask))
	}
	if r := by(done, "cpu-scale"); r != nil {
		of := func(x float64) float64 {
			return r.mean(x, ours, measure.CPUNanosPerTask) / r.mean(x, ours, measure.HopsMean)
		}
		p.say("| processor time for each probe, all parties, the same | 1.5 times | %.2f times (%.0f ns, %.0f ns) |\n", of(1e5)/of(1e3),
			of(1e5), of(1e3))
	}
	p.say("\nOn the frontier everywhere: [no](#where-a-peer-wins). The processor's time is of %s.\n\n", machine())
}

// machine is the processor's name, as its system has it.
func machine() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "a machine that does not say what it is"
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return "one processor of a shared " + strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "one processor of a shared machine"
}

// study writes one section: question, figures, table.
func (p *page) study(r *result) error {
	p.say("## %s\n\n%s\n\n", r.title, r.question)
	if r.skipped != "" {
		p.say("Not run: %s\n\n", r.skipped)
		return nil
	}
	for _, metric := range r.charts {
		if err := p.draw(r.name+"-"+metric, r.chart(metric)); err != nil {
			return err
		}
	}
	for _, x := range r.frontier {
		for _, metric := range []string{measure.MessagesPerTask, measure.LandingP99} {
			if err := p.draw(fmt.Sprintf("%s-frontier-%s-%g", r.name, metric, x), r.against(metric, x)); err != nil {
				return err
			}
		}
	}
	columns := []string{measure.PlacedShare, measure.LandingP50, measure.LandingP99, measure.HopsMean, measure.MessagesPerTask,
		measure.LeftoverUse, measure.ZoneFairness}
	if r.cpu {
		columns = []string{measure.CPUNanosPerTask, measure.PlacedShare, measure.HopsMean, measure.MessagesPerTask}
	}
	p.say("\n| %s | mechanism |", r.axis.Label)
	for _, metric := range columns {
		p.say(" %s |", strings.Replace(measure.About(metric).Title, "per job", "per task", 1)) // here a task is all that there is of a job
	}
	p.say("\n|---|---|%s\n", strings.Repeat("---|", len(columns)))
	for _, pt := range r.points {
		for _, m := range r.names() {
			p.say("| %s | %s |", pt.label, m)
			for _, metric := range columns {
				p.say(" %s |", estimate(metric, r.estimate(pt.x, m, metric)))
			}
			p.say("\n")
		}
		if f, ok := r.solved[pt.x]; ok {
			p.say("| %s | *%s* | %s | | | %s | | %s | |\n", pt.label, theory, value(measure.PlacedShare, f.Placed),
				value(measure.HopsMean, f.Hops), value(measure.LeftoverUse, f.Use))
		}
	}
	p.say("\n")
	return nil
}

// draw stores a figure and shows it.
func (p *page) draw(name string, c *report.Chart) error {
	p.say("![%s](laminar/%s.svg)\n", c.Title, name)
	return report.Create(filepath.Join(p.dir, name+".svg"), c.SVG)
}

// xs are the settings.
func (r *result) xs() (out []float64) {
	for _, p := range r.points {
		out = append(out, p.x)
	}
	return out
}

// value of a metric for people.
func value(metric string, v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case measure.About(metric).Unit == measure.Seconds && v < 1:
		return fmt.Sprintf("%.3g ms", 1000*v)
	case measure.About(metric).Unit == measure.Seconds:
		return fmt.Sprintf("%.3g s", v)
	case measure.About(metric).Unit == measure.Share:
		return fmt.Sprintf("%.4f", v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// estimate is a mean with half of its interval.
func estimate(metric string, e measure.Estimate) string {
	text := value(metric, e.Mean)
	if half := e.High - e.Mean; half > e.Mean/1000 {
		return text + " ± " + value(metric, half)
	}
	return text
}

// first are the mechanisms that figures name, in this order, as long as there is room.
func first(names []string) (out []string) {
	for _, m := range append([]string{ours, "central", "spillback", "omega", "two-level"}, names...) {
		if slices.Contains(names, m) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
