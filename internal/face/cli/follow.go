package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1/sluicev1alpha1connect"
)

func (a *app) waitCmd() *cobra.Command {
	var timeout lengthFlag
	c := &cobra.Command{
		Use: "wait JOB...", Short: "Wait until jobs are over",
		Long:    "Wait until all the named jobs are over. Exit 0 if all completed, 1 if one did not,\n4 if the time was over before.",
		Example: "  sluice wait count-words && sluice output count-words --cat\n  sluice wait train --timeout 2h",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.wait(cmd.Context(), c, args, time.Duration(timeout))
		},
	}
	c.Flags().Var(&timeout, "timeout", "how long to wait (default: for ever)")
	return a.output(c)
}

// wait asks until all jobs are over or the time is; 0 is for ever.
func (a *app) wait(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, names []string, timeout time.Duration) error {
	start := time.Now()
	for {
		step := time.Minute
		if timeout > 0 {
			step = min(step, max(0, timeout-time.Since(start)))
		}
		resp, err := c.WaitJob(ctx, connect.NewRequest(&pb.WaitJobRequest{Names: names, Timeout: durationpb.New(step)}))
		if err != nil {
			return err
		}
		over := timeout > 0 && time.Since(start) >= timeout
		if !resp.Msg.Done && !over {
			continue
		}
		if err := a.ended(resp.Msg.Jobs); err != nil {
			return err
		}
		var open, bad []string
		for _, j := range resp.Msg.Jobs {
			if !j.Final {
				open = append(open, j.Name)
			} else if j.State != "COMPLETED" {
				bad = append(bad, j.Name+" "+j.State)
			}
		}
		switch {
		case len(bad) > 0:
			return &failure{ExitFailed, fmt.Errorf("did not complete: %s", strings.Join(bad, ", "))}
		case len(open) > 0:
			return &failure{ExitTimeout, fmt.Errorf("not over after %s: %s", short(timeout), strings.Join(open, ", "))}
		}
		return nil
	}
}

// ended shows how jobs stand at the end of a wait.
func (a *app) ended(jobs []*pb.Job) error {
	if a.format != "table" {
		return show(a, jobs, a.jobColumns(), (*pb.Job).GetName, "")
	}
	for _, j := range jobs {
		line := fmt.Sprintf("job %s %s, %s %ss", j.Name, j.State, progress(j), j.Unit)
		if j.Reason != "" {
			line += ": " + j.Reason
		}
		fmt.Fprintln(a.Out, flat(line))
	}
	return nil
}

func (a *app) logsCmd() *cobra.Command {
	var subjob string
	var follow bool
	c := &cobra.Command{
		Use: "logs JOB", Short: "Print what a subjob wrote",
		Long:    "Print what the latest subjob of a job wrote to stdout and stderr, or the one that\n--subjob names; `sluice job` lists them.",
		Example: "  sluice logs count-words\n  sluice logs count-words -f\n  sluice logs count-words --subjob 1-42",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			stream, err := c.Logs(cmd.Context(), connect.NewRequest(&pb.LogsRequest{Name: args[0], Subjob: subjob, Follow: follow}))
			if err != nil {
				return a.explain(err)
			}
			for stream.Receive() {
				if _, err := a.Out.Write(stream.Msg().Data); err != nil {
					return errors.Join(err, stream.Close())
				}
			}
			return a.explain(errors.Join(stream.Err(), stream.Close()))
		},
	}
	c.Flags().StringVar(&subjob, "subjob", "", "which subjob (default: the latest)")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on while it runs")
	return c
}

func (a *app) outputCmd() *cobra.Command {
	var cat bool
	var subjob string
	c := &cobra.Command{
		Use: "output JOB", Short: "List or print a job's committed output",
		Long: `List the output folders of the committed subjobs in order of progress, or, with --cat,
print their files one after another in that order. Only what was committed is there:
each range once.`,
		Example: "  sluice output count-words\n  sluice output count-words --cat > words.txt",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if cat {
				return a.cat(cmd.Context(), c, args[0], subjob)
			}
			resp, err := c.ListOutputs(cmd.Context(), connect.NewRequest(&pb.ListOutputsRequest{Name: args[0]}))
			if err != nil {
				return err
			}
			list := resp.Msg.Outputs[:0]
			for _, o := range resp.Msg.Outputs {
				if subjob == "" || o.Subjob == subjob {
					list = append(list, o)
				}
			}
			return show(a, list, outputColumns(), (*pb.Output).GetPath, "no committed output yet")
		},
	}
	c.Flags().BoolVar(&cat, "cat", false, "print the files one after another")
	c.Flags().StringVar(&subjob, "subjob", "", "only this subjob's")
	return a.output(c)
}

func (a *app) cat(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, name, subjob string) error {
	stream, err := c.ReadOutput(ctx, connect.NewRequest(&pb.ReadOutputRequest{Name: name, Subjob: subjob}))
	if err != nil {
		return a.explain(err)
	}
	for stream.Receive() {
		if _, err := a.Out.Write(stream.Msg().Data); err != nil {
			return errors.Join(err, stream.Close())
		}
	}
	return a.explain(errors.Join(stream.Err(), stream.Close()))
}

func outputColumns() []column[*pb.Output] {
	type out = *pb.Output
	return []column[out]{
		{key: "subjob", head: "SUBJOB", value: func(o out) any { return o.Subjob }},
		{head: "RANGE", text: func(o out) string { return rangeText(o.Range) }},
		{key: "from", value: func(o out) any { return o.Range.GetFrom() }},
		{key: "to", value: func(o out) any { return o.Range.GetTo() }},
		{key: "files", head: "FILES", value: func(o out) any { return append([]string{}, o.Files...) }, text: func(o out) string { return fmt.Sprint(len(o.Files)) }},
		{key: "bytes", head: "SIZE", value: func(o out) any { return o.Bytes }, text: func(o out) string { return size(o.Bytes) }},
		{key: "path", head: "PATH", value: func(o out) any { return o.Path }},
	}
}
