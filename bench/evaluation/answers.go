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
	p.say("The best baseline is chosen anew for every metric and load, out of all planners, after the fact: what is asked of ours is to " +
		"beat\n")
	p.say("whichever planner happens to be best there. Seeds differ by a factor and more, because the log's bursts do; so ours are " +
		"compared by\n")
	p.say("their *ratio* to the baseline on each seed, and the mean of ratios is the geometric one. Shares of the bound are compared by " +
		"difference.\n\n")
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
	p.say("%s\n\n| %s | mechanism | value | best baseline | its value | %s, 95%% interval | |\n|---|---|---|---|---|---|---|\n", title,
		r.axis.Label, by(metric, "ours", "baseline"))
	for i, x := range r.xs() {
		for _, m := range []string{sja, jasda} {
			own := r.values(x, m, metric)
			best, values := r.best(x, metric, except)
			text, how := compare(metric, own, values)
			p.say("| %s | %s | %s | %s | %s | %s | %s |\n", r.pointName(i, x), m, mean(metric, own), best, mean(metric, values), text,
				verdict(m, how))
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
	p.say("The same at load %s, with the best of the planners that never stop running work, as ours do not: all but %s.\n\n", usualLoad,
		strings.Join(stopping(), ", "))
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
		p.say("**%s against the planners.** Every point of every study below at which some baseline is better, seed by seed, in one of "+
			"the metrics above.\n\n", m)
		p.say("| study | point | metric | %s | best baseline | its value | %s / baseline, or less it |\n|---|---|---|---|---|---|---|\n", m,
			m)
		for i := range done {
			p.lost(&done[i], m)
		}
		p.say("\n")
	}
	p.say("**All other metrics, jasda against the planners**: where the best planner of that metric is better, with the ratio, or for " +
		"shares the\n")
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
				p.say("| %s | %s | %s | %s | %s | %s | %s |\n", r.name, r.pointName(j, x), measure.About(metric).Title, mean(metric, own),
					best, mean(metric, values), text)
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

- *Who stops running work* (srpt, las, migrate) gives a slice to a short job in the instant in which it comes. Ours wait for a window, for half of
  a piece on average, and for all of a rigid job. So the shortest jobs end a little sooner under srpt (completion per work), the more so in a calm
  cluster, where nothing else makes anybody wait. A shorter horizon buys part of that back for overhead (Horizon). srpt needs jobs that can be stopped at any
  moment.
- *The last jobs* (p99, makespan). Shortest first is paid for by the longest jobs, under ours as under sjf and srpt; first come, conservative and
  fair end them sooner, and the mean job several times later (Objectives).
- *Memory utilization and fragmentation.* Ours take the slice on which a job is fast for what the slice is, not the one that it fills.
  More work is done so (share of the bound), with less memory held.
- *Overhead.* Who cuts jobs pays a restore and a checkpoint for a piece; planners that stop nothing pay neither.
- *Gangs.* A place for a gang is kept while its slices come free one by one, which costs a little of what shortest-first without places has. And the planners
  refuse a gang that is wider than every class; ours run it on slices of several, where the slowest holds all the others up.

jasda and sja under one objective decide alike where all jobs are in one queue: bids go by the index that is sja's order, and windows have no known end, so that the best plan for
one is a single piece. Variants, exclusivity, rounds, payments and joint clearing change little or nothing, as the tables of JASDA's settings say; what they
are worth where gaps end is in [leftover.md](leftover.md). Among several queues jasda's bids count as far as their queue has credits left, which costs a
tenth of the mean and helps no queue by the measures here (Objectives, Queues that share fairly). Score times duration is worse: the longest pieces win. Under fair the weights decide, and a job's own
score counts for a quarter: what a group gains by declaring the highest score for everything is in the table (Calibration, and liars) and in
[incentives.md](incentives.md). Under shortest it counts for nothing.

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
	metrics := []string{measure.Awards, measure.Rounds, measure.VariantsPerAward, measure.MessagesPerAward, measure.Subjobs,
		measure.MessagesPerTask}
	p.say("What jasda's negotiation costs, where all jobs answer for themselves (with agents: see External jobs). At about so many jobs " +
		"that have\n")
	p.say("not begun: jobs x mean wait / makespan (Little's law). Processor time is no result of a simulation: `go test -bench " +
		"Negotiation\n")
	p.say("./internal/lab/scenario` gives that of an award with all that belongs to it, and `go test -bench . "+
		"./internal/core/market/...` its parts.\n\n| %s | waiting |", r.axis.Label)
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
