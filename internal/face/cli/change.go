package cli

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
)

func (a *app) cancelCmd() *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "cancel JOB...", Aliases: []string{"scancel"}, Short: "Cancel jobs",
		Long: `Cancel jobs; what was committed stays. Subjobs that run get SIGTERM, and SIGKILL after
the job's grace or 30 seconds, whichever is shorter. A job is over when its last subjob
has ended, and within 60 seconds in any case: what has not ended, is not stored or is not
known to be in its place by then is not waited for. "sluice job" says what it waits for,
"sluice wait" waits.`,
		Example: "  sluice cancel count-words",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.forEachSaying(args, func(name string) (string, error) {
				_, err := c.Cancel(cmd.Context(), connect.NewRequest(&pb.CancelRequest{Name: name, RequestId: request()}))
				if err != nil || slices.Contains([]string{"json", "yaml", "name"}, a.Format) {
					return "cancelled", err
				}
				return "cancelled" + ending(cmd.Context(), c, name), nil
			})
		},
	})
}

// ending says of a job that was cancelled how long it may be until it is over; empty where it is, or where that can't be asked.
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

// forEach does something to each name, goes on after an error, and says what was done: at once to people, at the end to
// programs.
func (a *app) forEach(names []string, done string, do func(string) error) error {
	return a.forEachSaying(names, func(name string) (string, error) { return done, do(name) })
}

// forEachSaying does the same where what was done differs.
func (a *app) forEachSaying(names []string, do func(string) (done string, err error)) error {
	var errs []error
	did := []command.Record{}
	for _, n := range names {
		done, err := do(n)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n, err))
			continue
		}
		switch a.Format {
		case "json", "yaml":
			did = append(did, command.Record{{Key: "name", Value: n}, {Key: "done", Value: done}})
		case "name":
			fmt.Fprintln(a.Out, n)
		default:
			fmt.Fprintf(a.Out, "%s %s\n", n, done)
		}
	}
	if a.Format == "json" || a.Format == "yaml" {
		errs = append(errs, a.Dump(did))
	}
	return errors.Join(errs...)
}

// isSlice tells a slice's id (node/gpu/instance) from a job's name, which has no slash.
func isSlice(name string) bool { return strings.Contains(name, "/") }

func (a *app) pauseCmd() *cobra.Command {
	var length spanFlag
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
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			for _, n := range args {
				if length.lengthFlag != 0 && !isSlice(n) {
					return command.Usage("--for is for slices, and %s is a job: it is paused until you resume it", n)
				}
			}
			if err := a.agreed(cmd.Context(), c, args, time.Duration(length.lengthFlag), yes); err != nil {
				return err
			}
			return a.forEach(args, "paused", func(name string) error {
				if isSlice(name) {
					return a.takeBack(cmd.Context(), c, name, time.Duration(length.lengthFlag))
				}
				_, err := c.PauseJob(cmd.Context(), connect.NewRequest(&pb.PauseJobRequest{Name: name, Pause: true, RequestId: request()}))
				return err
			})
		},
	}
	c.Flags().Var(&length, "for", "for a slice: how long (default: until resumed)")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "whatever it costs the subjobs that run there")
	return a.Output(c)
}

// takeBack reserves a slice for its owner, from now.
func (a *app) takeBack(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, slice string, length time.Duration) error {
	m := a.taking(slice, length)
	m.RequestId = request()
	resp, err := c.Reserve(ctx, connect.NewRequest(m))
	if err == nil {
		a.doubled(resp.Msg)
	}
	return err
}

// taking is the reservation that takes a slice back.
func (a *app) taking(slice string, length time.Duration) *pb.ReserveRequest {
	m := &pb.ReserveRequest{Slice: slice, Kind: pb.Reservation_OWNER, Truncate: true, Source: source()}
	if length > 0 {
		now := a.Now()
		m.Start, m.End = timestamppb.New(now), timestamppb.New(now.Add(length))
	}
	return m
}

// source is who asks, for people.
func source() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "somebody"
}

func (a *app) resumeCmd() *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "resume JOB|SLICE...", Short: "Let a paused job go on, or give a slice back",
		Example: "  sluice resume count-words\n  sluice resume node-1/0/gpu",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.forEach(args, "resumed", func(name string) error {
				if isSlice(name) {
					return giveBack(cmd.Context(), c, name)
				}
				_, err := c.PauseJob(cmd.Context(), connect.NewRequest(&pb.PauseJobRequest{Name: name, RequestId: request()}))
				return err
			})
		},
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
			if _, err := c.Unreserve(ctx, connect.NewRequest(&pb.UnreserveRequest{Id: r.Id, RequestId: request()})); err != nil {
				return err
			}
			given++
		}
	}
	switch {
	case !known:
		return errkind.Errorf(errkind.NotFound, "no such slice; `sluice slices` lists them")
	case given == 0:
		return errkind.Errorf(errkind.NotFound, "its owner has not paused it; `sluice slices -o wide` shows what is reserved, `sluice unreserve` withdraws it")
	}
	return nil
}
