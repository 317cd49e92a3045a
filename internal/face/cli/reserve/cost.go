package reserve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"os/user"

	"google.golang.org/protobuf/types/known/timestamppb"
	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// agreed says what taking slices back costs the subjobs that run there. If that is much it asks for confirmation at a terminal; after an
// error nothing was confirmed or done.
func agreed(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, names []string, length time.Duration,
	yes bool) error {
	var cuts []*pb.Cut
	for _, n := range names {
		if !isSlice(n) {
			continue
		}
		m := taking(a, n, length)
		m.DryRun = true
		resp, err := c.Reserve(ctx, connect.NewRequest(m))
		if err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
		for _, cut := range resp.Msg.Cuts {
			if !slices.ContainsFunc(cuts, func(o *pb.Cut) bool { return o.Subjob == cut.Subjob }) {
				cuts = append(cuts, cut)
			}
		}
	}
	costly := false
	var lines strings.Builder
	for _, cut := range cuts {
		costly = costly || cut.Costly
		fmt.Fprintf(&lines, "  %s\n", cost(cut))
	}
	switch {
	case len(cuts) == 0:
		return nil
	case yes || !costly:
		fmt.Fprintf(a.Err, "this cuts short:\n%s", lines.String())
		return nil
	case !a.Interactive():
		return command.Usage("this would cut short:\n%sgive --yes if that is meant; nothing was done", lines.String())
	}
	fmt.Fprintf(a.Err, "this cuts short:\n%spause all the same? [y/N] ", lines.String())
	return a.Confirmed(ctx)
}

// cost is what is lost of one subjob, in words.
func cost(c *pb.Cut) string {
	what := fmt.Sprintf("%s (%s, subjob %s)", c.Job, pb.Word(c.Kind), c.Subjob)
	lost := command.Short(c.AtRisk.AsDuration())
	switch {
	case c.Withdrawn:
		return what + ": has not begun; it gets another place"
	case c.Kind == pb.Job_RIGID && c.Slices > 1:
		return fmt.Sprintf("%s: has run %s on %d slices, and starts again from the beginning", what, command.Short(c.Ran.AsDuration()),
			c.Slices)
	case c.Kind == pb.Job_RIGID:
		return fmt.Sprintf("%s: has run %s, and starts again from the beginning", what, command.Short(c.Ran.AsDuration()))
	}
	return fmt.Sprintf("%s: has run %s and reported %d of %d units; up to %s is done again, unless it leaves a checkpoint when it is "+
		"warned",
		what, command.Short(c.Ran.AsDuration()), c.Reported, c.Range.GetTo()-c.Range.GetFrom(), lost)
}

// doubled reports reservations that existed already, and others at the same time.
func doubled(a *session.Session, m *pb.ReserveResponse) {
	for _, id := range m.Stood {
		fmt.Fprintf(a.Err, "sluice: the same reservation stands already: %d\n", id)
	}
	for _, r := range m.Overlaps {
		fmt.Fprintf(a.Err, "sluice: %s is reserved at that time already: %d (%s)%s; `sluice unreserve %d` withdraws it\n", r.Slice, r.Id,
			pb.Word(r.Kind), by(r.Source), r.Id)
	}
}

func by(source string) string {
	if source == "" {
		return ""
	}
	return " by " + source
}

// isSlice tells a slice's id (node/gpu/instance) from a job's name, which has no slash.
func isSlice(name string) bool { return strings.Contains(name, "/") }

// taking is the reservation that takes a slice back.
func taking(a *session.Session, slice string, length time.Duration) *pb.ReserveRequest {
	m := &pb.ReserveRequest{Slice: slice, Kind: pb.Reservation_OWNER, Truncate: true, Source: source()}
	if length > 0 {
		now := a.Now()
		m.Start, m.End = timestamppb.New(now), timestamppb.New(now.Add(length))
	}
	return m
}

// source names the caller.
func source() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "somebody"
}
