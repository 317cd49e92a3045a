package jobs

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/cli/pressure"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// ExplainCmd is the command explain.
func ExplainCmd(a *session.Session) *cobra.Command {
	var isJob, schema bool
	c := &cobra.Command{
		Use: "explain JOB|KEY", Short: "Say why a job waits, or what a key of the job file means",
		Long: `Say why a job waits: how often which reason decided, and what it would need on each
slice. For a job that can never run, the nearest request that would fit. For one that waits,
how it stands against others and when it is likely to be served: its place in the policy's
order, or under mechanism jasda what it bid, what won there and by how much. There also how
far what it declares is believed, and why. Where memory ran out it says what was done to
its subjobs, before whose, by what numbers, and what became of them. Where workloads
outside Sluice wait for devices it says which of its subjobs were truncated or spared for
them, and why, since the daemon has started.

Or say what a key of the job file means: spec, spec.items, spec.memory.phases. With
-o json as a JSON Schema; --schema prints that of the whole file, for editors.`,
		Example: "  sluice explain train\n  sluice explain spec.items\n  sluice explain --schema > job.schema.json\n  sluice explain " +
			"--job spec          # a job of that name",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeExplain(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case schema && len(args) == 0 && !isJob:
				_, err := a.Out.Write(config.JSONSchema())
				return err
			case schema || len(args) == 0:
				return command.Usage("name a job, or a key of the job file such as spec; --schema stands alone")
			case !isJob && config.IsPath(args[0]):
				return explainKey(a, args[0])
			}
			return explainJob(cmd.Context(), a, args[0])
		},
	}
	c.Flags().BoolVar(&isJob, "job", false, "the name is a job's, though a key has it too")
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of the job file")
	return a.Output(c)
}

// explainKey describes the job file's key at a path.
func explainKey(a *session.Session, path string) error {
	switch a.Format {
	case "json", "yaml":
		data, err := config.SchemaOf(path)
		if err != nil {
			return &command.Failure{Code: command.ExitUsage, Err: err}
		}
		return a.DumpJSON(data)
	case "name":
		fmt.Fprintln(a.Out, path)
		return nil
	}
	text, err := config.Explain(path)
	if err != nil {
		return &command.Failure{Code: command.ExitUsage, Err: err}
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

func explainJob(ctx context.Context, a *session.Session, name string) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	resp, err := c.Explain(ctx, connect.NewRequest(&pb.ExplainRequest{Name: name}))
	if err != nil {
		return err
	}
	if a.Format == "json" || a.Format == "yaml" {
		return a.Dump(Explanation(a, resp.Msg.Explanation))
	}
	return ShowExplanation(a, resp.Msg.Explanation)
}

// completeExplain proposes the paths of the job file where one has begun, else jobs.
func completeExplain(a *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if config.IsPath(text) {
			return config.Paths(), cobra.ShellCompDirectiveNoFileComp
		}
		names, d := a.CompleteJobs()(cmd, args, text)
		return append(names, config.Words()...), d
	}
}

func reasonColumns(a *session.Session) []command.Column[*pb.Reason] {
	type reason = *pb.Reason
	return []command.Column[reason]{
		{Key: "count", Head: "TIMES", Value: func(r reason) any { return r.Count }},
		{Key: "last", Head: "LAST", Value: func(r reason) any { return show.Stamp(r.Last) },
			Text: func(r reason) string { return show.Clock(a, r.Last) }},
		{Key: "text", Head: "REASON", Value: func(r reason) any { return r.Text }},
	}
}

func fitColumns() []command.Column[*pb.SliceFit] {
	type fit = *pb.SliceFit
	return []command.Column[fit]{
		{Key: "slice", Head: "SLICE", Value: func(f fit) any { return f.Slice }},
		{Key: "fits", Head: "FITS", Value: func(f fit) any { return f.Fits }, Text: func(f fit) string {
			if f.Fits {
				return "yes"
			}
			return "no"
		}},
		{Key: "leastMemoryBytes", Head: "NEEDS", Value: func(f fit) any { return f.LeastMemoryBytes },
			Text: func(f fit) string { return command.Size(f.LeastMemoryBytes) }},
		{Key: "capacityMemoryBytes", Head: "HAS", Value: func(f fit) any { return f.CapacityMemoryBytes },
			Text: func(f fit) string { return command.Size(f.CapacityMemoryBytes) }},
		{Key: "reach", Head: "REACH", Value: func(f fit) any { return show.RangeValue(f.Reach) },
			Text: func(f fit) string { return show.RangeText(f.Reach) }},
		{Key: "why", Head: "WHY", Value: func(f fit) any { return f.Why }},
	}
}

// Explanation is an explanation for programs.
func Explanation(a *session.Session, e *pb.Explanation) command.Record {
	reasons, fits := make([]command.Record, 0, len(e.Reasons)), make([]command.Record, 0, len(e.Slices))
	for _, r := range e.Reasons {
		reasons = append(reasons, command.Describe(r, reasonColumns(a)))
	}
	for _, f := range e.Slices {
		fits = append(fits, command.Describe(f, fitColumns()))
	}
	j := e.GetJob()
	if j == nil {
		j = &pb.Job{}
	}
	r := command.Record{{Key: "job", Value: command.Describe(j, JobColumns(a))}, {Key: "summary", Value: e.Summary},
		{Key: "reasons", Value: reasons}, {Key: "slices", Value: fits}, {Key: "nearest", Value: e.Nearest}, {Key: "home", Value: e.Home},
		{Key: "endured", Value: show.DescribeAll(e.Endured, pressure.AirlockStepColumns(a))},
		{Key: "reclaims", Value: show.DescribeAll(e.Reclaims, show.ReclaimColumns(a))},
		{Key: "hints", Value: append([]string{}, j.Hints...)}}
	return append(append(r, prospectRecord(a, e)...), standingRecord(j)...)
}

