package jobs

import (
	"context"
	"slices"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/face/cli/session"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.ForEachSaying(args, func(name string) (string, error) {
				_, err := c.Cancel(cmd.Context(), connect.NewRequest(&pb.CancelRequest{Name: name, RequestId: session.Request()}))
				if err != nil || slices.Contains([]string{"json", "yaml", "name"}, a.Format) {
					return "cancelled", err
				}
				return "cancelled" + ending(cmd.Context(), c, name), nil
			})
		},
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
