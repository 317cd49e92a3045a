package main

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
)

// answer is the main table: both of ours against the best baseline at every load, for the metrics that matter most.
func (p *page) answer(r *result) {
	p.say("## Against the best baseline, by load\n\n")
	p.say("The best baseline is chosen anew for every metric and load, out of all planners, after the fact: what is asked of ours is to beat\n")
	p.say("whichever planner happens to be best there. Seeds differ by a factor and more, because the log's bursts do; so ours are compared by\n")
	p.say("their *ratio* to the baseline on each seed, and the mean of ratios is the geometric one. Shares of the bound are compared by difference.\n\n")
	for _, metric := range decisive() {
		way := "less is better"
		if measure.About(metric).Better == measure.Higher {
			way = "more is better"
		}
		p.against(r, fmt.Sprintf("**%s** (%s)", measure.About(metric).Title, way), metric, nil)
	}
}

// against is a row for each point of a study and each of ours, beside the best baseline but some.
func (p *page) against(r *result, title, metric string, except []string) {
	p.say("%s\n\n| %s | mechanism | value | best baseline | its value | %s, 95%% interval | |\n|---|---|---|---|---|---|---|\n", title, r.axis.Label, by(metric, "ours", "baseline"))
	for i, x := range r.xs() {
		for _, m := range []string{sja, jasda} {
			own := r.values(x, m, metric)
			best, values := r.best(x, metric, except)
			text, how := compare(metric, own, values)
			p.say("| %s | %s | %s | %s | %s | %s | %s |\n", r.pointName(i, x), m, mean(metric, own), best, mean(metric, values), text, verdict(m, how))
		}
	}
	p.say("\n")
}

// ours compares jasda with sja wherever both ran.
func (p *page) ours(done []result) {
	p.say("## JASDA against SJA\n\nThe same jobs on the same seeds, at every point of every study in which both ran.\n\n")
	p.say("| study | point |")
	for _, metric := range decisive() {
		p.say(" %s: %s |", measure.About(metric).Title, by(metric, jasda, sja))
	}
	p.say("\n|---|---|%s\n", strings.Repeat("---|", len(decisive())))
	for i := range done {
		r := &done[i]
		for j, x := range r.xs() {
			if len(r.values(x, jasda, measure.WaitMean)) == 0 || len(r.values(x, sja, measure.WaitMean)) == 0 {
				continue
			}
			p.say("| %s | %s |", r.name, r.pointName(j, x))
			for _, metric := range decisive() {
				text, how := compare(metric, r.values(x, jasda, metric), r.values(x, sja, metric))
				p.say(" %s |", strings.TrimSuffix(text+", "+how, ", "+alike))
			}
			p.say("\n")
		}
	}
	p.say("\n")
}

// unstopped compares with the planners that, like ours, never stop running work: by the share of jobs that may be cut.
func (p *page) unstopped(done []result) {
	i := slices.IndexFunc(done, func(r result) bool { return r.name == "atomizable" })
	if i < 0 {
		return
	}
	p.say("## Against planners that stop nothing, by the share of jobs that may be cut\n\n")
	p.say("The same at load %s, with the best of the planners that never stop running work, as ours do not: all but %s.\n\n", usualLoad, strings.Join(stopping(), ", "))
	for _, metric := range []string{measure.CompletionMean, measure.CompletionPerWork} {
		p.against(&done[i], "**"+measure.About(metric).Title+"**", metric, stopping())
	}
}

// stopping are the baselines that stop running work.
func stopping() (names []string) {
	for _, k := range planners.Kinds() {
		if k.Preempts {
			names = append(names, k.Name)
		}
	}
	return names
}

