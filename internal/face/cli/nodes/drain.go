package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

func zonesDrainCmd(a *session.Session) *cobra.Command {
	var w jobs.Waiting
	var yes, wait bool
	c := &cobra.Command{
		Use: "drain ZONE", Short: "Give a zone's jobs to the others, for good",
		Long: `Drain a zone for good: no job gets its home there any more, and those that have it there and
are not over move to other zones, with all that they have done. What runs ends first what it
has begun, and its output is put in its place. A job that no other zone could run waits, and
says why.

There is no way back, so it asks at a terminal, and elsewhere wants --yes. A zone that is
drained already is drained no further: with --wait this waits again.

With --wait it ends when nothing of any job is left there: jobs that are over are archived
about a minute after their end. Then the zone may be left out of zones: in the file of the
daemon's --config, at the daemon's next start; its nodes offer their slices to the others.`,
		Example: "  sluice zones drain local-2\n  sluice zones drain local-2 --yes --wait --timeout 2h\n  sluice zones drain local-2 " +
			"--yes -o json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.Timeout > 0 && !wait {
				return command.Usage("--timeout is how long --wait waits: give both, or neither")
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			return drainZone(cmd.Context(), a, c, args[0], w, wait, yes)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "without a question")
	c.Flags().BoolVar(&wait, "wait", false, "wait until nothing of any job is left there")
	w.Flags(c, "with --wait: ")
	return a.Output(c)
}

// drainZone drains a zone, and waits until it is empty.
func drainZone(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, name string, w jobs.Waiting, wait,
	yes bool) error {
	all, z, err := zonesWith(ctx, c, name)
	switch {
	case err != nil:
		return err
	case z == nil:
		return errkind.Errorf(errkind.NotFound, "there is no zone %q; there are: %s", name, strings.Join(zoneNames(all, ""), ", "))
	case len(all) == 1:
		return errkind.Errorf(errkind.Conflict, "zone %s is the only one of this daemon: its jobs would have no other home; zones: in "+
			"the file of --config says how many there are", name)
	}
	if !z.Drained {
		if err = drainAgreed(ctx, a, z, yes); err != nil {
			return err
		}
		if _, err = c.DrainZone(ctx, connect.NewRequest(&pb.DrainZoneRequest{Name: name, RequestId: session.Request()})); err != nil {
			return err
		}
		if all, z, err = zonesWith(ctx, c, name); err != nil {
			return err
		}
	}
	if wait {
		if all, z, err = untilEmpty(ctx, a, c, name, w); err != nil {
			return err
		}
	}
	r := command.Record{{Key: "name", Value: name}, {Key: "homed", Value: z.GetHomed()}, {Key: "running", Value: z.GetRunning()},
		{Key: "over", Value: z.GetOver()}, {Key: "empty", Value: empty(z)}}
	if empty(z) {
		return a.Done(name, "drained", r, fmt.Sprintf("zone %s drained, and empty: it may be left out at the daemon's next start, with "+
			"zones: [%s] and nodes: %d in the file of --config",
			name, strings.Join(zoneNames(all, name), ", "), nodesOf(all)))
	}
	return a.Done(name, "drained", r, fmt.Sprintf("zone %s drained; %s; `sluice zones drain %s --wait` ends when nothing is", name,
		remains(z), name))
}

// drainAgreed says what a drain does, and asks for confirmation at a terminal; after an error nothing was confirmed or done.
func drainAgreed(ctx context.Context, a *session.Session, z *pb.Zone, yes bool) error {
	what := fmt.Sprintf("zone %s is drained for good: %s to other zones", z.Name, show.Plural(int(z.Homed), "job that is not over moves",
		"jobs that are not over move"))
	if z.Homed == 0 {
		what = fmt.Sprintf("zone %s is drained for good: no job is at home there now, and none will be", z.Name)
	}
	if z.Running > 0 {
		what += fmt.Sprintf(", %d of which first end there what they have begun", z.Running)
	}
	switch {
	case yes:
		return nil
	case !a.Interactive():
		return command.Usage("%s, and there is no way back: give --yes if that is meant; nothing was done", what)
	}
	fmt.Fprintf(a.Err, "%s\ndrain it? [y/N] ", what)
	return a.Confirmed(ctx)
}

// untilEmpty asks until nothing of any job is left in a zone, or the time is over. A daemon that is restarted is waited for.
func untilEmpty(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, name string, w jobs.Waiting) (
	all []*pb.Zone, z *pb.Zone, err error) {
	start, timeout := time.Now(), time.Duration(w.Timeout)
	m := jobs.Meter(a, w.Quiet)
	defer m.End()
	away := a.Away(m.Note)
	away.Heard = true
	for {
		all, z, err = zonesWith(ctx, c, name)
		late := timeout > 0 && time.Since(start) >= timeout
		switch {
		case ctx.Err() != nil:
			return nil, nil, &command.Failure{Code: command.ExitFailed,
				Err: fmt.Errorf("interrupted; zone %s stays drained: `sluice zones drain %s --wait` waits again", name, name)}
		case err != nil && !late:
			if !away.Again(ctx, err) {
				return nil, nil, err
			}
			continue
		case err != nil:
			return nil, nil, err
		}
		away.Answered()
		switch {
		case empty(z):
			return all, z, nil
		case late:
			return nil, nil, &command.Failure{Code: command.ExitTimeout, Err: fmt.Errorf("zone %s is not empty after %s: %s", name,
				command.Short(timeout), remains(z))}
		}
		m.Tell(fmt.Sprintf("zone %s: %s", name, remains(z)))
		session.Rest(ctx, jobs.MeterEvery)
	}
}

// empty reports that a drained zone, or one that has left, has nothing of any job.
func empty(z *pb.Zone) bool { return z == nil || z.Drained && z.Homed == 0 && z.Over == 0 }

// remains is what is left in a drained zone.
func remains(z *pb.Zone) string {
	text := show.Plural(int(z.Homed), "job is at home there", "jobs are at home there")
	if z.Running > 0 {
		text += fmt.Sprintf(", %d of them run", z.Running)
	}
	if z.Over > 0 {
		text += fmt.Sprintf("; %s not archived yet", show.Plural(int(z.Over), "that is over is", "that are over are"))
	}
	return text
}

// zonesWith are all zones, and the one of that name, nil if there is none.
func zonesWith(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, name string) ([]*pb.Zone, *pb.Zone, error) {
	resp, err := c.ListZones(ctx, connect.NewRequest(&pb.ListZonesRequest{}))
	if err != nil {
		return nil, nil, err
	}
	if i := slices.IndexFunc(resp.Msg.Zones, func(z *pb.Zone) bool { return z.Name == name }); i >= 0 {
		return resp.Msg.Zones, resp.Msg.Zones[i], nil
	}
	return resp.Msg.Zones, nil, nil
}

// zoneNames are the names of all zones but one.
func zoneNames(all []*pb.Zone, but string) (names []string) {
	for _, z := range all {
		if z.Name != but {
			names = append(names, z.Name)
		}
	}
	return names
}

// nodesOf is how many nodes all zones have.
func nodesOf(all []*pb.Zone) (n int) {
	for _, z := range all {
		n += len(z.Nodes)
	}
	return n
}
