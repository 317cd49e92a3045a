package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// ZonesCmd is the command zones.
func ZonesCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "zones", Short: "List zones and the jobs that are at home there, or drain one",
		Long: `List the zones, each with the slices of its nodes and the jobs that have their home there and
are not over. A daemon has one zone, unless its --config file says otherwise. Under mechanism
laminar it is also told how many tickets search there and how many wait, and by size what is
free there, less what is looked for, with the share of draws that the zone gets.

Where a zone was drained for good it says so, and what is left there: jobs at home (HOMED), and
those that are over and not archived yet (OVER). One with none of either is empty, and may be
left out of zones: in the file of --config at the daemon's next start.`,
		Example: "  sluice zones\n  sluice zones -o json\n  sluice zones drain local-2 --wait",
		Args:    cobra.NoArgs,
		RunE: a.Calling(func(ctx context.Context, c session.Client, _ []string) error {
			resp, err := c.ListZones(ctx, connect.NewRequest(&pb.ListZonesRequest{}))
			if err != nil {
				return err
			}
			return command.Show(a.App, resp.Msg.Zones, zoneColumns(resp.Msg.Zones), func(z *pb.Zone) string { return z.Name }, "no zones")
		}),
	}
	c.AddCommand(zonesDrainCmd(a))
	return a.Output(c)
}

// zoneColumns are the properties of zones; of the search for places where there is one.
func zoneColumns(all []*pb.Zone) []command.Column[*pb.Zone] {
	type zone = *pb.Zone
	columns := []command.Column[zone]{
		{Key: "name", Head: "ZONE", Value: func(z zone) any { return z.Name }},
		{Key: "slices", Head: "SLICES", Value: func(z zone) any { return z.Slices }},
		{Key: "homed", Head: "HOMED", Value: func(z zone) any { return z.Homed }},
		{Key: "waiting", Head: "WAITING", Value: func(z zone) any { return z.Waiting }},
		{Key: "running", Head: "RUNNING", Value: func(z zone) any { return z.Running }},
	}
	some := slices.ContainsFunc(all, zone.GetDrained)
	columns = append(columns,
		command.Column[zone]{Key: "over", Head: "OVER", Wide: !some, Value: func(z zone) any { return z.Over },
			Text: func(z zone) string { return show.NonZero(int64(z.Over)) }},
		command.Column[zone]{Key: "drained", Head: "DRAINED", Wide: !some, Value: func(z zone) any { return z.Drained }, Text: drained},
	)
	if len(all) > 0 && all[0].Search != nil {
		columns = append(columns,
			command.Column[zone]{Key: "tickets", Head: "TICKETS", Value: func(z zone) any { return z.Search.GetTickets() }},
			command.Column[zone]{Key: "parked", Head: "PARKED", Value: func(z zone) any { return z.Search.GetParked() }},
			command.Column[zone]{Key: "rooms", Head: "ROOM", Value: func(z zone) any { return z.Search.GetRooms() }, Text: rooms},
		)
	}
	return append(columns, command.Column[zone]{Key: "nodes", Head: "NODES", Wide: true, Value: func(z zone) any { return z.Nodes },
		Text: func(z zone) string { return strings.Join(z.Nodes, ",") }})
}

// drained reports whether a zone was drained, and whether it may go.
func drained(z *pb.Zone) string {
	switch {
	case !z.Drained:
		return ""
	case empty(z):
		return "yes, and empty"
	}
	return "yes"
}

// rooms are what a zone has free by size, and how often it is drawn: 20Gi: 3 (25%).
func rooms(z *pb.Zone) string {
	if !z.Search.GetAlive() {
		return "no node is usable"
	}
	list := make([]string, 0, len(z.Search.GetRooms()))
	for _, r := range z.Search.GetRooms() {
		list = append(list, fmt.Sprintf("%s: %d (%.0f%%)", command.Size(r.Size), r.Free-r.Demand, 100*r.Share))
	}
	return strings.Join(list, ", ")
}
