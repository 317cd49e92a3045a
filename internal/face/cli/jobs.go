package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
)

// output adds -o to a command.
func (a *app) output(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&a.format, "output", "o", "table", "the form of the answer: "+strings.Join(formats(), ", "))
	pre := c.PreRunE
	c.PreRunE = func(cmd *cobra.Command, args []string) error {
		for _, f := range formats() {
			if a.format == f {
				if pre != nil {
					return pre(cmd, args)
				}
				return nil
			}
		}
		return usage("-o %s is no form; want one of %s", a.format, strings.Join(formats(), ", "))
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

// completeJobs proposes the names of jobs, if a daemon answers at once.
func (a *app) completeJobs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	resp, err := c.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, j := range resp.Msg.Jobs {
		names = append(names, j.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// progress is done of total with the share of both; what running subjobs have reported beyond it stands behind a plus.
func progress(j *pb.Job) string {
	if j.Total == 0 {
		return ""
	}
	done := strconv.FormatInt(j.Progress, 10)
	if j.Reported > 0 {
		done += "+" + strconv.FormatInt(j.Reported, 10)
	}
	return fmt.Sprintf("%s/%d %d%%", done, j.Total, int(float64(j.Progress+j.Reported)/float64(j.Total)*100))
}

// jobColumns are the properties of a job in a list.
func (a *app) jobColumns() []column[*pb.Job] {
	type job = *pb.Job
	return []column[job]{
		{key: "name", head: "NAME", value: func(j job) any { return j.Name }},
		{key: "queue", head: "QUEUE", value: func(j job) any { return j.Queue }},
		{key: "kind", head: "KIND", wide: true, value: func(j job) any { return j.Kind }},
		{key: "priority", head: "PRIORITY", wide: true, value: func(j job) any { return j.Priority }},
		{key: "state", head: "STATE", value: func(j job) any { return j.State }},
		{key: "stateCode", value: func(j job) any { return j.StateCode }},
		{key: "final", value: func(j job) any { return j.Final }},
		{head: "PROGRESS", text: progress},
		{key: "progress", value: func(j job) any { return j.Progress }},
		{key: "reported", value: func(j job) any { return j.Reported }},
		{key: "total", value: func(j job) any { return j.Total }},
		{key: "skipped", head: "SKIPPED", wide: true, value: func(j job) any { return j.Skipped }},
		{key: "unit", head: "UNIT", wide: true, value: func(j job) any { return j.Unit }},
		{key: "subjobs", head: "SUBJOBS", value: func(j job) any { return j.Subjobs }},
		{key: "running", head: "RUNNING", value: func(j job) any { return j.Running }},
		{key: "lost", head: "LOST", wide: true, value: func(j job) any { return j.Lost }},
		{key: "submitted", head: "SUBMITTED", wide: true, value: func(j job) any { return stamp(j.Submitted) }, text: func(j job) string { return a.clock(j.Submitted) }},
		{key: "started", head: "STARTED", wide: true, value: func(j job) any { return stamp(j.Started) }, text: func(j job) string { return a.clock(j.Started) }},
		{key: "ended", head: "ENDED", wide: true, value: func(j job) any { return stamp(j.Ended) }, text: func(j job) string { return a.clock(j.Ended) }},
		{key: "waitSeconds", head: "WAIT", value: func(j job) any { return seconds(j.Wait) }, text: func(j job) string { return short(j.Wait.AsDuration()) }},
		{key: "startEarliest", value: func(j job) any { return stamp(j.StartEarly) }},
		{key: "startLatest", value: func(j job) any { return stamp(j.StartLate) }},
		{key: "finishEarliest", value: func(j job) any { return stamp(j.FinishEarly) }},
		{key: "finishLatest", value: func(j job) any { return stamp(j.FinishLate) }},
		{head: "FINISH", wide: true, text: func(j job) string {
			if j.Final {
				return ""
			}
			return a.between(j.FinishEarly, j.FinishLate)
		}},
		{key: "reason", head: "REASON", value: func(j job) any { return j.Reason }},
	}
}

func (a *app) jobsCmd() *cobra.Command {
	var m pb.ListJobsRequest
	var watch bool
	every := lengthFlag(time.Second)
	c := &cobra.Command{
		Use: "jobs", Aliases: []string{"squeue"}, Short: "List jobs",
		Long: `List jobs in order of submission: states as Slurm names them, progress in units of
the job, how long it waited for its first start, and why it waits or ended.

With --watch the list stays on the terminal and changes with the jobs, until q; without
a terminal it is printed again whenever it has changed.`,
		Example: "  sluice jobs\n  sluice jobs --watch\n  sluice jobs --state PENDING,R -o wide\n  sluice jobs -o json | jq '.[] | {name, progress}'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if time.Duration(every) < 100*time.Millisecond {
				return usage("--every %s: want at least 100ms", short(time.Duration(every)))
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			if watch {
				return a.watchJobs(cmd.Context(), c, &m, time.Duration(every))
			}
			resp, err := c.ListJobs(cmd.Context(), connect.NewRequest(&m))
			if err != nil {
				return err
			}
			if n := resp.Msg.LeftOut; n > 0 {
				fmt.Fprintf(a.Err, "sluice: %d older jobs are not shown; --limit raises the number\n", n)
			}
			return show(a, resp.Msg.Jobs, a.jobColumns(), (*pb.Job).GetName, "no jobs")
		},
	}
	c.Flags().StringVar(&m.Queue, "queue", "", "only jobs of this queue")
	c.Flags().StringSliceVar(&m.States, "state", nil, "only jobs in these states, long (RUNNING) or short (R)")
	c.Flags().Int32Var(&m.Limit, "limit", 0, "at most so many, the latest (default and most 10000)")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing them as they change")
	c.Flags().Var(&every, "every", "with --watch: how often to ask")
	return a.output(c)
}

// subjobColumns are the properties of subjobs; those of bids only where there is one.
func (a *app) subjobColumns(list []*pb.Subjob) []column[*pb.Subjob] {
	type sub = *pb.Subjob
	columns := []column[sub]{
		{key: "subjob", head: "SUBJOB", value: func(s sub) any { return s.Subjob }},
		{key: "slice", head: "SLICE", value: func(s sub) any { return s.Slice }},
		{key: "window", head: "WINDOW", wide: true, value: func(s sub) any { return s.Window }},
		{head: "RANGE", text: func(s sub) string { return rangeText(s.Range) }},
		{key: "from", value: func(s sub) any { return s.Range.GetFrom() }},
		{key: "to", value: func(s sub) any { return s.Range.GetTo() }},
		{key: "committed", head: "COMMITTED", value: func(s sub) any { return rangeValue(s.Committed) }, text: func(s sub) string { return rangeText(s.Committed) }},
		{key: "progress", head: "PROGRESS", value: func(s sub) any { return s.Progress }, text: func(s sub) string {
			if !s.Running || s.Range.GetTo() <= s.Range.GetFrom() {
				return ""
			}
			from, to := s.Range.GetFrom(), s.Range.GetTo()
			return fmt.Sprintf("%d %d%%", s.Progress, int(float64(s.Progress-from)/float64(to-from)*100))
		}},
		{key: "plannedStart", head: "PLANNED", wide: true, value: func(s sub) any { return stamp(s.PlannedStart) }, text: func(s sub) string { return a.clock(s.PlannedStart) + "-" + a.clock(s.PlannedEnd) }},
		{key: "plannedEnd", value: func(s sub) any { return stamp(s.PlannedEnd) }},
		{key: "start", head: "START", value: func(s sub) any { return stamp(s.Start) }, text: func(s sub) string { return a.clock(s.Start) }},
		{key: "end", head: "END", value: func(s sub) any { return stamp(s.End) }, text: func(s sub) string { return a.clock(s.End) }},
		{key: "prepareSeconds", head: "PREPARE", wide: true, value: func(s sub) any { return seconds(s.Prepare) }, text: func(s sub) string { return briefly(s.Prepare) }},
		{key: "predictedMemoryBytes", head: "PREDICTED", value: func(s sub) any { return s.PredictedMemoryBytes }, text: func(s sub) string { return size(s.PredictedMemoryBytes) }},
		{key: "peakMemoryBytes", head: "PEAK", value: func(s sub) any { return s.PeakMemoryBytes }, text: func(s sub) string { return size(s.PeakMemoryBytes) }},
		{key: "running", value: func(s sub) any { return s.Running }},
		{key: "outcome", head: "OUTCOME", value: func(s sub) any { return s.Outcome }, text: func(s sub) string {
			if s.Running {
				return "running"
			}
			return s.Outcome
		}},
		{key: "detail", head: "DETAIL", wide: true, value: func(s sub) any { return s.Detail }},
	}
	if slices.ContainsFunc(list, func(s sub) bool { return s.Bid != nil }) {
		columns = append(columns, bidColumns()...)
	}
	return columns
}

func (a *app) jobCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "job NAME", Short: "Show one job with its subjobs",
		Long: `Show one job: where it stands, when it is expected to start and finish, and each of
its subjobs with slice, range, planned and real times, predicted and observed memory,
with -o wide also the bid that won it. Under mechanism jasda what its bids are believed.
-o yaml of the field spec is the accepted job file with all defaults filled in.`,
		Example: "  sluice job count-words\n  sluice job count-words -o json | jq '.history[] | {slice, from, to, outcome}'",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			resp, err := c.GetJob(cmd.Context(), connect.NewRequest(&pb.GetJobRequest{Name: args[0]}))
			if err != nil {
				return err
			}
			return a.showJob(resp.Msg.Job)
		},
	}
	return a.output(c)
}

