package measure

import (
	"math"
	"strings"
)

// Names of the metrics: keys of the JSON form, headings of the CSV form. docs/metrics.md defines each.
const (
	Utilization       = "utilization"
	UsefulUtilization = "usefulUtilization"
	MemoryUtilization = "memoryUtilization"
	WaitMean          = "waitMean"
	WaitP50           = "waitP50"
	WaitP95           = "waitP95"
	WaitP99           = "waitP99"
	CompletionMean    = "completionMean"
	CompletionP50     = "completionP50"
	CompletionP95     = "completionP95"
	CompletionP99     = "completionP99"
	CompletionMax     = "completionMax"
	WorstJob          = "worstJob"
	CompletionPerWork = "completionPerWork"
	SlowdownMean      = "slowdownMean"
	Jobs              = "jobs"
	Rejected          = "rejected"
	Failed            = "failed"
	Unfinished        = "unfinished"
	// MissedDeadlines is given where a job has a deadline.
	MissedDeadlines  = "missedDeadlines"
	MemoryExcessRate = "memoryExcessRate"
	Theta            = "theta"
	Subjobs          = "subjobs"
	OverheadShare    = "overheadShare"
	LostShare        = "lostShare"
	Fragmentation    = "fragmentation"
	Unsellable       = "unsellable"
	Fairness         = "fairness"
	WorstQueue       = "worstQueue"
	MessagesPerTask  = "messagesPerTask"
	UsefulWork       = "usefulWork"
	Makespan         = "makespan"
	// BoundShare is set by who knows the bound of the whole scenario.
	BoundShare = "boundShare"
	// CompletionOverBound too.
	CompletionOverBound = "completionOverBound"
	// WaitCoverage is set of mechanisms that tell a job when it will start.
	WaitCoverage = "waitCoverage"
)

// Unit of a metric.
type Unit uint8

// The units: a plain number, seconds, a share in [0,1].
const (
	Plain Unit = iota
	Seconds
	Share
)

// Better says which way a metric improves.
type Better uint8

// The ways; Neither is for what only describes.
const (
	Neither Better = iota
	Higher
	Lower
)

// Info is what a metric is, for people.
type Info struct {
	Name, Title string
	Unit        Unit
	Better      Better
}

// deadlineTable is what is given of jobs that have one.
var deadlineTable = []Info{{MissedDeadlines, "Deadlines missed", Share, Lower}}

var infoTable = []Info{
	{Utilization, "Utilization", Share, Higher},
	{UsefulUtilization, "Useful utilization", Share, Higher},
	{MemoryUtilization, "Memory utilization", Share, Higher},
	{WaitMean, "Wait, mean", Seconds, Lower},
	{WaitP50, "Wait, p50", Seconds, Lower},
	{WaitP95, "Wait, p95", Seconds, Lower},
	{WaitP99, "Wait, p99", Seconds, Lower},
	{CompletionMean, "Completion, mean", Seconds, Lower},
	{CompletionP50, "Completion, p50", Seconds, Lower},
	{CompletionP95, "Completion, p95", Seconds, Lower},
	{CompletionP99, "Completion, p99", Seconds, Lower},
	{CompletionMax, "Completion, longest", Seconds, Lower},
	{WorstJob, "Completion per work, worst job", Plain, Lower},
	{CompletionPerWork, "Completion per work", Plain, Lower},
	{SlowdownMean, "Bounded slowdown, mean", Plain, Lower},
	{Jobs, "Jobs", Plain, Neither},
	{Rejected, "Jobs rejected", Plain, Lower},
	{Failed, "Jobs failed", Plain, Lower},
	{Unfinished, "Jobs unfinished", Plain, Lower},
	{MemoryExcessRate, "Memory excesses", Share, Lower},
	{Theta, "Memory excesses accepted", Share, Neither},
	{Subjobs, "Runs per job", Plain, Neither},
	{OverheadShare, "Overhead", Share, Lower},
	{LostShare, "Lost time", Share, Lower},
	{Fragmentation, "Fragmentation", Share, Lower},
	{Unsellable, "Idle while a job waits", Share, Lower},
	{Fairness, "Fairness of queues (Jain)", Share, Higher},
	{WorstQueue, "Completion per work, worst queue", Plain, Lower},
	{MessagesPerTask, "Messages per job", Plain, Lower},
	{UsefulWork, "Useful work", Seconds, Higher},
	{Makespan, "Makespan", Seconds, Lower},
	{WaitCoverage, "Waits within their 80% range", Share, Neither},
	{BoundShare, "Share of the bound", Share, Higher},
	{CompletionOverBound, "Completion, mean / least possible", Plain, Lower},
}