// losses lists every point of every study at which the best baseline is better than one of ours, and at which jasda is worse
// than sja.
func (p *page) losses(done []result) {
	p.say("## Where they lose\n\n")
	for _, m := range []string{sja, jasda} {
		p.say("**%s against the planners.** Every point of every study below at which some baseline is better, seed by seed, in one of the metrics above.\n\n", m)
		p.say("| study | point | metric | %s | best baseline | its value | %s / baseline, or less it |\n|---|---|---|---|---|---|---|\n", m, m)
		for i := range done {
			p.lost(&done[i], m)
		}
		p.say("\n")
	}
	p.say("**All other metrics, jasda against the planners**: where the best planner of that metric is better, with the ratio, or for shares the\n")
	p.say("difference, and its interval. Of some thousand comparisons one in forty is here by chance.\n\n")
	p.worst(done, func(r *result, x float64, metric string) []float64 {
		if slices.Contains(decisive(), metric) {
			return nil
		}
		_, values := r.best(x, metric, nil)
		return values
	})
	p.say("**All metrics, jasda against sja**: where sja is better.\n\n")
	p.worst(done, func(r *result, x float64, metric string) []float64 { return r.values(x, sja, metric) })
	p.say("%s", reasons)
}

// lost lists the points of a study at which the best baseline is better, in the metrics that matter most.
func (p *page) lost(r *result, m string) {
	for j, x := range r.xs() {
		for _, metric := range decisive() {
			own := r.values(x, m, metric)
			best, values := r.best(x, metric, nil)
			if len(own) == 0 || len(values) == 0 {
				continue
			}
			if text, how := compare(metric, own, values); how == worse {
				p.say("| %s | %s | %s | %s | %s | %s | %s |\n", r.name, r.pointName(j, x), measure.About(metric).Title, mean(metric, own), best, mean(metric, values), text)
			}
		}
	}
}

// worst is a row for each study and metric in which jasda is worse than others somewhere.
func (p *page) worst(done []result, others func(r *result, x float64, metric string) []float64) {
	p.say("| study | metric | points |\n|---|---|---|\n")
	for i := range done {
		r := &done[i]
		for _, metric := range judged() {
			var points []string
			for j, x := range r.xs() {
				own, values := r.values(x, jasda, metric), others(r, x, metric)
				if len(own) == 0 || len(values) == 0 {
					continue
				}
				if text, how := compare(metric, own, values); how == worse {
					points = append(points, r.pointName(j, x)+": "+text)
				}
			}
			if len(points) > 0 {
				p.say("| %s | %s | %s |\n", r.name, measure.About(metric).Title, strings.Join(points, "; "))
			}
		}
	}
	p.say("\n")
}

// reasons for the losses.
const reasons = `Why:

- *Nothing to cut.* Where few jobs may be cut ours are one more backfill: they serve rigid jobs as EASY does. conservative plans every
  job where it would end first and leaves a slow slice idle for it; that costs utilization and wins time.
- *Stopping against not stopping.* migrate stops running work in the instant in which a short job comes; sja waits for the end of a
  window, for half of the horizon on average. Where there are always windows about to end (bursts, queues) that matters little; in a
  calm cluster it is most of the wait. A shorter horizon buys it back for overhead (see Horizon). migrate needs jobs that can be
  stopped at any moment, and is told everything for nothing.
- *Shortest first.* Planners that take whole jobs by declared length (sjf, saf; srpt, which also stops work) end jobs much sooner than ours, in the
  mean and for their work, and come within one and a half to two times of what no schedule betters. Ours give time to who has had
  little: jobs begin soon, and then share the slices, piece by piece, with all others that have begun. jasda still
  begins jobs soonest where they come in bursts; it does not end them soonest. las, which knows no lengths and shares time as well, has the same shape as sja.
  The price of shortest first is paid in waits of the longest jobs (wait, p99: days), which end no later for it than under ours.
- *Gangs.* A planner gives a gang slices of one class and refuses one that is too wide for every class; ours take any slices
  of the node, also for those too wide, and the slowest of them holds all the others up. And gangs go before the market: where
  they are most of the work, jobs that may be cut run in what they leave.
- *Share of the bound.* It is measured at the end of arrivals. A mechanism that takes the large jobs first has less left over then;
  sja under fair and jasda take those who have had least.
- *jasda against sja.* It cuts jobs into more pieces, and pays a restore and a checkpoint for each: more overhead, and a little less of
  the slices' time is useful. Where these cost a minute and more it has nothing left to gain in waits. Those that it puts off
  wait longer than under sja (wait, p99).
- *Long jobs.* A piece that ends its job soon goes before one of a long job: the longest completions (p99) are well above those of the best
  planner, under jasda as under sja.

What jasda's lead is owed to, as the studies of its settings show on the traces:

- *Its order.* It serves jobs that have had little, in pieces that give the slice back soon or end their job. Rigid jobs bid too, as a
  whole: so it leads also where nothing may be cut. Planners that take jobs by their length have most of this lead, without any
  market. With the weights of the definition's example (time, memory, age) the lead over sja is gone (What the system values).
- *What owners declare.* What is short is so by declared run times. Errors of them cost some of the lead in waits, and little in completion
  (Errors of declared run times, JASDA).
- *Several variants*, for the waits: with one for each window jobs wait almost twice as long in the mean of three seeds that differ too much
  to be sure, and end as soon (V_max).
- *Score, and not score x duration* (T2): times the duration the longest pieces win, which is what brevity is there to prevent. So score is the
  default.
- *No queue by waiting.* After an hour nearly everybody has waited too long, and whoever goes first by that rule goes by no score (T3): so
  the rule is a last resort after three days, which hardly anybody reaches here (T_starve).
- *Hardly clearing.* Most windows here have no known end, everybody's variants begin where the window does, and the best plan is one
  variant. So exclusivity, further rounds and payments (all jobs are in one queue) change nothing, and joint clearing next to nothing.
  Plans matter where windows have an end (What becomes of the later part of a plan).

And lying pays: a group that declares the highest score for everything waits less, believed or not. Calibration takes part of what it
gains in completion, and the others end later for it (Calibration, and liars).

`

