package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// Waiting is how somebody waits for jobs.
type Waiting struct {
	// Timeout ends it; 0: never.
	Timeout show.Length
	// quiet: no progress is shown.
	Quiet bool
}

// Flags are those of commands that wait; with is the flag that they need to count.
func (w *Waiting) Flags(c *cobra.Command, with string) {
	c.Flags().Var(&w.Timeout, "timeout", with+"how long to wait (default: for ever)")
	c.Flags().BoolVarP(&w.Quiet, "quiet", "q", false, with+"say nothing of how far the jobs are")
}

// WaitCmd is the command wait.
func WaitCmd(a *session.Session) *cobra.Command {
	var w Waiting
	c := &cobra.Command{
		Use: "wait JOB...", Short: "Wait until jobs are over",
		Long: `Wait until all the named jobs are over. Exit 0 if all completed, 1 if one did not,
4 if the time was over before.

How far they are, and when they may be done, stands meanwhile on stderr: in one line at
a terminal, else in a line now and then. A daemon that is restarted is waited for.`,
		Example: "  sluice wait count-words && sluice output count-words --cat\n  sluice wait train --timeout 2h\n  sluice wait a b c " +
			"--quiet -o json",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			return Wait(ctx, a, c, args, w)
		}),
	}
	w.Flags(c, "")
	return a.Output(c)
}

// Wait asks until all jobs are over or the time is, and shows how they stand then.
func Wait(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, names []string, w Waiting) error {
	jobs, err := Await(ctx, a, c, names, w)
	if err != nil {
		return err
	}
	return waited(a, jobs, time.Duration(w.Timeout))
}

// Await asks until all jobs are over or the time is, and returns them as they are then.
func Await(ctx context.Context, a *session.Session, c session.Client, names []string, w Waiting) ([]*pb.Job, error) {
	start, timeout := time.Now(), time.Duration(w.Timeout)
	m := Meter(a, w.Quiet)
	defer m.End()
	away := a.Away(m.Note)
	var jobs []*pb.Job
	for {
		step := m.step()
		if !away.Heard || away.Pause > 0 { // whether there is a daemon, and how the jobs stand, is learned at once
			step = 0
		}
		if timeout > 0 {
			step = min(step, max(0, timeout-time.Since(start)))
		}
		resp, err := waitOnce(ctx, c, names, step)
		over := timeout > 0 && time.Since(start) >= timeout
		switch {
		case ctx.Err() != nil:
			return jobs, &command.Failure{Code: command.ExitFailed,
				Err: fmt.Errorf("interrupted; what was submitted goes on: `sluice wait %s` waits again", strings.Join(names, " "))}
		case err != nil && over && away.Heard:
			return jobs, nil
		case err != nil:
			if !away.Again(ctx, err) {
				return jobs, err
			}
			continue
		}
		away.Answered()
		if jobs = resp.Jobs; resp.Done || over {
			m.End()
			return jobs, nil
		}
		m.show(jobs)
	}
}

// waitOnce asks once, and does not hold on to a daemon that has stopped answering.
func waitOnce(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, names []string, step time.Duration) (*pb.WaitJobResponse,
	error) {
	ctx, cancel := context.WithTimeout(ctx, step+session.CallTime)
	defer cancel()
	resp, err := c.WaitJob(ctx, connect.NewRequest(&pb.WaitJobRequest{Names: names, Timeout: durationpb.New(step)}))
	if err != nil {
		return nil, err
	}
	return resp.Msg, nil
}

// waited shows how jobs stand at the end of a wait, and is the error that this ends in.
func waited(a *session.Session, jobs []*pb.Job, timeout time.Duration) error {
	if err := ended(a, jobs); err != nil {
		return err
	}
	var open, bad []string
	for _, j := range jobs {
		if !j.Final {
			open = append(open, j.Name)
		} else if j.State != pb.Job_COMPLETED {
			bad = append(bad, j.Name+" "+pb.Word(j.State))
		}
	}
	switch {
	case len(bad) > 0:
		return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("did not complete: %s", strings.Join(bad, ", "))}
	case len(open) > 0:
		return &command.Failure{Code: command.ExitTimeout, Err: fmt.Errorf("not over after %s: %s", command.Short(timeout),
			strings.Join(open, ", "))}
	}
	return nil
}

// ended shows how jobs stand at the end of a wait.
func ended(a *session.Session, jobs []*pb.Job) error {
	if a.Format != "table" {
		return command.Show(a.App, jobs, JobColumns(a), (*pb.Job).GetName, "")
	}
	for _, j := range jobs {
		line := fmt.Sprintf("job %s %s, %s %ss", j.Name, pb.Word(j.State), Progress(j), j.Unit)
		if j.Reason != "" {
			line += ": " + j.Reason
		}
		fmt.Fprintln(a.Out, command.Flat(line))
		for _, h := range j.Hints {
			fmt.Fprintln(a.Out, command.Flat("    "+h))
		}
	}
	return nil
}
