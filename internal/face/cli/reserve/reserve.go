// Package reserve has the commands that take time on slices off the market and give it back, once or repeatedly.
package reserve

import (
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// ReserveCmd is the command reserve.
func ReserveCmd(a *session.Session) *cobra.Command {
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
			m := &pb.ReserveRequest{Kind: pb.Value[pb.Reservation_Kind](kind), Truncate: truncate, Source: who,
				RequestId: session.Request()}
			if len(args) == 1 {
				m.Slice = args[0]
			}
			if m.Kind == 0 {
				return command.Usage("--kind %.80q: want drain, maintenance, serving, reclaim, geometry or owner", kind)
			}
			if err := fill(a, m, &h); err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			resp, err := c.Reserve(cmd.Context(), connect.NewRequest(m))
			if err != nil {
				return err
			}
			doubled(a, resp.Msg)
			sayRepeats(a, resp.Msg.Reservations)
			return command.Show(a.App, resp.Msg.Reservations, reservationColumns(),
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

// UnreserveCmd is the command unreserve.
func UnreserveCmd(a *session.Session) *cobra.Command {
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
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.ForEach(args, "withdrawn", func(id string) error {
				n, _ := strconv.ParseUint(id, 10, 64) // checked above
				_, err := c.Unreserve(cmd.Context(), connect.NewRequest(&pb.UnreserveRequest{Id: n, RequestId: session.Request()}))
				return err
			})
		},
	})
}

// UnquarantineCmd is the command unquarantine.
func UnquarantineCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "unquarantine SLICE...", Aliases: []string{"release"}, Short: "Lift a slice's quarantine",
		Long: `Lift a slice's quarantine after you have looked: the daemon quarantined it because
processes remained there that it could not end. It is lifted by itself once they are
gone. If they are still there, they and the next subjob will be in each other's way.`,
		Example: "  sluice unquarantine node-1/0/gpu",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Renamed(cmd, "release")
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.ForEachSaying(args, func(slice string) (string, error) {
				resp, err := c.Release(cmd.Context(), connect.NewRequest(&pb.ReleaseRequest{Slice: slice, RequestId: session.Request()}))
				if err != nil {
					return "", err
				}
				return strings.TrimPrefix(resp.Msg.Text, slice+" is "), nil
			})
		},
	})
}
