// Package jobs has the commands that list, explain, wait for, cancel and begin again jobs, and those for their queues and agents.
package jobs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/live"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// Progress is done/total and a percentage; what running subjobs reported beyond done stands after a plus, and counts in the percentage.
func Progress(j *pb.Job) string {
	done := strconv.FormatInt(j.Progress, 10)
	if j.Reported > 0 {
		done += "+" + strconv.FormatInt(j.Reported, 10)
	}
	if j.Total == 0 { // a chain whose length nobody knows
		return done + "/?"
	}
	return fmt.Sprintf("%s/%d %d%%", done, j.Total, int(float64(j.Progress+j.Reported)/float64(j.Total)*100))
}

// JobColumns are the properties of a job in a list.
func JobColumns(a *session.Session) []command.Column[*pb.Job] {
	type job = *pb.Job
	return []command.Column[job]{
		{Key: "name", Head: "NAME", Value: func(j job) any { return j.Name }},
		{Key: "queue", Head: "QUEUE", Value: func(j job) any { return j.Queue }},
		{Key: "owner", Head: "OWNER", Wide: true, Value: func(j job) any { return j.Owner }},
		{Key: "kind", Head: "KIND", Wide: true, Value: func(j job) any { return pb.Word(j.Kind) }},
		{Key: "priority", Head: "PRIORITY", Wide: true, Value: func(j job) any { return j.Priority }},
		{Key: "state", Head: "STATE", Value: func(j job) any { return pb.Word(j.State) }},
		{Key: "stateCode", Value: func(j job) any { return j.StateCode }},
		{Key: "final", Value: func(j job) any { return j.Final }},
		{Head: "PROGRESS", Text: Progress},
		{Key: "progress", Value: func(j job) any { return j.Progress }},
		{Key: "reported", Value: func(j job) any { return j.Reported }},
		{Key: "total", Value: func(j job) any { return j.Total }},
		{Key: "skipped", Head: "SKIPPED", Wide: true, Value: func(j job) any { return j.Skipped }},
		{Key: "unit", Head: "UNIT", Wide: true, Value: func(j job) any { return j.Unit }},
		{Key: "subjobs", Head: "SUBJOBS", Value: func(j job) any { return j.Subjobs }},
		{Key: "running", Head: "RUNNING", Value: func(j job) any { return j.Running }},
		{Key: "slices", Head: "SLICES", Wide: true, Value: func(j job) any { return append([]string{}, j.Slices...) },
			Text: func(j job) string { return strings.Join(j.Slices, ", ") }},
		{Key: "lost", Head: "LOST", Wide: true, Value: func(j job) any { return j.Lost }},
		{Key: "submitted", Head: "SUBMITTED", Wide: true, Value: func(j job) any { return show.Stamp(j.Submitted) },
			Text: func(j job) string { return show.Clock(a, j.Submitted) }},
		{Key: "started", Head: "STARTED", Wide: true, Value: func(j job) any { return show.Stamp(j.Started) },
			Text: func(j job) string { return show.Clock(a, j.Started) }},
		{Key: "ended", Head: "ENDED", Wide: true, Value: func(j job) any { return show.Stamp(j.Ended) },
			Text: func(j job) string { return show.Clock(a, j.Ended) }},
		{Key: "waitSeconds", Head: "WAIT", Value: func(j job) any { return show.Seconds(j.Wait) },
			Text: func(j job) string { return command.Short(j.Wait.AsDuration()) }},
		{Key: "startEarliest", Value: func(j job) any { return show.Stamp(j.StartEarly) }},
		{Key: "startLatest", Value: func(j job) any { return show.Stamp(j.StartLate) }},
		{Key: "finishEarliest", Value: func(j job) any { return show.Stamp(j.FinishEarly) }},
		{Key: "finishLatest", Value: func(j job) any { return show.Stamp(j.FinishLate) }},
		{Head: "FINISH", Wide: true, Text: func(j job) string {
			if j.Final {
				return ""
			}
			return mayFinish(a, j)
		}},
		{Key: "reason", Head: "REASON", Value: func(j job) any { return j.Reason }},
	}
}

