package main

import (
	"strconv"
	"strings"
	"time"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// study varies one setting of the base scenario.
type study struct {
	name, title string
	// question is what the reader is to look for.
	question string
	axis     report.Axis
	// generated: it runs on generated work, whether there are traces or not. traced: it needs traces, and is left out where there are none.
	generated, traced bool
	// every: it says who is better than whom, and takes all seeds; the others vary a setting, and take the first fewSeeds.
	every  bool
	points []point
	// mechanisms that run at every point, with commas between.
	mechanisms string
	// usualPoint is the label of the point that is the default, with which the others are compared; empty for none.
	usualPoint string
	// paired are the metrics of that comparison; none for those that matter most.
	paired []string
	// charts are the metrics drawn, table those in the page's table.
	charts, table []string
	// frontier are the pairs of metrics that are drawn against each other at every point.
	frontier [][2]string
}

// point is one setting. In paths, WORK. stands for where the work stands in the scenario.
type point struct {
	label string
	x     float64
	sets  []strict.Set
}

const (
	mainStudy = "load"
	// fewSeeds of those that were asked for are enough for a setting.
	fewSeeds = 5
	// usualLoad is that of the base scenario.
	usualLoad = "0.9"
)

// Whom a study compares: ours and every planner; ours beside the baselines that turn out hardest to beat; sja beside them;
// sja alone. byLength are the baselines that take jobs by what they are, whether they stop work or not.
const (
	byLength  = "sjf,sjf-easy,easy-sjbf,wspt,saf,f1,wfp3,srpt,las"
	everybody = "sja,jasda,all"
	tough     = "sja,jasda,easy,conservative,bestfit,migrate," + byLength
	sjaTough  = "sja,easy,conservative,bestfit,migrate," + byLength
	ours      = "sja"
)

// objectives are ours under each policy.
func objectives() string {
	var names []string
	for _, m := range []string{sja, jasda} {
		for _, p := range policies.Names() {
			names = append(names, m+":"+p)
		}
	}
	return strings.Join(names, ",")
}

// frontiers are what is gained at the cost of the mean completion: for the last jobs, for small queues, for the work done.
func frontiers() (pairs [][2]string) {
	for _, y := range []string{measure.CompletionP99, measure.Fairness, measure.BoundShare} {
		pairs = append(pairs, [2]string{measure.CompletionMean, y})
	}
	return pairs
}

// swept makes the points of a setting. Values are as the scenario file has them, and numbers for the axis.
func swept(path string, values ...string) (list []point) {
	for i, v := range values {
		list = append(list, point{label: path + "=" + v, x: position(v, i), sets: []strict.Set{{Path: path, Value: v}}})
	}
	return list
}

// position of a value on an axis: seconds, a share, a number; or its place where it is a word.
func position(v string, i int) float64 {
	if d, err := time.ParseDuration(v); err == nil {
		return d.Seconds()
	}
	if n := len(v) - 1; n > 0 && v[n] == '%' {
		if x, err := strconv.ParseFloat(v[:n], 64); err == nil {
			return x / 100
		}
	}
	if x, err := strconv.ParseFloat(v, 64); err == nil {
		return x
	}
	return float64(i)
}

// with sets more at every point.
func with(points []point, more ...strict.Set) []point {
	for i := range points {
		points[i].sets = append(points[i].sets, more...)
	}
	return points
}

// pairs sets two paths to the same value: r and k are swept together.
func pairs(a, b string, values ...string) []point {
	points := swept(a, values...)
	for i := range points {
		points[i].sets = append(points[i].sets, strict.Set{Path: b, Value: values[i]})
	}
	return points
}

// log is arrivals of another log than Philly's.
func log(name, arrivals string) point {
	return point{label: name, sets: []strict.Set{{Path: "WORK.arrivals", Value: arrivals}}}
}

// tight is memory that fits the slices of the second size or does not, by chance, under one accepted chance of an excess after the other.
func tight() []point {
	return with(swept("mechanism.theta", "0.1%", "1%", "5%", "20%"),
		strict.Set{Path: "WORK.arrivals", Value: "{format: philly, file: philly/philly_sep-oct.csv.gz, resample: true, memory: 8.8GiB}"},
		strict.Set{Path: "WORK.noise", Value: "8%"}, strict.Set{Path: "WORK.atomizable", Value: "100%"})
}

// costs are what a piece costs, to ours and to a planner that preempts.
func costs() (list []point) {
	for _, p := range pairs("WORK.restore", "WORK.checkpoint", "500ms", "5s", "17500ms", "60s", "150s") {
		v := p.sets[0].Value
		list = append(list, with([]point{p}, strict.Set{Path: "mechanism.restore", Value: v},
			strict.Set{Path: "mechanism.checkpoint", Value: v})...)
	}
	return list
}

// windows are time-bounded by reservations: from none to a drain of half of the small slices every hour.
func windows() []point {
	list := []point{{label: "none", x: 0}}
	for _, every := range []struct {
		label string
		x     float64
		text  string
	}{
		{"10 minutes in 4 hours", 10.0 / 240, "[{kind: maintenance, slices: n-2, start: 1h, for: 10m, every: 4h}]"},
		{"20 minutes in 2 hours", 20.0 / 120, "[{kind: maintenance, slices: n-2, start: 1h, for: 20m, every: 2h}]"},
		{"20 minutes in an hour", 20.0 / 60, "[{kind: maintenance, slices: n-2, start: 1h, for: 20m, every: 1h}]"},
	} {
		list = append(list, point{label: every.label, x: every.x, sets: []strict.Set{{Path: "cluster.reservations", Value: every.text}}})
	}
	return list
}

func studies() []study {
	share := func(label string) report.Axis { return report.Axis{Label: label, Unit: measure.Share} }
	plain := func(label string) report.Axis { return report.Axis{Label: label, Unit: measure.Plain} }
	seconds := func(label string) report.Axis { return report.Axis{Label: label, Unit: measure.Seconds, Log: true} }
	headline := []string{"completionMean", "completionPerWork", "usefulWork", "boundShare"}
	wide := []string{"waitMean", "waitP95", "completionMean", "completionOverBound", "completionPerWork", "usefulUtilization", "boundShare",
		"overheadShare", "fairness"}
	own := []string{"waitMean", "completionMean", "completionOverBound", "completionPerWork", "usefulUtilization", "boundShare",
		"overheadShare", "lostShare", "memoryExcessRate", "subjobs", "messagesPerTask"}
	return append([]study{
		{
			name: mainStudy, every: true, title: "Load", axis: plain("load"), mechanisms: everybody, charts: headline, table: wide,
			question: "How much work is offered, against all the cluster could do. Half of the jobs may be cut; the planners run every " +
				"job as one block.",
			points: swept("WORK.load", "0.5", "0.7", "0.8", "0.9", "1", "1.2"),
		},
		{
			name: "poisson", every: true, title: "Load without bursts", axis: plain("load"), generated: true, mechanisms: tough,
			charts: headline, table: wide,
			question: "How much of it is owed to Philly's bursts? The same on generated work (synthetic-mig) with Poisson arrivals.",
			points:   with(swept("WORK.load", "0.5", "0.7", "0.9", "1.2"), strict.Set{Path: "WORK.arrivals", Value: "{poisson: 10m}"}),
		},
		{
			name: "atomizable", every: true, title: "Share of jobs that may be cut", axis: share("atomizable"), mechanisms: everybody,
			charts: headline, table: wide,
			question: "The first axis of every result: what is gained when only some owners can let their jobs be cut. At 0% nothing is " +
				"cut, and ours are one more backfill.",
			points: swept("WORK.atomizable", "0%", "10%", "20%", "50%", "100%"),
		},
		{
			name: "logs", every: true, title: "Logs that nothing was chosen on", axis: places("log"), traced: true, mechanisms: tough +
				",fcfs", table: wide,
			question: "Every setting of ours was chosen on stretches of Philly's log and on generated work. These other logs were not " +
				"looked at before: arrivals and run times are theirs, stretched to the same load on the same slices; programs, memory " +
				"and who may be cut are as ever. In the log of HPC2N the walltimes of rigid jobs are what its users asked for; eight of " +
				"its processors are a GPU. That of Helios has no jobs: they are those by which its numbers of running jobs grow, with " +
				"Philly's durations. openb's run times are of a sample.",
			points: numbered(
				point{label: "philly"},
				log("hpc2n", "{format: swf, file: swf/hpc2n.swf.gz, processorsPerGPU: 8}"),
				log("openb", "{format: openb, file: openb/openb_pod_list_default.csv.gz}"),
				log("helios", "{format: helios, file: helios/Earth_vc6YE_cluster_sequence_vc.csv.gz}"),
			),
		},
		{
			name: "overhead", title: "Cost of a restore and of a checkpoint", axis: seconds("r and k, each"),
			mechanisms: "sja,easy,migrate," + byLength, charts: headline, table: own,
			question: "Every piece but the first restores, every piece but the last checkpoints. Planners that stop nothing pay " +
				"neither; migrate, srpt and las pay both for a preemption.",
			points: costs(),
		},
		{
			name: "time-error", title: "Errors of declared run times", axis: plain("sigma of the logarithm"), mechanisms: sjaTough,
			charts: []string{"completionMean", "completionPerWork"}, table: own,
			question: "Owners are off by a factor exp(sigma z). Walltimes of rigid jobs are never below the truth; run times of jobs " +
				"that may be cut are off both ways and are learned.",
			points: swept("WORK.timeError.sigma", "0", "0.25", "0.5", "1"),
		},
		{
			name: "memory-error", title: "Errors of declared memory", axis: plain("bias of the logarithm"), mechanisms: sjaTough,
			charts: []string{"memoryExcessRate", "completionPerWork"}, table: own,
			question: "Below 0 owners declare too little: subjobs are killed for it, and profiles are raised.",
			points:   swept("WORK.memoryError.bias", "-0.3", "-0.15", "0", "0.15", "0.3"),
		},
		{
			name: "tau-min", title: "The least useful piece (tau_min)", axis: seconds("tau_min"), mechanisms: ours,
			charts: []string{"completionMean", "overheadShare"}, table: own,
			question: "0 is the core's rule: (r+k)(1-o_max)/o_max, which is 315 s for r+k of 35 s and 10%.",
			points:   swept("mechanism.tauMin", "0s", "60s", "120s", "600s", "1800s"),
		},
		{
			name: "theta", title: "The accepted chance of an excess (theta)", axis: share("theta"), traced: true, mechanisms: sjaTough,
			charts: []string{"memoryExcessRate", "completionMean"}, table: own,
			question: "What is promised, against what happens, where it binds: every job needs 8.8 GiB of memory, give or take 8% from " +
				"run to run, and the slices of the second size have 9.75. All jobs may be cut here.",
			points: tight(),
		},
		{
			name: "horizon", title: "Horizon: the longest piece", axis: seconds("horizon"), mechanisms: ours,
			charts: []string{"completionMean", "completionPerWork"}, table: own,
			question: "A short horizon shares the slices in time and pays for it in overhead, unless a running piece may go on.",
			points:   swept("mechanism.horizon", "10m", "30m", "1h", "4h", "24h"),
		},
		{
			name: "continuation", title: "Continuation", axis: plain("continue"), mechanisms: ours,
			charts: []string{"overheadShare", "completionPerWork"}, table: own,
			question: "Whether a running piece may be given the window behind its own (1) or not (0).",
			points:   swept("mechanism.continue", "false", "true"),
		},
		{
			name: "objectives", every: true, title: "Objectives", axis: plain("load"), mechanisms: objectives() + ",all",
			frontier: frontiers(), table: append([]string{"completionP99", "worstQueue"}, wide...),
			question: "What each of the market's objectives reaches beside every planner: no one is the best in all. Jobs are in the " +
				"trace's own queues, which share equally; the planners know no queues. No job has a deadline here, so that deadline " +
				"falls to its second key. The line joins those that none betters in both measures.",
			points: with(swept("WORK.load", "0.5", "0.9", "1.2"), strict.Set{Path: "WORK.queue", Value: `""`}),
		},
		{
			name: "gangs", every: true, title: "Jobs with several GPUs", axis: plain("left out, split, gangs"), mechanisms: tough,
			charts: headline, table: wide,
			question: "Left out (0), split into jobs with one slice (1), or run as gangs that hold as many slices at once (2): a " +
				"blocked gang's place is reserved, and the windows before it have an end. All slices are on one node here, since ours " +
				"place a gang on one.",
			points: func() []point {
				list := swept("WORK.multi", "drop", "split", "gang")
				for i := range list {
					list[i].x = float64(i)
				}
				return with(list, strict.Set{Path: "cluster.nodes",
					Value: `[{name: n, gpus: "sim:a100-40gb=8,layout=3g.20gb+2g.10gb+2x1g.5gb"}]`})
			}(),
		},
		{
			name: "queues", every: true, title: "Queues that share fairly", axis: plain("one queue, the trace's own"),
			mechanisms: "sja:fair,sja:fifo,jasda,easy,migrate," + byLength,
			charts:     []string{"fairness", "completionPerWork"}, table: append([]string{"worstQueue"}, wide...),
			question: "All jobs in one queue (0), as everywhere else on this page, or in the trace's own queues (1) with equal weights. " +
				"The planners know no queues. Policy fair serves the queue that has had least so far: that helps small queues and costs " +
				"the mean.",
			points: []point{
				{label: "one queue", x: 0},
				{label: "the trace's own", x: 1, sets: []strict.Set{{Path: "WORK.queue", Value: `""`}}},
			},
		},
		{
			name: "windows", title: "Windows that end at maintenance", axis: share("time reserved on half of the GPUs"), mechanisms: ours,
			charts: []string{"completionMean", "completionPerWork"}, table: own,
			question: "Maintenance that comes again and again on half of the GPUs. The planners know pools of devices and no calendars, " +
				"so sja is compared with itself; the bound does not know the maintenance either.",
			points: windows(),
		},
	}, jasdaStudies()...)
}
