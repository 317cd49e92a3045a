package cli

import (
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
)

func (a *app) zonesCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "zones", Short: "List zones and the jobs that are at home there",
		Long: `List the zones, each with the slices of its nodes and the jobs that have their home there and
are not over. A daemon has one zone, unless its --config file says otherwise.`,
		Example: "  sluice zones\n  sluice zones -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			resp, err := c.ListZones(cmd.Context(), connect.NewRequest(&pb.ListZonesRequest{}))
			if err != nil {
				return err
			}
			return command.Show(a.App, resp.Msg.Zones, zoneColumns(), func(z *pb.Zone) string { return z.Name }, "no zones")
		},
	}
	return a.Output(c)
}

// zoneColumns are the properties of zones.
func zoneColumns() []command.Column[*pb.Zone] {
	type zone = *pb.Zone
	return []command.Column[zone]{
		{Key: "name", Head: "ZONE", Value: func(z zone) any { return z.Name }},
		{Key: "slices", Head: "SLICES", Value: func(z zone) any { return z.Slices }},
		{Key: "homed", Head: "HOMED", Value: func(z zone) any { return z.Homed }},
		{Key: "waiting", Head: "WAITING", Value: func(z zone) any { return z.Waiting }},
		{Key: "running", Head: "RUNNING", Value: func(z zone) any { return z.Running }},
		{Key: "nodes", Head: "NODES", Wide: true, Value: func(z zone) any { return z.Nodes }, Text: func(z zone) string { return strings.Join(z.Nodes, ",") }},
	}
}
