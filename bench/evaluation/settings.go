package main

import (
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// usualLambda is the default of fair.
const usualLambda = "market.lambda=0.25"

// jasdaStudies vary one setting of the market each, at the usual load, under jasda alone if they do not say otherwise.
func jasdaStudies() []study {
	table := []string{"waitMean", "waitP95", "waitP99", "completionMean", "completionOverBound", "completionPerWork", "boundShare",
		"overheadShare", "subjobs", "messagesPerAward", "variantsPerAward"}
	hourly := strict.Set{Path: "cluster.reservations", Value: "[{kind: maintenance, slices: n-2, start: 1h, for: 20m, every: 1h}]"}
	fair := strict.Set{Path: "mechanism.policy", Value: "fair"}
	list := []study{
		{
			name: "external", title: "External jobs", axis: places("who answers"),
			table: append([]string{"agentMessagesPerAward", "deniedPerAward", "missedShare"}, table...),
			question: "What it costs when every divisible job is bid for by an agent of its own, in another process: honest ones that " +
				"think for 5 ms, with 1 ms on the way of every message. An agent is asked for its job's next subjob when it is due; " +
				"only built-in jobs may go on in the window behind their own.",
			points: numbered(
				point{label: "inside"},
				point{label: "inside, 1 ms on the way", sets: []strict.Set{{Path: "model.network", Value: "{delay: 1ms}"}}},
				point{label: "agents, 1 ms on the way", sets: []strict.Set{
					{Path: "model.network", Value: "{delay: 1ms}"},
					{Path: "workload.agents", Value: "[{strategy: honest, share: 100%, think: 5ms}]"},
				}},
			),
			usualPoint: "inside",
		},
		{
			name: "lambda", title: "Whose score counts (lambda)", axis: report.Axis{Label: "lambda", Unit: measure.Share},
			question: "The share of the score that is the job's own; the rest is the system's. Under fair: where the index is weighed " +
				"it is 0.",
			points:     with(append(swept("market.lambda", "0", "0.1", "0.5", "0.8"), point{label: usualLambda, x: 0.25}), fair),
			usualPoint: usualLambda,
		},
		{
			name: "weights", title: "What the system values", axis: places("weights"),
			question: "The system's part of the score, under fair: the default, each of its parts alone, and the weights with time, " +
				"memory and age of the definition's example (20 minutes of waiting count as 1).",
			points: with(numbered(
				point{label: "default"},
				point{label: "share alone", sets: weights("{share: 1}")},
				point{label: "brevity alone", sets: weights("{brevity: 1}")},
				point{label: "time alone", sets: weights("{time: 1}")},
				point{label: "time, memory, age", sets: weights("{time: 0.4, memory: 0.2, age: 0.4}")},
			), fair),
			usualPoint: "default",
		},
		{
			name: "weigh", title: "Score, or score times duration (T2)", axis: places("weigh"),
			question: "What a variant counts for in clearing. A sum of scores prefers many short variants to a long one; times the " +
				"duration, a long one is worth as much as the short ones it keeps out.",
			points: numbered(swept("market.weigh", "score", "time")...), usualPoint: "market.weigh=score",
		},
		{
			name: "variants", title: "Variants of a job for a window (V_max)", axis: report.Axis{Label: "V_max", Unit: measure.Plain,
				Log: true},
			question: "How many are looked at. One is the longest piece alone, as in SJA.",
			points:   swept("market.variants", "1", "2", "4", "8"), usualPoint: "market.variants=4",
		},
		{
			name: "exclusive", title: "At most one variant of a job in a window", axis: places("exclusive"),
			question: "Jobs here are chains of steps, of which one piece runs at a time: the rule binds only jobs of independent items.",
			points:   numbered(swept("market.exclusive", "false", "true")...), usualPoint: "market.exclusive=false",
		},
		{
			name: "joint", title: "Windows of a node cleared together", axis: places("joint"),
			table: append([]string{"jointGain", "clearedShare"}, table...),
			question: "Windows that are open at once on one node, one after another or together. Regret is what clearing the same bids " +
				"one after another would have lost of what was sold; the share of the bound is the regret against the offline optimum.",
			points: numbered(swept("market.joint", "false", "true")...), usualPoint: "market.joint=false",
		},
		{
			name: "repack", title: "What becomes of the later part of a plan", axis: places("repack"),
			table: append([]string{"withdrawnShare"}, table...),
			question: "Announced again when its time comes (rolling), sold ahead and taken back for something better (withdraw), or " +
				"sold ahead for good (never). Half of the GPUs are under maintenance for 20 minutes in every hour: a plan reaches " +
				"beyond the next subjob only in windows that have an end.",
			points: with(numbered(swept("market.repack", "rolling", "withdraw", "never")...), hourly), usualPoint: "market.repack=rolling",
		},
		{
			name: "starve", title: "When a job has waited too long (starve)", axis: places("starve"),
			table: append([]string{"completionP99", "completionMax", "worstJob"}, table...),
			question: "Whoever has waited too long goes first, whatever its score, as long as the late have had no more than their " +
				"share. In a cluster with a backlog nearly everybody has waited for days: the larger the share and the smaller the " +
				"slowdown, the more is the rule a queue by waiting, and the score decides nothing.",
			points: numbered(append(swept("mechanism.starve", "never", "{after: 24h, slowdown: 5}", "{share: 5%}",
				"{share: 10%, slowdown: 10}"), point{label: "default"})...), usualPoint: "default",
		},
		{
			name: "rounds", title: "Rounds in one instant", axis: places("rounds"),
			question: "Whether what is left of a window is announced again in the same instant, and losers may bid again. A window that " +
				"is open now is rarely left in part: who wins it begins at once.",
			points: numbered(swept("market.rounds", "1", "3")...), usualPoint: "market.rounds=3",
		},
		{
			name: "audience", title: "How many are asked for a window", axis: report.Axis{Label: "audience", Unit: measure.Plain,
				Log: true},
			question: "Half of them the first in the policy's order, half those that have waited longest.",
			points:   swept("market.audience", "16", "64", "256", "1024"), usualPoint: "market.audience=256",
		},
		{
			name: "trust", title: "Calibration, and liars", axis: places("who bids, who is believed"),
			table: []string{"waitMean@liars", "waitMean@own", "completionMean@liars", "completionMean@own", "completionPerWork",
				"boundShare", "overheadShare", "subjobs"},
			question: "The jobs of one group, 30% of the divisible ones, have agents called liars, who declare the highest score for " +
				"everything, or are honest; the others answer for themselves. Either declarations are calibrated by what was observed, " +
				"or every one is taken at its word. What lying gains is the difference between two rows in which only it differs, for " +
				"the same jobs. Under fair, where the job's own score counts for a quarter by default (lambda .25), and more at .5; " +
				"under shortest it counts for nothing.",
			points: with(numbered(liars()...), fair), usualPoint: "honest",
			paired: []string{"waitMean@liars", "completionMean@liars", "waitMean@own", "completionMean@own", "completionPerWork"},
		},
		{
			name: "jasda-theta", title: "The accepted chance of an excess (theta), JASDA",
			axis: report.Axis{Label: "theta", Unit: measure.Share, Log: true}, traced: true,
			table: append([]string{"memoryExcessRate"}, table...), charts: []string{"memoryExcessRate", "completionMean"},
			question: "As above for sja.",
			points:   tight(), usualPoint: "mechanism.theta=1%",
		},
		{
			name: "payment", title: "What winners pay", axis: places("payment"),
			question: "Nothing, their own weight, or what their winning costs the others (VCG), in credits of their queue. All jobs are " +
				"in one queue here: it can only run out of credits, and then bids nothing.",
			points: numbered(swept("market.payment", "free", "first", "vcg")...), usualPoint: "market.payment=first",
		},
	}
	list = append(list,
		study{
			name: "jasda-overhead", title: "Cost of a restore and of a checkpoint, JASDA",
			axis:       report.Axis{Label: "r and k, each", Unit: measure.Seconds, Log: true},
			mechanisms: "sja,jasda,easy,migrate," + byLength,
			question:   "As above. JASDA cuts jobs into more pieces than SJA, and pays for each.", points: costs(),
		},
		study{
			name: "jasda-time-error", title: "Errors of declared run times, JASDA", axis: report.Axis{Label: "sigma of the logarithm",
				Unit: measure.Plain},
			mechanisms: "sja,jasda,easy,conservative,migrate," + byLength, question: "As above.",
			points: swept("WORK.timeError.sigma", "0", "0.5", "1"),
			charts: []string{"completionMean", "completionPerWork"},
		},
	)
	for i := range list {
		s := &list[i]
		if s.mechanisms == "" {
			s.mechanisms = jasda
		}
		if s.paired == nil {
			s.paired = decisive()
		}
		if s.table == nil {
			s.table = table
		}
		if s.charts == nil && (s.axis.Log || s.axis.Unit == measure.Share) { // of words there is nothing to draw
			s.charts = []string{"completionMean", "completionPerWork"}
		}
	}
	return list
}

// places is an axis of settings that are words: the first is 0.
func places(label string) report.Axis { return report.Axis{Label: label, Unit: measure.Plain} }

// numbered puts points on such an axis.
func numbered(points ...point) []point {
	for i := range points {
		points[i].x = float64(i)
	}
	return points
}

func weights(w string) []strict.Set { return []strict.Set{{Path: "market.weights", Value: w}} }

// liars are the agents of a group, lying or not, believed or not.
func liars() (list []point) {
	for _, p := range []struct{ label, strategy, trusting, lambda string }{
		{"honest", "honest", "false", ""},
		{"honest, believed", "honest", "true", ""},
		{"liars, calibrated", "inflate", "false", ""},
		{"liars, believed", "inflate", "true", ""},
		{"honest, lambda .5", "honest", "false", "0.5"},
		{"liars, calibrated, lambda .5", "inflate", "false", "0.5"},
		{"liars, believed, lambda .5", "inflate", "true", "0.5"},
	} {
		sets := []strict.Set{
			{Path: "workload.agents", Value: "[{name: liars, strategy: " + p.strategy + ", share: 30%}]"},
			{Path: "market.trusting", Value: p.trusting},
		}
		if p.lambda != "" {
			sets = append(sets, strict.Set{Path: "market.lambda", Value: p.lambda})
		}
		list = append(list, point{label: p.label, sets: sets})
	}
	return list
}