func (a *app) showJob(j *pb.Job) error {
	switch a.format {
	case "name":
		fmt.Fprintln(a.Out, j.Name)
		return nil
	case "json", "yaml":
		r := describe(j, a.jobColumns())
		subs := make([]record, 0, len(j.History))
		columns := a.subjobColumns(j.History)
		for _, s := range j.History {
			subs = append(subs, describe(s, columns))
		}
		r = append(r, pair{"rateP50Seconds", seconds(j.RateP50)}, pair{"rateP95Seconds", seconds(j.RateP95)}, pair{"memoryScale", j.MemoryScale}, pair{"prepareSeconds", seconds(j.Prepare)}, pair{"prepareSeen", j.PrepareSeen})
		r = append(r, standingRecord(j)...)
		r = append(r, pair{"history", subs}, pair{"historyDropped", j.HistoryDropped}, pair{"spec", j.Spec})
		return a.dump(r)
	}
	lines := [][2]string{
		{"job", j.Name}, {"queue", fmt.Sprintf("%s, priority %d", j.Queue, j.Priority)}, {"kind", j.Kind},
		{"state", j.State}, {"reason", j.Reason},
		{"progress", progress(j) + " " + j.Unit + "s"}, {"skipped", nonZero(j.Skipped)},
		{"subjobs", fmt.Sprintf("%d committed, %d running, %d lost", j.Subjobs, j.Running, j.Lost)},
		{"submitted", a.clock(j.Submitted)}, {"started", a.clock(j.Started)}, {"ended", a.clock(j.Ended)}, {"waited", short(j.Wait.AsDuration())},
	}
	if !j.Final {
		if j.Started == nil {
			lines = append(lines, [2]string{"may start", a.between(j.StartEarly, j.StartLate)})
		}
		lines = append(lines, [2]string{"may finish", a.between(j.FinishEarly, j.FinishLate)})
	}
	if j.RateP50 != nil {
		lines = append(lines, [2]string{"one unit", fmt.Sprintf("%s, 95%% within %s", short(j.RateP50.AsDuration()), short(j.RateP95.AsDuration()))})
	}
	if a.format == "wide" {
		lines = append(lines, [2]string{"start", startText(j)})
	}
	a.lines(append(lines, standing(j)...))
	if len(j.History) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	if err := grid(a.Out, a.format == "wide", j.History, a.subjobColumns(j.History)); err != nil {
		return err
	}
	if j.HistoryDropped > 0 {
		fmt.Fprintf(a.Out, "and %d older subjobs\n", j.HistoryDropped)
	}
	return nil
}

// startText says what a start of a job is planned with; nothing where that is nothing.
func startText(j *pb.Job) string {
	switch {
	case j.GetPrepare() == nil:
		return ""
	case j.PrepareSeen:
		return briefly(j.Prepare) + " before its process begins, as earlier ones took"
	}
	return briefly(j.Prepare) + " for unpacking the work directory, as its size may take; once on a node"
}

// briefly is a length that may be unknown.
func briefly(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return short(d.AsDuration())
}

// lines writes facts below each other; empty ones are left out.
func (a *app) lines(list [][2]string) {
	width := 0
	for _, l := range list {
		width = max(width, len(l[0]))
	}
	for _, l := range list {
		if l[1] != "" {
			fmt.Fprintf(a.Out, "%-*s  %s\n", width, l[0], flat(l[1]))
		}
	}
}

// nonZero is a number, nothing for 0.
func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
