package jobs

import (
	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

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
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.ForEach(args, "deleted", func(name string) error {
				_, err := c.Delete(cmd.Context(), connect.NewRequest(&pb.DeleteRequest{Name: name, RequestId: session.Request()}))
				return err
			})
		},
	}
	return a.Output(c)
}
