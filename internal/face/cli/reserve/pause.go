package reserve

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// PauseCmd is the command pause.
func PauseCmd(a *session.Session) *cobra.Command {
	var length show.Span
	var yes bool
	c := &cobra.Command{
		Use: "pause JOB|SLICE...", Short: "Hold a job back, or take a slice back now",
		Long: `Pause a job: it gets no new windows; what runs ends by itself.

Pause a slice: its owner takes it back now, for the time that --for gives, or until
"sluice resume". What runs there is warned at once and stopped; what it has
checkpointed by then counts. A rigid job starts again from the beginning: where one runs
there, or a minute and more of other work may be lost, it says what and asks at a
terminal, and elsewhere wants --yes.`,
		Example: "  sluice pause count-words\n  sluice pause node-1/0/gpu --for 2h\n  sluice pause node-1/0/gpu --yes        # in a script",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			for _, n := range args {
				if length.Length != 0 && !isSlice(n) {
					return command.Usage("--for is for slices, and %s is a job: it is paused until you resume it", n)
				}
			}
			if err := agreed(ctx, a, c, args, time.Duration(length.Length), yes); err != nil {
				return err
			}
			return a.ForEach(args, "paused", func(name string) error {
				if isSlice(name) {
					return takeBack(ctx, a, c, name, time.Duration(length.Length))
				}
				_, err := c.PauseJob(ctx,
					connect.NewRequest(&pb.PauseJobRequest{Name: name, Pause: true, RequestId: session.Request()}))
				return err
			})
		}),
	}
	c.Flags().Var(&length, "for", "for a slice: how long (default: until resumed)")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "whatever it costs the subjobs that run there")
	return a.Output(c)
}

// takeBack reserves a slice for its owner, from now.
func takeBack(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, slice string,
	length time.Duration) error {
	m := taking(a, slice, length)
	m.RequestId = session.Request()
	resp, err := c.Reserve(ctx, connect.NewRequest(m))
	if err == nil {
		doubled(a, resp.Msg)
	}
	return err
}

// ResumeCmd is the command resume.
func ResumeCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "resume JOB|SLICE...", Short: "Let a paused job go on, or give a slice back",
		Example: "  sluice resume count-words\n  sluice resume node-1/0/gpu",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			return a.ForEach(args, "resumed", func(name string) error {
				if isSlice(name) {
					return giveBack(ctx, c, name)
				}
				_, err := c.PauseJob(ctx, connect.NewRequest(&pb.PauseJobRequest{Name: name, RequestId: session.Request()}))
				return err
			})
		}),
	})
}

// giveBack withdraws what the owner reserved on a slice.
func giveBack(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, slice string) error {
	resp, err := c.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
	if err != nil {
		return err
	}
	known, given := false, 0
	for _, s := range resp.Msg.Slices {
		if s.Id != slice {
			continue
		}
		known = true
		for _, r := range s.Reservations {
			if r.Kind != pb.Reservation_OWNER {
				continue
			}
			if _, err := c.Unreserve(ctx, connect.NewRequest(&pb.UnreserveRequest{Id: r.Id, RequestId: session.Request()})); err != nil {
				return err
			}
			given++
		}
	}
	switch {
	case !known:
		return errkind.Errorf(errkind.NotFound, "no such slice; `sluice slices` lists them")
	case given == 0:
		return errkind.Errorf(errkind.NotFound, "its owner has not paused it; `sluice slices -o wide` shows what is reserved, `sluice "+
			"unreserve` withdraws it")
	}
	return nil
}