// Table lists the metrics in the order in which they are given; WaitCoverage, BoundShare and CompletionOverBound, which others set, are
// the last.
func Table() []Info { return append([]Info(nil), infoTable...) }

// About is what is known of a metric, of all jobs or of a group; a name that is in no table is its own title and a plain
// number.
func About(name string) Info {
	metric, group := Group(name)
	for _, table := range [][]Info{infoTable, negotiationTable, leftoverTable, deadlineTable, flowTable, survivalTable, visitsTable,
		lentTable, startsTable} {
		for _, i := range table {
			switch i.Name {
			case name:
				return i
			case metric:
				i.Name, i.Title = name, i.Title+" ("+group+")"
				return i
			}
		}
	}
	return Info{Name: name, Title: name}
}

// Metric is a named value; NaN if it could not be measured.
type Metric struct {
	Name  string
	Value float64
}

// Metrics are named values in a stable order, each name once.
type Metrics []Metric

// Set replaces a value, or adds it at the end.
func (m *Metrics) Set(name string, value float64) {
	for i := range *m {
		if (*m)[i].Name == name {
			(*m)[i].Value = value
			return
		}
	}
	*m = append(*m, Metric{name, value})
}

// Get is a value, NaN if there is none.
func (m Metrics) Get(name string) float64 {
	for _, v := range m {
		if v.Name == name {
			return v.Value
		}
	}
	return math.NaN()
}

// Names of the metrics of scenarios with a host; docs/metrics.md defines each.
const (
	LeftoverUseful = "leftoverUseful"
	LostWork       = "lostWork"
	HostDelayMean  = "hostDelayMean"
	GapMean        = "gapMean"
	Gaps           = "gaps"
	BacklogDry     = "backlogDry"
	CutShort       = "cutShort"
)

var leftoverTable = []Info{
	{LeftoverUseful, "Leftover time that was useful", Share, Higher},
	{LostWork, "Work thrown away", Share, Lower},
	{HostDelayMean, "Delay of the host, mean", Seconds, Lower},
	{GapMean, "Gap, mean", Seconds, Neither},
	{Gaps, "Gaps", Plain, Neither},
	{BacklogDry, "Time without a waiting filler", Share, Lower},
	{CutShort, "Subjobs cut short within a learned end", Share, Lower},
}

// LeftoverTable lists what is measured beside a host, in the order in which it is given.
func LeftoverTable() []Info { return append([]Info(nil), leftoverTable...) }

// Names of the metrics of a scenario to whose nodes guests come, given beside those of Table. docs/metrics.md defines each.
const (
	GuestsServed  = "guestsServed"
	GuestsLeft    = "guestsLeft"
	GuestWaitMean = "guestWaitMean"
)

var visitsTable = []Info{
	{GuestsServed, "Guests served", Plain, Higher},
	{GuestsLeft, "Guests who left unserved", Plain, Lower},
	{GuestWaitMean, "Wait of guests, mean", Seconds, Lower},
}

// VisitsTable lists the metrics that only a scenario with guests has, in the order in which they are given.
func VisitsTable() []Info { return append([]Info(nil), visitsTable...) }

// Names of the metrics of a scenario with pools of pilots, given beside those of Table. docs/metrics.md defines each.
const (
	PilotsAsked     = "pilotsAsked"
	PilotsGranted   = "pilotsGranted"
	PilotsRefused   = "pilotsRefused"
	PilotsPreempted = "pilotsPreempted"
	PilotsFailed    = "pilotsFailed"
	PilotTime       = "pilotTime"
	PilotUseful     = "pilotUseful"
	PilotIdle       = "pilotIdle"
	PilotStart      = "pilotStart"
	GapUseful       = "gapUseful"
)

var lentTable = []Info{
	{PilotsAsked, "Pilots asked for", Plain, Neither},
	{PilotsGranted, "Pilots granted", Plain, Neither},
	{PilotsRefused, "Pilots refused", Plain, Lower},
	{PilotsPreempted, "Pilots preempted", Plain, Neither},
	{PilotsFailed, "Pilots that failed", Plain, Lower},
	{PilotTime, "Time of pilots' slices", Seconds, Neither},
	{PilotUseful, "Pilot time that was committed", Share, Higher},
	{PilotIdle, "Pilot time that was idle", Share, Lower},
	{PilotStart, "Pilot time before it joined", Share, Lower},
	{GapUseful, "Time of hosts' gaps that was committed", Share, Higher},
}

// LentTable lists the metrics that only a scenario with pools has, in the order in which they are given.
func LentTable() []Info { return append([]Info(nil), lentTable...) }

