package forecast

import (
	"cmp"
	"math"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/carma"
	"sluice.dev/sluice/internal/lab/trace/miso"
)

// job is one job with a known peak; all in MiB.
type job struct {
	template string
	peak     int64
	// estimate of its owner, trace.Unknown if there is none.
	estimate int64
}

const (
	// card is what the jobs ran on, an A100 of 40 GiB: what is allocated where nothing is known.
	card int64 = 40 << 10
	// context is what a process takes of a GPU before it has done anything, roughly.
	context int64 = 512
	// orders in which each set of jobs is played.
	orders = 400
	// warm is how many jobs are seen before the first is judged: enough for theta .05.
	warm = 19
)

// Line is one rule on one set of jobs.
type Line struct {
	Data, Rule string
	// Theta that was asked for, in percent; 0 for a rule that knows none.
	Theta float64
	// Listed: the jobs came in the order of the file, else in random orders.
	Listed bool
	// Jobs in the set, and those that were seen before the first was judged.
	Jobs, Seen int
	Score
	// OK is that in random orders, which are exchangeable, no more than theta are passed but for three standard deviations of
	// as many jobs as there were orders. It is true where nothing is promised.
	OK bool
}

// Jobs judges the rules on the published footprints below a folder. The error is of kind NotFound or Invalid.
func Jobs(dir string) ([]Line, error) {
	var lines []Line
	misoJobs, err := readMISO(filepath.Join(dir, "miso", "miso_mig_iter_summary.csv"))
	if err != nil {
		return nil, err
	}
	carmaJobs, err := readCARMA(filepath.Join(dir, "carma", "ehsan-summary.csv"))
	if err != nil {
		return nil, err
	}
	lines = append(lines, compare("miso", misoJobs)...)
	lines = append(lines, compare("carma", carmaJobs)...)
	var estimated []job
	for _, j := range carmaJobs {
		if j.estimate != trace.Unknown {
			estimated = append(estimated, j)
		}
	}
	lines = append(lines, estimates("carma, with estimates", estimated)...)
	return append(lines, templates("miso, by model", misoJobs)...), nil
}

func readMISO(file string) (jobs []job, err error) {
	type config struct {
		model string
		batch int64
	}
	seen := map[config]bool{}
	err = trace.Each(miso.Format(), file, func(r *trace.Record) error {
		m := r.Measurement
		if c := (config{m.Program, m.Batch}); !seen[c] {
			seen[c] = true
			jobs = append(jobs, job{m.Program, m.Memory, trace.Unknown})
		}
		return nil
	})
	return jobs, enough(jobs, file, err)
}

func readCARMA(file string) (jobs []job, err error) {
	err = trace.Each(carma.Format(), file, func(r *trace.Record) error {
		jobs = append(jobs, job{r.Footprint.Program, r.Footprint.Peak, r.Footprint.Estimate})
		return nil
	})
	return jobs, enough(jobs, file, err)
}

func enough(jobs []job, file string, err error) error {
	if err == nil && len(jobs) <= warm {
		return errkind.Errorf(errkind.Invalid, "%s: %d jobs: want more than %d, which are seen before the first is judged", file, len(jobs),
			warm)
	}
	return err
}

// rule bounds the next job from those before it; ok is false where it has no bound and the whole card is taken.
type rule struct {
	name  string
	theta int64
	bound func(before []job, next job) (bound int64, ok bool)
}

// statistic is the order statistic of of over the jobs before.
func statistic(theta int64, of func(job) int64, before []job) (int64, bool) {
	var s forecast.Sample
	for _, j := range before {
		s.Add(of(j))
	}
	return s.Upper(theta)
}

func peakOf(j job) int64 { return j.peak }

func wholeCard() rule {
	return rule{"the whole card", 0, func([]job, job) (int64, bool) { return card, true }}
}

func mostSoFar(percent int64, name string) rule {
	return rule{name, 0, func(before []job, _ job) (int64, bool) {
		most := int64(0)
		for _, j := range before {
			most = max(most, j.peak)
		}
		return min(card, most*percent/100), len(before) > 0
	}}
}

