package cli

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

func statusCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "status", Aliases: []string{"about"}, Short: "Say what the daemon is and how it stands",
		Example: "  sluice status",
		Args:    cobra.NoArgs,
		RunE: a.Calling(func(ctx context.Context, c session.Client, _ []string) error {
			resp, err := c.About(ctx, connect.NewRequest(&pb.AboutRequest{}))
			if err != nil {
				return err
			}
			m := resp.Msg.About
			switch a.Format {
			case "name":
				fmt.Fprintln(a.Out, m.Node)
				return nil
			case "json", "yaml":
				return a.Dump(command.Record{{Key: "version", Value: m.Version}, {Key: "commit", Value: m.Commit}, {Key: "go", Value: m.Go},
					{Key: "node", Value: m.Node}, {Key: "dataDir", Value: m.DataDir},
					{Key: "listen", Value: m.Listen}, {Key: "mechanism", Value: m.Mechanism}, {Key: "policy", Value: m.Policy},
					{Key: "isolation", Value: m.Isolation}, {Key: "inventory", Value: m.Inventory},
					{Key: "singleUser", Value: m.SingleUser}, {Key: "started", Value: show.Stamp(m.Started)},
					{Key: "uptimeSeconds", Value: show.Seconds(m.Uptime)},
					{Key: "journalBytes", Value: m.JournalBytes}, {Key: "journalSeq", Value: m.JournalSeq},
					{Key: "trouble", Value: m.Trouble}, {Key: "zones", Value: m.Zones}, {Key: "nodes", Value: m.Nodes}})
			}
			zones := ""
			if len(m.Zones) > 1 || len(m.Nodes) > 1 {
				zones = fmt.Sprintf("%s; nodes %s", strings.Join(m.Zones, ", "), strings.Join(m.Nodes, ", "))
			}
			users := "several"
			if m.SingleUser {
				users = "one: subjobs run as the daemon's own user"
			}
			show.Lines(a, [][2]string{{"version", m.Version + " " + m.Commit + " " + m.Go}, {"node", m.Node}, {"zones", zones},
				{"data", m.DataDir}, {"listens", m.Listen},
				{"mechanism", m.Mechanism}, {"policy", m.Policy}, {"isolation", m.Isolation}, {"inventory", m.Inventory}, {"users", users},
				{"up", command.Short(m.Uptime.AsDuration())},
				{"journal", fmt.Sprintf("%s, record %d", command.Size(m.JournalBytes), m.JournalSeq)}, {"TROUBLE", m.Trouble}})
			return nil
		}),
	}
	return a.Output(c)
}

func versionCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version of this program",
		Long:    "Print the version of this program. `sluice status` says the daemon's.",
		Example: "  sluice version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, commit := a.Version()
			switch a.Format {
			case "json", "yaml":
				return a.Dump(command.Record{{Key: "version", Value: version}, {Key: "commit", Value: commit},
					{Key: "go", Value: runtime.Version()}, {Key: "platform", Value: runtime.GOOS + "/" + runtime.GOARCH}})
			case "name":
				fmt.Fprintln(a.Out, version)
				return nil
			}
			fmt.Fprintf(a.Out, "sluice %s %s %s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	return a.Output(c)
}