// jobStates are the states that --state names, as Slurm writes them: long or short.
func jobStates(names []string) (list []pb.Job_State, err error) {
	for _, n := range names {
		before := len(list)
		for s := job.Waiting; s <= job.Impossible; s++ {
			if strings.EqualFold(n, s.String()) || strings.EqualFold(n, s.Code()) {
				list = append(list, pb.Value[pb.Job_State](s.String()))
			}
		}
		if len(list) == before {
			return nil, command.Usage("--state %.80q: want PENDING, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED, EXPIRED or NEVER", n)
		}
	}
	return list, nil
}

// jobLimit is how many jobs are listed; 0 for all. given: limit was.
func jobLimit(a *session.Session, limit int, given, all bool) (int, error) {
	switch {
	case given && limit <= 0:
		return 0, command.Usage("--limit %d: want a number above 0, or --all for all there are", limit)
	case given && all:
		return 0, command.Usage("--limit %d and --all: want one of them", limit)
	case all:
		return 0, nil
	case !given && (a.Format == "table" || a.Format == "wide"):
		return 1000, nil
	case !given:
		return 10_000, nil
	}
	return limit, nil
}

// listed is a list of jobs, how many there are beyond it, and which are missing in it and why.
type listed struct {
	Jobs     []*pb.Job
	Older    int32
	warnings []string
}

// ListJobs asks for one page after the other until there are enough jobs; limit 0: all.
func ListJobs(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, m *pb.ListJobsRequest, limit int) (list listed, err error) {
	ask := proto.CloneOf(m)
	var pages [][]*pb.Job // the newest first
	for n := 0; ; {
		if ask.Limit = session.PageOfJobs; limit > 0 {
			ask.Limit = int32(min(session.PageOfJobs, limit-n))
		}
		resp, err := c.ListJobs(ctx, connect.NewRequest(ask))
		if err != nil {
			return listed{}, err
		}
		list.warnings = append(list.warnings, resp.Msg.Warnings...)
		pages, n = append(pages, resp.Msg.Jobs), n+len(resp.Msg.Jobs)
		if list.Older = resp.Msg.LeftOut; resp.Msg.NextPageToken == "" || limit > 0 && n >= limit {
			slices.Reverse(pages)
			list.Jobs = slices.Concat(pages...)
			return list, nil
		}
		ask.PageToken, ask.Before = resp.Msg.NextPageToken, ""
	}
}

// JobsCmd is the command jobs.
func JobsCmd(a *session.Session) *cobra.Command {
	var m pb.ListJobsRequest
	var watch, all bool
	var limit int
	var states []string
	every := show.Length(time.Second)
	c := &cobra.Command{
		Use: "jobs", Aliases: []string{"squeue"}, Short: "List jobs",
		Long: `List jobs in order of submission: states as Slurm names them, progress in units of
the job, how long it waited for its first start, and why it waits or ended. The newest
stand last: the 1,000 newest in a table, 10,000 otherwise, unless --limit or --all say
another number. --before goes on with those that are older than a job.

With --watch the list stays on the terminal and changes with the jobs, until q; without
a terminal it is printed again whenever it has changed.`,
		Example: "  sluice jobs\n  sluice jobs --watch\n  sluice jobs --mine\n  sluice jobs --state PENDING,R -o wide\n  sluice jobs " +
			"--limit 20 --before count-words\n  sluice jobs -o json | jq '.[] | {name, progress}'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if time.Duration(every) < 100*time.Millisecond {
				return command.Usage("--every %s: want at least 100ms", command.Short(time.Duration(every)))
			}
			if m.Owner != "" && m.Mine {
				return command.Usage("--user %s and --mine: want one of them", m.Owner)
			}
			var err error
			if m.States, err = jobStates(states); err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			if limit, err = jobLimit(a, limit, cmd.Flags().Changed("limit"), all); err != nil {
				return err
			}
			if watch {
				return live.Watch(cmd.Context(), a, time.Duration(every), &watched{a: a, c: c, request: &m, limit: limit})
			}
			list, err := ListJobs(cmd.Context(), c, &m, limit)
			if err != nil {
				return err
			}
			if list.Older > 0 && len(list.Jobs) > 0 {
				fmt.Fprintf(a.Err, "sluice: %d older jobs are not shown: --limit or --all shows more of them, --before %s those before\n",
					list.Older, list.Jobs[0].GetName())
			}
			a.Warn(list.warnings)
			return command.Show(a.App, list.Jobs, JobColumns(a), (*pb.Job).GetName, "no jobs")
		},
	}
	c.Flags().StringVar(&m.Queue, "queue", "", "only jobs of this queue")
	c.Flags().StringVar(&m.Owner, "user", "", "only jobs that this user has submitted")
	c.Flags().BoolVar(&m.Mine, "mine", false, "only your own jobs")
	c.Flags().StringSliceVar(&states, "state", nil, "only jobs in these states, long (RUNNING) or short (R)")
	c.Flags().IntVar(&limit, "limit", 0, "at most so many, the newest (default 1000 in a table, 10000 otherwise)")
	c.Flags().BoolVar(&all, "all", false, "all there are")
	c.Flags().StringVar(&m.Before, "before", "", "only those that stand before this job: the older ones")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing them as they change")
	c.Flags().Var(&every, "every", "with --watch: how often to ask")
	return a.Output(c)
}