func learned(theta int64) rule {
	return rule{"order statistic", theta, func(before []job, _ job) (int64, bool) { return statistic(theta, peakOf, before) }}
}

// compare judges the rules of which a queue is capable that knows nothing of its jobs but the peaks of those before.
func compare(data string, jobs []job) []Line {
	rules := []rule{wholeCard(), mostSoFar(100, "most so far"), mostSoFar(120, "most so far x 1.2"), learned(50_000), learned(100_000),
		learned(200_000)}
	lines := play(data, jobs, rules, warm, false)
	return append(lines, play(data, jobs, []rule{learned(50_000), learned(100_000), learned(200_000)}, warm, true)...)
}

// estimates judges what can be made of an estimate that is not to be trusted.
func estimates(data string, jobs []job) []Line {
	if len(jobs) <= warm {
		return nil
	}
	shortfall := func(j job) int64 { return j.peak - j.estimate }
	share := func(j job) int64 { return j.peak * forecast.One / (j.estimate + context) }
	rules := []rule{
		{"the estimate", 0, func(_ []job, next job) (int64, bool) { return next.estimate, true }},
		{"the estimate x 1.2", 0, func(_ []job, next job) (int64, bool) { return next.estimate * 12 / 10, true }},
	}
	for _, theta := range []int64{50_000, 100_000, 200_000} {
		rules = append(rules, rule{"the estimate + order statistic of what it lacked", theta, func(before []job, next job) (int64, bool) {
			add, ok := statistic(theta, shortfall, before)
			return min(card, max(0, next.estimate+add)), ok
		}}, rule{"the estimate and 512 MiB, x order statistic", theta, func(before []job, next job) (int64, bool) {
			factor, ok := statistic(theta, share, before)
			return min(card, quantity.MulDiv(next.estimate+context, factor+1, forecast.One)), ok
		}})
	}
	return append(play(data, jobs, rules, warm, false), play(data, jobs, rules[2:], warm, true)...)
}

// templates judges each template by itself.
func templates(data string, jobs []job) []Line {
	const theta = 250_000
	seen := forecast.LeastRuns(theta)
	own := func(r rule) rule {
		return rule{r.name, r.theta, func(before []job, next job) (int64, bool) {
			var same []job
			for _, j := range before {
				if j.template == next.template {
					same = append(same, j)
				}
			}
			if len(same) < seen {
				return card, false
			}
			return r.bound(same, next)
		}}
	}
	lines := play(data, jobs, []rule{own(mostSoFar(100, "most so far")), own(mostSoFar(120, "most so far x 1.2")), own(learned(theta)),
		own(wholeCard())}, 0, false)
	for i := range lines {
		lines[i].Seen = seen
	}
	return lines
}

// play judges rules on the jobs behind the first few of each order. A rule is judged only where it has a bound.
func play(data string, jobs []job, rules []rule, seen int, listed bool) []Line {
	lines := make([]Line, len(rules))
	for i, r := range rules {
		lines[i] = Line{Data: data, Rule: r.name, Theta: float64(r.theta) / 1e4, Listed: listed, Jobs: len(jobs), Seen: seen}
	}
	order := make([]job, len(jobs))
	for n := range orders {
		copy(order, jobs)
		if listed {
			if n > 0 {
				break
			}
		} else {
			rng := prng.New(prng.Name("forecast"), uint64(n))
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for at := seen; at < len(order); at++ {
			for i, r := range rules {
				if bound, ok := r.bound(order[:at], order[at]); ok {
					lines[i].add(bound, order[at].peak)
				}
			}
		}
	}
	for i := range lines {
		l := &lines[i]
		theta := l.Theta / 100
		l.OK = l.Theta == 0 || listed || l.UnderRate()/100 <= theta+
			3*math.Sqrt(theta*(1-theta)/float64(cmp.Or(min(l.Predictions, orders), 1)))
	}
	return lines
}
