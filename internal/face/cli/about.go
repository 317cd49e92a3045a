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
	"sluice.dev/sluice/internal/face/cli/nodes"
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
			cluster, err := clusterOf(ctx, a)
			if err != nil {
				return err
			}
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
					{Key: "trouble", Value: m.Trouble}, {Key: "zones", Value: m.Zones}, {Key: "nodes", Value: m.Nodes},
					{Key: "cluster", Value: cluster.record()}})
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
				{"cluster", cluster.text()}, {"data", m.DataDir}, {"listens", m.Listen},
				{"mechanism", m.Mechanism}, {"policy", m.Policy}, {"isolation", m.Isolation}, {"inventory", m.Inventory}, {"users", users},
				{"up", command.Short(m.Uptime.AsDuration())},
				{"journal", fmt.Sprintf("%s, record %d", command.Size(m.JournalBytes), m.JournalSeq)}, {"TROUBLE", m.Trouble}})
			return nil
		}),
	}
	return a.Output(c)
}

// cluster is how the machines stand that have joined a head.
type cluster struct {
	head                                 bool
	joined, ready, closed, away, removed int
}

// clusterOf asks the daemon, which may be of a build that knows of no machines.
func clusterOf(ctx context.Context, a *session.Session) (c cluster, err error) {
	calls, err := a.Nodes()
	if err != nil {
		return c, err
	}
	resp, err := calls.ListNodes(ctx, connect.NewRequest(&pb.ListNodesRequest{}))
	if connect.CodeOf(err) == connect.CodeUnimplemented {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.head, c.removed = resp.Msg.Head, int(resp.Msg.Removed)
	for _, n := range resp.Msg.Nodes {
		if n.Own {
			continue
		}
		c.joined++
		switch nodes.StateOf(n) {
		case "away":
			c.away++
		case "closed":
			c.closed++
		default:
			c.ready++
		}
	}
	return c, nil
}

// record is what programs are told; nil: the daemon is no head.
func (c *cluster) record() any {
	if !c.head {
		return nil
	}
	return command.Record{{Key: "joined", Value: c.joined}, {Key: "ready", Value: c.ready}, {Key: "closed", Value: c.closed},
		{Key: "away", Value: c.away}, {Key: "removed", Value: c.removed}}
}

// text is what people are told; empty: the daemon is no head.
func (c *cluster) text() string {
	switch {
	case !c.head:
		return ""
	case c.joined == 0 && c.removed == 0:
		return "no machine has joined: `sluice token create` says how one does"
	}
	words := []string{fmt.Sprintf("%d ready", c.ready)}
	for _, w := range []struct {
		n    int
		what string
	}{{c.closed, "closed"}, {c.away, "away"}, {c.removed, "removed"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.what))
		}
	}
	return "machines: " + strings.Join(words, ", ") + " (`sluice nodes` lists them)"
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