// usual compares the points of a study with the setting that is the default, seed by seed.
func (p *page) usual(r *result) {
	at := slices.IndexFunc(r.points, func(q point) bool { return q.label == r.usualPoint })
	if at < 0 {
		return
	}
	base := r.points[at].x
	p.say("Against %s, the default, seed by seed:\n\n| %s |", r.pointName(at, base), r.axis.Label)
	for _, metric := range r.paired {
		p.say(" %s: %s |", measure.About(metric).Title, by(metric, "it", "default"))
	}
	p.say("\n|---|%s\n", strings.Repeat("---|", len(r.paired)))
	for i, x := range r.xs() {
		if x == base {
			continue
		}
		p.say("| %s |", r.pointName(i, x))
		for _, metric := range r.paired {
			text, how := compare(metric, r.values(x, jasda, metric), r.values(base, jasda, metric))
			p.say(" %s |", strings.TrimSuffix(text+", "+how, ", "+alike))
		}
		p.say("\n")
	}
	p.say("\n")
}

// cost is what negotiating costs jasda at every point, beside what sja's signals cost.
func (p *page) cost(r *result) {
	metrics := []string{measure.Awards, measure.Rounds, measure.VariantsPerAward, measure.MessagesPerAward, measure.Subjobs, measure.MessagesPerTask}
	p.say("What jasda's negotiation costs, where all jobs answer for themselves (with agents: see External jobs). At about so many jobs that have\n")
	p.say("not begun: jobs x mean wait / makespan (Little's law). Processor time is no result of a simulation: `go test -bench Negotiation\n")
	p.say("./internal/lab/scenario` gives that of an award with all that belongs to it, and `go test -bench . ./internal/core/market/...` its parts.\n\n| %s | waiting |", r.axis.Label)
	for _, metric := range metrics {
		p.say(" %s |", measure.About(metric).Title)
	}
	p.say(" Messages per job, sja |\n|---|---|%s---|\n", strings.Repeat("---|", len(metrics)))
	for i, x := range r.xs() {
		jobs, waits, spans := r.values(x, jasda, measure.Jobs), r.values(x, jasda, measure.WaitMean), r.values(x, jasda, measure.Makespan)
		for j := range jobs {
			jobs[j] *= waits[j] / spans[j]
		}
		p.say("| %s | %.0f |", r.pointName(i, x), measure.Mean(jobs).Mean)
		for _, metric := range metrics {
			p.say(" %s |", mean(metric, r.values(x, jasda, metric)))
		}
		p.say(" %s |\n", mean(measure.MessagesPerTask, r.values(x, sja, measure.MessagesPerTask)))
	}
	p.say("\n")
}