// subjobColumns are the properties of subjobs; those of bids only where there is one.
func subjobColumns(a *session.Session, list []*pb.Subjob) []command.Column[*pb.Subjob] {
	type sub = *pb.Subjob
	columns := []command.Column[sub]{
		{Key: "subjob", Head: "SUBJOB", Value: func(s sub) any { return s.Subjob }},
		{Key: "slice", Value: func(s sub) any { return s.Slice }},
		{Key: "slices", Head: "SLICE", Value: func(s sub) any { return allSlices(s) },
			Text: func(s sub) string { return strings.Join(allSlices(s), ", ") }},
		{Key: "window", Head: "WINDOW", Wide: true, Value: func(s sub) any { return s.Window }},
		{Head: "RANGE", Text: func(s sub) string { return show.RangeText(s.Range) }},
		{Key: "from", Value: func(s sub) any { return s.Range.GetFrom() }},
		{Key: "to", Value: func(s sub) any { return s.Range.GetTo() }},
		{Key: "committed", Head: "COMMITTED", Value: func(s sub) any { return show.RangeValue(s.Committed) },
			Text: func(s sub) string { return show.RangeText(s.Committed) }},
		{Key: "progress", Head: "PROGRESS", Value: func(s sub) any { return s.Progress }, Text: func(s sub) string {
			if !s.Running || s.Range.GetTo() <= s.Range.GetFrom() {
				return ""
			}
			from, to := s.Range.GetFrom(), s.Range.GetTo()
			return fmt.Sprintf("%d %d%%", s.Progress, int(float64(s.Progress-from)/float64(to-from)*100))
		}},
		{Key: "plannedStart", Head: "PLANNED", Wide: true, Value: func(s sub) any { return show.Stamp(s.PlannedStart) },
			Text: func(s sub) string { return show.Clock(a, s.PlannedStart) + "-" + show.Clock(a, s.PlannedEnd) }},
		{Key: "plannedEnd", Value: func(s sub) any { return show.Stamp(s.PlannedEnd) }},
		{Key: "start", Head: "START", Value: func(s sub) any { return show.Stamp(s.Start) },
			Text: func(s sub) string { return show.Clock(a, s.Start) }},
		{Key: "end", Head: "END", Value: func(s sub) any { return show.Stamp(s.End) },
			Text: func(s sub) string { return show.Clock(a, s.End) }},
		{Key: "prepareSeconds", Head: "PREPARE", Wide: true, Value: func(s sub) any { return show.Seconds(s.Prepare) },
			Text: func(s sub) string { return show.Briefly(s.Prepare) }},
		{Key: "startupSeconds", Head: "STARTUP", Wide: true, Value: func(s sub) any { return show.Seconds(s.Startup) },
			Text: func(s sub) string {
				if s.Stayed {
					return "stayed"
				}
				return show.Briefly(s.Startup)
			}},
		{Key: "stayed", Value: func(s sub) any { return s.Stayed }},
		{Key: "waitedSeconds", Head: "WAITED", Wide: true, Value: func(s sub) any { return show.Seconds(s.Waited) },
			Text: func(s sub) string { return show.Briefly(s.Waited) }},
		{Key: "predictedMemoryBytes", Head: "PREDICTED", Value: func(s sub) any { return s.PredictedMemoryBytes },
			Text: func(s sub) string { return command.Size(s.PredictedMemoryBytes) }},
		{Key: "peakMemoryBytes", Head: "PEAK", Value: func(s sub) any { return s.PeakMemoryBytes },
			Text: func(s sub) string { return command.Size(s.PeakMemoryBytes) }},
		{Key: "running", Value: func(s sub) any { return s.Running }},
		{Key: "outcome", Head: "OUTCOME", Value: func(s sub) any { return pb.Word(s.Outcome) }, Text: func(s sub) string {
			if s.Running {
				return cmp.Or(pb.Word(s.Outcome), "running")
			}
			return pb.Word(s.Outcome)
		}},
		{Key: "detail", Head: "DETAIL", Wide: true, Value: func(s sub) any { return s.Detail }},
	}
	if slices.ContainsFunc(list, func(s sub) bool { return s.Bid != nil }) {
		columns = append(columns, bidColumns()...)
	}
	return columns
}