// Names of the metrics of short tasks on lean nodes, beside MessagesPerTask; docs/metrics.md defines each.
const (
	PlacedShare  = "placedShare"
	HopsMean     = "hopsMean"
	LandingP50   = "landingP50"
	LandingP99   = "landingP99"
	LeftoverUse  = "leftoverUse"
	ZoneFairness = "zoneFairness"
	// CPUNanosPerTask is set by callers with a clock: without it a result is the same on every machine.
	CPUNanosPerTask = "cpuNanosPerTask"
)

var flowTable = []Info{
	{PlacedShare, "Tasks placed", Share, Higher},
	{HopsMean, "Nodes asked per task", Plain, Lower},
	{LandingP50, "Landing, p50", Seconds, Lower},
	{LandingP99, "Landing, p99", Seconds, Lower},
	{LeftoverUse, "Use of what rigid work leaves", Share, Higher},
	{ZoneFairness, "Evenness of zones (Jain)", Share, Higher},
	{CPUNanosPerTask, "Processor time per task, ns", Plain, Lower},
}

// FlowTable lists what is measured of short tasks, in the order in which it is given.
func FlowTable() []Info { return append([]Info(nil), flowTable...) }

// Names of the metrics of a mechanism that negotiates, given beside those of Table. docs/metrics.md defines each.
const (
	Rounds                = "rounds"
	Awards                = "awards"
	MessagesPerAward      = "messagesPerAward"
	AgentMessagesPerAward = "agentMessagesPerAward"
	VariantsPerAward      = "variantsPerAward"
	DeniedPerAward        = "deniedPerAward"
	MissedShare           = "missedShare"
	WithdrawnShare        = "withdrawnShare"
	ClearingMean          = "clearingMean"
	JointGain             = "jointGain"
	ClearedShare          = "clearedShare"
)

var negotiationTable = []Info{
	{Rounds, "Rounds", Plain, Neither},
	{Awards, "Awards", Plain, Neither},
	{MessagesPerAward, "Messages per award", Plain, Lower},
	{AgentMessagesPerAward, "Messages from and to agents per award", Plain, Lower},
	{VariantsPerAward, "Variants per award", Plain, Lower},
	{DeniedPerAward, "Variants denied per award", Plain, Lower},
	{MissedShare, "Calls not answered in time", Share, Lower},
	{WithdrawnShare, "Awards withdrawn", Share, Neither},
	{ClearingMean, "Weight of what was awarded, mean", Plain, Neither},
	{JointGain, "Regret of clearing one after another", Share, Neither},
	{ClearedShare, "Cleared, of what no plan passes", Share, Higher},
}

// NegotiationTable lists the metrics that only a mechanism that negotiates has, in the order in which they are given.
func NegotiationTable() []Info { return append([]Info(nil), negotiationTable...) }

// Names of the metrics of a scenario whose hosts' memory is modelled, given beside those of Table. docs/metrics.md defines each.
const (
	HighValueLost   = "highValueLost"
	WrongOrderKills = "wrongOrderKills"
	WorkLost        = "workLost"
	TimeOverLine    = "timeOverLine"
	Suspended       = "suspended"
	Recovered       = "recovered"
	Readdressed     = "readdressed"
	Reclaimed       = "reclaimed"
	MemoryKills     = "memoryKills"
	Stalled         = "stoodStill"
)

var survivalTable = []Info{
	{HighValueLost, "High-value subjobs lost to memory", Plain, Lower},
	{WrongOrderKills, "Kills for memory in the wrong order", Plain, Lower},
	{WorkLost, "Work lost to memory", Seconds, Lower},
	{TimeOverLine, "Time over the severe line", Seconds, Lower},
	{Stalled, "Time suspended or stalled for memory", Seconds, Lower},
	{MemoryKills, "Kills for memory", Plain, Lower},
	{Suspended, "Suspended", Plain, Neither},
	{Recovered, "Recovered in place", Plain, Neither},
	{Readdressed, "Readdressed", Plain, Neither},
	{Reclaimed, "Reclaimed", Plain, Lower},
}

// SurvivalTable lists the metrics that only a scenario with host memory has, in the order in which they are given.
func SurvivalTable() []Info { return append([]Info(nil), survivalTable...) }

// groupSign stands between a metric and the group that it is of.
const groupSign = "@"

// InGroup is the name of a metric of one group of jobs, such as waitMean@honest.
func InGroup(metric, group string) string { return metric + groupSign + group }

// Group takes the name of a metric of a group apart; group is empty for a metric of all jobs.
func Group(name string) (metric, group string) {
	metric, group, _ = strings.Cut(name, groupSign)
	return metric, group
}

// GroupTable lists the metrics that are given for every group.
func GroupTable() []string {
	return []string{Jobs, Unfinished, WaitMean, CompletionMean, CompletionPerWork, UsefulWork, Utilization}
}
