package cli

import (
	"fmt"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
)

func (a *app) reserveCmd() *cobra.Command {
	var all, truncate bool
	var kind, who string
	var h hours
	c := &cobra.Command{
		Use: "reserve SLICE|--all", Short: "Take time on slices off the market",
		Long: `Take time on one slice, or on all, off the market: for a drain, for maintenance, for
serving hours that repeat, for a planned change of MIG geometry, or because the provider
reclaims the machine. Windows end
where a reservation begins. Without --truncate it waits behind the subjobs that run;
with it they are warned at once and cut short.

A moment is now, 18:30 (the next), +20m (from now) or 2026-03-01T18:00:00Z.

What repeats after whole days, or on --days, begins at the same time of day by the clock
of your time zone, or of --zone, also after clocks have changed. --for is how long it
lasts, as time passes; --end is when it is over by that clock. A time of day that a change
skips is as much later (02:30 is 03:30 where 03:00 follows 02:00); of one that there is
twice the first counts. Other intervals, such as 36h, are elapsed time.`,
		Example: `  sluice reserve --all --kind drain
  sluice reserve node-1/0/gpu --kind serving --start 08:00 --for 10h --every 24h
  sluice reserve node-1/0/gpu --kind serving --start 08:00 --end 18:00 --days mon-fri --zone Europe/Berlin
  sluice reserve --all --kind owner --start 00:00 --for 24h --days sat,sun
  sluice reserve --all --kind maintenance --start 03:00 --for 1h --every 24h --zone UTC
  sluice reserve node-1/0/gpu --kind reclaim --start +2m --truncate
  sluice reserve node-1/0/1g.10gb@3 --kind geometry --start +30m --for 5m`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return command.Usage("name one slice, or give --all; `sluice slices` lists them")
			}
			m := &pb.ReserveRequest{Kind: pb.Value[pb.Reservation_Kind](kind), Truncate: truncate, Source: who, RequestId: request()}
			if len(args) == 1 {
				m.Slice = args[0]
			}
			if m.Kind == 0 {
				return command.Usage("--kind %.80q: want drain, maintenance, serving, reclaim, geometry or owner", kind)
			}
			if err := a.fill(m, &h); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			resp, err := c.Reserve(cmd.Context(), connect.NewRequest(m))
			if err != nil {
				return err
			}
			a.doubled(resp.Msg)
			a.sayRepeats(resp.Msg.Reservations)
			return command.Show(a.App, resp.Msg.Reservations, a.reservationColumns(),
				func(r *pb.Reservation) string { return strconv.FormatUint(r.Id, 10) }, "nothing to reserve: there are no slices")
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all slices")
	c.Flags().StringVar(&kind, "kind", "drain", "what for: drain, maintenance, serving, reclaim, geometry or owner")
	c.Flags().StringVar(&h.start, "start", "", "from when (default: now)")
	c.Flags().Var(&h.length, "for", "how long (default: no known end)")
	c.Flags().StringVar(&h.end, "end", "", "until when")
	c.Flags().Var(&h.every, "every", "repeat it, from start to start; whole days follow the clock of the time zone")
	c.Flags().StringVar(&h.days, "days", "", "repeat it on these days of the week, such as mon-fri or sat,sun")
	c.Flags().StringVar(&h.zone, "zone", "", "time zone of what is said here, such as Europe/Berlin, UTC or +05:30 (default: yours)")
	c.Flags().BoolVar(&truncate, "truncate", false, "cut running subjobs short")
	c.Flags().StringVar(&who, "source", source(), "who asks, for people")
	return a.Output(c)
}

func (a *app) unreserveCmd() *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "unreserve ID...", Short: "Give reserved time back",
		Long:    "Give reserved time back to the market. `sluice slices -o wide` shows the ids.",
		Example: "  sluice unreserve 17",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				if n, err := strconv.ParseUint(id, 10, 64); err != nil || n == 0 {
					return command.Usage("%q is no reservation's id; `sluice slices -o wide` shows them", id)
				}
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.forEach(args, "withdrawn", func(id string) error {
				n, _ := strconv.ParseUint(id, 10, 64) // checked above
				_, err := c.Unreserve(cmd.Context(), connect.NewRequest(&pb.UnreserveRequest{Id: n, RequestId: request()}))
				return err
			})
		},
	})
}

func (a *app) unquarantineCmd() *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "unquarantine SLICE...", Aliases: []string{"release"}, Short: "Lift a slice's quarantine",
		Long: `Lift a slice's quarantine after you have looked: the daemon quarantined it because
processes remained there that it could not end. It is lifted by itself once they are
gone. If they are still there, they and the next subjob will be in each other's way.`,
		Example: "  sluice unquarantine node-1/0/gpu",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.forEachSaying(args, func(slice string) (string, error) {
				resp, err := c.Release(cmd.Context(), connect.NewRequest(&pb.ReleaseRequest{Slice: slice, RequestId: request()}))
				if err != nil {
					return "", err
				}
				return strings.TrimPrefix(resp.Msg.Text, slice+" is "), nil
			})
		},
	})
}

func (a *app) statusCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Aliases: []string{"about"}, Short: "Say what the daemon is and how it stands",
		Example: "  sluice status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			resp, err := c.About(cmd.Context(), connect.NewRequest(&pb.AboutRequest{}))
			if err != nil {
				return err
			}
			m := resp.Msg.About
			switch a.Format {
			case "name":
				fmt.Fprintln(a.Out, m.Node)
				return nil
			case "json", "yaml":
				return a.Dump(command.Record{{Key: "version", Value: m.Version}, {Key: "commit", Value: m.Commit}, {Key: "go", Value: m.Go}, {Key: "node", Value: m.Node}, {Key: "dataDir", Value: m.DataDir},
					{Key: "listen", Value: m.Listen}, {Key: "mechanism", Value: m.Mechanism}, {Key: "policy", Value: m.Policy}, {Key: "isolation", Value: m.Isolation}, {Key: "inventory", Value: m.Inventory},
					{Key: "singleUser", Value: m.SingleUser}, {Key: "started", Value: stamp(m.Started)}, {Key: "uptimeSeconds", Value: seconds(m.Uptime)},
					{Key: "journalBytes", Value: m.JournalBytes}, {Key: "journalSeq", Value: m.JournalSeq}, {Key: "trouble", Value: m.Trouble}, {Key: "zones", Value: m.Zones}, {Key: "nodes", Value: m.Nodes}})
			}
			zones := ""
			if len(m.Zones) > 1 || len(m.Nodes) > 1 {
				zones = fmt.Sprintf("%s; nodes %s", strings.Join(m.Zones, ", "), strings.Join(m.Nodes, ", "))
			}
			users := "several"
			if m.SingleUser {
				users = "one: subjobs run as the daemon's own user"
			}
			a.lines([][2]string{{"version", m.Version + " " + m.Commit + " " + m.Go}, {"node", m.Node}, {"zones", zones}, {"data", m.DataDir}, {"listens", m.Listen},
				{"mechanism", m.Mechanism}, {"policy", m.Policy}, {"isolation", m.Isolation}, {"inventory", m.Inventory}, {"users", users},
				{"up", command.Short(m.Uptime.AsDuration())}, {"journal", fmt.Sprintf("%s, record %d", command.Size(m.JournalBytes), m.JournalSeq)}, {"TROUBLE", m.Trouble}})
			return nil
		},
	}
	return a.Output(c)
}