// allSlices are a subjob's; an older daemon tells only the first.
func allSlices(s *pb.Subjob) []string {
	if len(s.Slices) == 0 && s.Slice != "" {
		return []string{s.Slice}
	}
	return append([]string{}, s.Slices...)
}

// hintLines are a job's hints for people.
func hintLines(j *pb.Job) (out [][2]string) {
	for _, h := range j.GetHints() {
		out = append(out, [2]string{"hint", h})
	}
	return out
}

// JobCmd is the command job.
func JobCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "job NAME", Short: "Show one job with its subjobs",
		Long: `Show one job: where it stands, when it is expected to start and finish, and each of
its subjobs with slice, range, planned and real times, predicted and observed memory,
with -o wide also the bid that won it. Under mechanism jasda what its bids are believed.
-o yaml of the field spec is the accepted job file with all defaults filled in.`,
		Example: "  sluice job count-words\n  sluice job count-words -o json | jq '.history[] | {slice, from, to, outcome}'",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			resp, err := c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: args[0]}))
			if err != nil {
				return err
			}
			return showJob(a, resp.Msg.Job)
		}),
	}
	return a.Output(c)
}

func showJob(a *session.Session, j *pb.Job) error {
	switch a.Format {
	case "name":
		fmt.Fprintln(a.Out, j.Name)
		return nil
	case "json", "yaml":
		r := command.Describe(j, JobColumns(a))
		subs := make([]command.Record, 0, len(j.History))
		columns := subjobColumns(a, j.History)
		for _, s := range j.History {
			subs = append(subs, command.Describe(s, columns))
		}
		r = append(r, command.Pair{Key: "rateP50Seconds", Value: show.Seconds(j.RateP50)},
			command.Pair{Key: "rateP95Seconds", Value: show.Seconds(j.RateP95)},
			command.Pair{Key: "measuring", Value: j.Measuring}, command.Pair{Key: "memoryScale", Value: j.MemoryScale},
			command.Pair{Key: "prepareSeconds", Value: show.Seconds(j.Prepare)}, command.Pair{Key: "prepareSeen", Value: j.PrepareSeen},
			command.Pair{Key: "hints", Value: append([]string{}, j.Hints...)})
		r = append(r, standingRecord(j)...)
		r = append(r, command.Pair{Key: "history", Value: subs}, command.Pair{Key: "historyDropped", Value: j.HistoryDropped},
			command.Pair{Key: "spec", Value: j.Spec})
		return a.Dump(r)
	}
	lines := [][2]string{
		{"job", j.Name}, {"owner", j.Owner}, {"queue", fmt.Sprintf("%s, priority %d", j.Queue, j.Priority)}, {"kind", pb.Word(j.Kind)},
		{"state", pb.Word(j.State)}, {"reason", j.Reason},
		{"progress", Progress(j) + " " + j.Unit + "s"}, {"skipped", show.NonZero(j.Skipped)},
		{"subjobs", fmt.Sprintf("%d committed, %d running, %d lost", j.Subjobs, j.Running, j.Lost)},
		{"submitted", show.Clock(a, j.Submitted)}, {"started", show.Clock(a, j.Started)}, {"ended", show.Clock(a, j.Ended)},
		{"waited", command.Short(j.Wait.AsDuration())},
	}
	if !j.Final {
		if j.Started == nil {
			lines = append(lines, [2]string{"may start", show.Between(a, j.StartEarly, j.StartLate)})
		}
		lines = append(lines, [2]string{"may finish", mayFinish(a, j)})
	}
	if j.Measuring {
		lines = append(lines, [2]string{"one unit", "not known yet: measured by its first piece"})
	} else if j.RateP50 != nil {
		lines = append(lines, [2]string{"one unit", fmt.Sprintf("%s, 95%% within %s", command.Short(j.RateP50.AsDuration()),
			command.Short(j.RateP95.AsDuration()))})
	}
	if a.Format == "wide" {
		lines = append(lines, [2]string{"start", startText(j)})
	}
	show.Lines(a, append(append(lines, standing(j)...), hintLines(j)...))
	if len(j.History) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	if err := command.Grid(a.Out, a.Format == "wide", j.History, subjobColumns(a, j.History)); err != nil {
		return err
	}
	if j.HistoryDropped > 0 {
		fmt.Fprintf(a.Out, "and %d older subjobs\n", j.HistoryDropped)
	}
	return nil
}