// ShowExplanation is an explanation for people.
func ShowExplanation(a *session.Session, e *pb.Explanation) error {
	j := e.GetJob()
	fmt.Fprintf(a.Out, "%s: %s\n", j.GetName(), command.Flat(e.Summary))
	if e.Home != "" {
		fmt.Fprintf(a.Out, "home        zone %s\n", e.Home)
	}
	if !j.GetFinal() {
		if j.GetStarted() == nil {
			fmt.Fprintf(a.Out, "may start   %s\n", show.Between(a, j.GetStartEarly(), j.GetStartLate()))
		}
		fmt.Fprintf(a.Out, "may finish  %s\n", mayFinish(a, j))
	}
	if e.Prospect != "" {
		fmt.Fprintf(a.Out, "prospect    %s\n", command.Flat(e.Prospect))
	}
	if text := startText(j); text != "" {
		fmt.Fprintf(a.Out, "start       %s\n", text)
	}
	if e.Nearest != "" {
		fmt.Fprintf(a.Out, "would fit   %s\n", command.Flat(e.Nearest))
	}
	for _, l := range append(standing(j), hintLines(j)...) {
		fmt.Fprintf(a.Out, "%-10s  %s\n", l[0], command.Flat(l[1]))
	}
	if len(e.Reasons) > 0 {
		fmt.Fprintln(a.Out)
		if err := command.Grid(a.Out, true, e.Reasons, reasonColumns(a)); err != nil {
			return err
		}
	}
	if err := pressure.ShowSteps(a.Out, e.Endured, 0, a.Format == "wide", pressure.JobStepColumns(a)); err != nil {
		return err
	}
	if len(e.Reclaims) > 0 {
		fmt.Fprintln(a.Out)
		if err := command.Grid(a.Out, true, e.Reclaims, show.ReclaimColumns(a)); err != nil {
			return err
		}
	}
	if len(e.Losses) > 0 {
		fmt.Fprintln(a.Out)
		if err := command.Grid(a.Out, true, e.Losses, lossColumns(a)); err != nil {
			return err
		}
	}
	if len(e.Slices) > 0 {
		fmt.Fprintln(a.Out)
		return command.Grid(a.Out, true, e.Slices, fitColumns())
	}
	return nil
}

// lossColumns are what a job bid for and lost, and what won there.
func lossColumns(a *session.Session) []command.Column[*pb.Loss] {
	type loss = *pb.Loss
	return []command.Column[loss]{
		{Key: "count", Head: "LOST", Value: func(l loss) any { return l.Count }},
		{Key: "last", Head: "LAST", Value: func(l loss) any { return show.Stamp(l.Last) },
			Text: func(l loss) string { return show.Clock(a, l.Last) }},
		{Key: "profile", Head: "ON", Value: func(l loss) any { return l.Profile }},
		{Key: "slice", Value: func(l loss) any { return l.Slice }},
		{Key: "score", Head: "SCORE", Value: func(l loss) any { return l.Score },
			Text: func(l loss) string { return show.Decimal(l.Score) }},
		{Key: "weight", Head: "WEIGHT", Value: func(l loss) any { return l.Weight },
			Text: func(l loss) string { return show.Decimal(l.Weight) }},
		{Key: "winner", Head: "WON BY", Value: func(l loss) any { return l.Winner }, Text: func(l loss) string {
			if l.Winners > 1 {
				return fmt.Sprintf("%s and %d more", l.Winner, l.Winners-1)
			}
			return l.Winner
		}},
		{Key: "winnerQueue", Head: "QUEUE", Value: func(l loss) any { return l.WinnerQueue }},
		{Key: "winnerScore", Value: func(l loss) any { return l.WinnerScore }},
		{Key: "winnerWeight", Value: func(l loss) any { return l.WinnerWeight }},
		{Key: "winners", Value: func(l loss) any { return l.Winners }},
		{Key: "winnersWeight", Head: "WITH", Value: func(l loss) any { return l.WinnersWeight },
			Text: func(l loss) string { return show.Decimal(l.WinnersWeight) }},
		{Key: "by", Head: "BY", Value: func(l loss) any { return l.By }, Text: func(l loss) string {
			if l.By <= 0 {
				return "-"
			}
			return show.Decimal(l.By)
		}},
		{Key: "starved", Value: func(l loss) any { return l.Starved }},
	}
}

// prospectRecord is how a job ranks against others, for programs; without fields that its market does not have.
func prospectRecord(a *session.Session, e *pb.Explanation) command.Record {
	r := command.Record{{Key: "prospect", Value: e.Prospect}}
	if len(e.Losses) > 0 {
		losses := make([]command.Record, len(e.Losses))
		for i, l := range e.Losses {
			losses[i] = command.Describe(l, lossColumns(a))
		}
		r = append(r, command.Pair{Key: "losses", Value: losses})
	}
	if k := e.Rank; k != nil {
		var latest any
		if g := k.Latest; g != nil {
			latest = command.Record{{Key: "slice", Value: g.Slice}, {Key: "seconds", Value: show.Seconds(g.Length)},
				{Key: "at", Value: show.Stamp(g.At)}, {Key: "winner", Value: g.Winner}, {Key: "winnerQueue", Value: g.WinnerQueue}}
		}
		r = append(r, command.Pair{Key: "rank", Value: command.Record{{Key: "place", Value: k.Place}, {Key: "of", Value: k.Of},
			{Key: "policy", Value: k.Policy}, {Key: "profile", Value: k.Profile}, {Key: "slice", Value: k.Slice},
			{Key: "latest", Value: latest}}})
	}
	return r
}
