package jobs

import (
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// CancelCmd is the command cancel.
func CancelCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "cancel JOB...", Aliases: []string{"scancel"}, Short: "Cancel jobs",
		Long: `Cancel jobs; what was committed stays. Subjobs that run get SIGTERM, and SIGKILL after
the job's grace or 30 seconds, whichever is shorter. A job is over when its last subjob
has ended, and within 60 seconds in any case: what has not ended, is not stored or is not
known to be in its place by then is not waited for. "sluice job" says what it waits for,
"sluice wait" waits.`,
		Example: "  sluice cancel count-words",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			return a.ForEachSaying(args, func(name string) (string, error) {
				_, err := c.Cancel(ctx, connect.NewRequest(&pb.CancelRequest{Name: name, RequestId: session.Request()}))
				if err != nil || slices.Contains([]string{"json", "yaml", "name"}, a.Format) {
					return "cancelled", err
				}
				return "cancelled" + ending(ctx, c, name), nil
			})
		}),
	})
}

// ending says how long a cancelled job may take to end; empty if it has ended, or if that can't be asked.
func ending(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, name string) string {
	resp, err := c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name}))
	switch {
	case err != nil || resp.Msg.GetJob().GetFinal():
		return ""
	case resp.Msg.GetJob().GetRunning() > 0:
		return "; its last subjob ends within 60 s"
	default:
		return "; it is over within 60 s"
	}
}

// RequeueCmd is the command requeue.
func RequeueCmd(a *session.Session) *cobra.Command {
	var deadline string
	c := &cobra.Command{
		Use: "requeue JOB...", Short: "Run again what is left of jobs that are over",
		Long: `Run again what is left of jobs that were cancelled, have failed or have expired. What they
have committed stays and is not done again: output, skipped units, the checkpoint, and
what was learned of their run time and memory. Failures are counted anew, and so is
their wait.

A job whose deadline has passed needs another one. To run a job again from the start,
see "sluice submit --replace".`,
		Example: "  sluice requeue count-words\n  sluice requeue train --deadline +8h\n  sluice requeue train --deadline none",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := &pb.RequeueRequest{NoDeadline: deadline == "none"}
			if deadline != "" && !m.NoDeadline {
				t, err := show.When(deadline, a.Now())
				if err != nil {
					return command.Usage("--deadline: %w, or none", err)
				}
				m.Deadline = timestamppb.New(t)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.ForEach(args, "requeued", func(name string) error {
				_, err := c.Requeue(cmd.Context(), connect.NewRequest(&pb.RequeueRequest{
					Name: name, RequestId: session.Request(), Deadline: m.Deadline, NoDeadline: m.NoDeadline,
				}))
				return err
			})
		},
	}
	c.Flags().StringVar(&deadline, "deadline", "", "another deadline, a moment as for reserve; or none")
	return a.Output(c)
}

// DeleteCmd is the command delete.
func DeleteCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "delete JOB...", Short: "Forget jobs that are over, and remove their files",
		Long: `Forget jobs that are over, now instead of when they have been kept long enough: their
output, checkpoints and logs are removed, and their names are free. A job that is not
over has to be cancelled first.`,
		Example: "  sluice delete count-words",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			return a.ForEach(args, "deleted", func(name string) error {
				_, err := c.Delete(ctx, connect.NewRequest(&pb.DeleteRequest{Name: name, RequestId: session.Request()}))
				return err
			})
		}),
	}
	return a.Output(c)
}

// AgentCmd is the command agent.
func AgentCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "agent", Short: "What the agent of an external job needs",
		Long: `An external job (kind external in its job file) is cut by its owner's own agent, a
program that answers windows over the API. The Go package sdk/agent and the Python
module sluice_agent do the talking; examples/agents has one of each.`,
		Example: "  sluice agent key train",
	}
	key := &cobra.Command{
		Use: "key JOB", Short: "Print the key of an external job's agent",
		Long: `Print the key that opens the negotiation of one external job and nothing else. It is
valid as long as the job is kept. With it a program can bid for the job: hand it to the
agent by its environment, not on its command line.`,
		Example: "  SLUICE_AGENT_KEY=$(sluice agent key train) python3 agent.py train",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			resp, err := c.AgentKey(ctx, connect.NewRequest(&pb.AgentKeyRequest{Job: args[0]}))
			if err != nil {
				return err
			}
			if a.Format == "json" || a.Format == "yaml" {
				return a.Dump(command.Record{{Key: "job", Value: args[0]}, {Key: "key", Value: resp.Msg.Key}})
			}
			_, err = fmt.Fprintln(a.Out, resp.Msg.Key)
			return err
		}),
	}
	c.AddCommand(a.Output(key))
	return c
}