// mayFinish is when a job may finish, for people.
func mayFinish(a *session.Session, j *pb.Job) string {
	if j.GetMeasuring() {
		return "not known yet: measuring"
	}
	return show.Between(a, j.GetFinishEarly(), j.GetFinishLate())
}

// startText says what a start of a job is planned with; nothing where that is nothing.
func startText(j *pb.Job) string {
	switch {
	case j.GetPrepare() == nil:
		return ""
	case j.PrepareSeen:
		return show.Briefly(j.Prepare) + " before its process begins, as earlier ones took"
	}
	return show.Briefly(j.Prepare) + " for unpacking the work directory, as its size may take; once on a node"
}

// watched is the view of jobs --watch.
type watched struct {
	a       *session.Session
	c       sluicev1alpha1connect.SluiceServiceClient
	request *pb.ListJobsRequest
	limit   int
	warned  []string
	live.Scrolled
	listed
}

func (w *watched) Fetch(ctx context.Context) (func(), error) {
	list, err := ListJobs(ctx, w.c, w.request, w.limit)
	if err != nil {
		return nil, err
	}
	return func() { w.listed = list }, nil
}

// Print writes the list in the form asked for, whole, and says on stderr which jobs are missing there, once.
func (w *watched) Print(out io.Writer) error {
	if !slices.Equal(w.warnings, w.warned) {
		w.a.Warn(w.warnings)
		w.warned = w.warnings
	}
	printed := *w.a.App
	printed.Out = out
	return command.Show(&printed, w.Jobs, JobColumns(w.a), (*pb.Job).GetName, "no jobs")
}

func (w *watched) Frame(columns, rows int, notice string) []terminal.Row {
	title := fmt.Sprintf("sluice jobs  %d", len(w.Jobs))
	if w.Older > 0 {
		title += fmt.Sprintf(" of %d", len(w.Jobs)+int(w.Older))
	}
	out := []terminal.Row{live.Titled(w.a, title, columns)}
	if notice != "" {
		out = append(out, terminal.Row{Text: notice, Style: terminal.Bad})
	}
	if len(w.warnings) > 0 {
		out = append(out, terminal.Row{Text: "jobs are missing here: " + terminal.Line(w.warnings[0]), Style: terminal.Bad})
	}
	if len(w.Jobs) == 0 {
		return append(out, terminal.Row{Text: "no jobs"})
	}
	shown := JobColumns(w.a)
	if w.a.Format != "wide" {
		narrow := shown[:0:0]
		for _, c := range shown {
			if !c.Wide {
				narrow = append(narrow, c)
			}
		}
		shown = narrow
	}
	room := rows - len(out) - 1
	w.First = max(0, min(w.First, len(w.Jobs)-room))
	jobs := w.Jobs[w.First:]
	for i, line := range live.Tabled(jobs, shown) {
		switch {
		case i == 0:
			out = append(out, terminal.Row{Text: line, Style: terminal.Heading})
		case i == room && len(jobs) > room:
			return append(out, terminal.Row{Text: fmt.Sprintf("and %d more: down", len(jobs)-i+1), Style: terminal.Faint})
		default:
			out = append(out, terminal.Row{Text: line, Style: StyleOf(jobs[i-1])})
		}
	}
	return out
}

// StyleOf is how a job stands out in a list.
func StyleOf(j *pb.Job) terminal.Style {
	switch {
	case j.State == pb.Job_COMPLETED || j.State == pb.Job_CANCELLED:
		return terminal.Faint
	case j.Final:
		return terminal.Bad
	case j.Running > 0:
		return terminal.Good
	}
	return terminal.Plain
}
