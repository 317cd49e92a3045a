package nodes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// NodesCmd is the command nodes.
func NodesCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "nodes", Short: "List nodes: this daemon's own, and machines that have joined",
		Long: `List nodes: the daemon's own, and where it is the head of a cluster (sluice up --cluster),
the machines that have joined it: how many slices each offers and how many of them can be
used, whether its machine is linked, and why not.

A machine that is away keeps its place, and what it runs goes on: it reports once it is
back. One that is gone for good is removed.`,
		Example: "  sluice nodes\n  sluice nodes -o wide      # with addresses, racks, builds and clocks\n" +
			"  sluice nodes drain rack1-7\n  sluice nodes remove rack1-7",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Nodes()
			if err != nil {
				return err
			}
			resp, err := c.ListNodes(cmd.Context(), connect.NewRequest(&pb.ListNodesRequest{}))
			if err != nil {
				return err
			}
			return command.Show(a.App, resp.Msg.Nodes, nodeColumns(a), (*pb.Node).GetName, "no nodes")
		},
	}
	c.AddCommand(nodesDrainCmd(a), nodesUndrainCmd(a), nodesRemoveCmd(a))
	return a.Output(c)
}

// StateOf is how a node stands, in a word.
func StateOf(n *pb.Node) string {
	switch {
	case !n.Up:
		return "away"
	case n.Slices > 0 && n.Usable == 0:
		return "closed"
	}
	return "ready"
}

// nodeColumns are the properties of a node.
func nodeColumns(a *session.Session) []command.Column[*pb.Node] {
	type node = *pb.Node
	return []command.Column[node]{
		{Key: "name", Head: "NODE", Value: func(n node) any { return n.Name }},
		{Key: "own", Value: func(n node) any { return n.Own }},
		{Key: "state", Head: "STATE", Value: func(n node) any { return StateOf(n) }},
		{Key: "slices", Head: "SLICES", Value: func(n node) any { return n.Slices }},
		{Key: "usable", Head: "USABLE", Value: func(n node) any { return n.Usable }},
		{Key: "address", Head: "ADDRESS", Wide: true, Value: func(n node) any { return n.Address }},
		{Key: "rack", Head: "RACK", Wide: true, Value: func(n node) any { return n.Rack }},
		{Key: "block", Head: "BLOCK", Wide: true, Value: func(n node) any { return n.Block }},
		{Key: "ephemeral", Value: func(n node) any { return n.Ephemeral }},
		{Key: "until", Head: "UNTIL", Wide: true, Value: func(n node) any { return show.Stamp(n.Until) },
			Text: func(n node) string { return untilWhen(a, n) }},
		{Key: "build", Head: "BUILD", Wide: true, Value: func(n node) any { return n.Build }},
		{Key: "joined", Head: "JOINED", Wide: true, Value: func(n node) any { return show.Stamp(n.Joined) },
			Text: func(n node) string { return show.Clock(a, n.Joined) }},
		{Key: "linked", Value: func(n node) any { return show.Stamp(n.Since) }},
		{Key: "heard", Head: "HEARD", Wide: true, Value: func(n node) any { return show.Stamp(n.Heard) },
			Text: func(n node) string { return show.Clock(a, n.Heard) }},
		{Key: "clockOffsetSeconds", Head: "CLOCK", Wide: true, Value: func(n node) any { return seconds(n.Offset) },
			Text: func(n node) string { return signed(n.Offset) }},
		{Key: "roundTripSeconds", Head: "RTT", Wide: true, Value: func(n node) any { return seconds(n.RoundTrip) },
			Text: func(n node) string { return rounded(n.RoundTrip) }},
		{Key: "why", Head: "WHY", Value: func(n node) any { return n.Why }},
	}
}

// untilWhen is when a node's machine is gone for good.
func untilWhen(a *session.Session, n *pb.Node) string {
	if n.Ephemeral && n.Until == nil {
		return "its daemon's end"
	}
	return show.Clock(a, n.Until)
}

// seconds is a length for programs; nil: it was not measured.
func seconds(d *durationpb.Duration) any {
	if d == nil {
		return nil
	}
	return d.AsDuration().Seconds()
}

func rounded(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return d.AsDuration().Round(10 * time.Microsecond).String()
}

// signed is by how much a clock is ahead.
func signed(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	text := d.AsDuration().Round(100 * time.Microsecond).String()
	if strings.HasPrefix(text, "-") {
		return text
	}
	return "+" + text
}

func nodesDrainCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "drain NODE...", Short: "Start nothing more on a node's slices; what runs ends first",
		Long: `Drain a node: each of its slices is reserved until sluice nodes undrain, from when what runs
there has ended. A slice that is drained already is left as it is.`,
		Example: "  sluice nodes drain rack1-7\n  sluice nodes undrain rack1-7",
		Args:    cobra.MinimumNArgs(1),
		RunE: a.Calling(func(ctx context.Context, c session.Client, names []string) error {
			return a.ForEach(names, "drained", func(name string) error {
				list, err := slicesOf(ctx, c, name)
				if err != nil {
					return err
				}
				for _, s := range list {
					if len(drains(s)) > 0 {
						continue
					}
					if _, err := c.Reserve(ctx, connect.NewRequest(&pb.ReserveRequest{Kind: pb.Reservation_DRAIN, Slice: s.Id,
						Source: "sluice nodes drain", RequestId: session.Request()})); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	})
}

func nodesUndrainCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "undrain NODE...", Short: "Use a drained node's slices again",
		Example: "  sluice nodes undrain rack1-7",
		Args:    cobra.MinimumNArgs(1),
		RunE: a.Calling(func(ctx context.Context, c session.Client, names []string) error {
			return a.ForEach(names, "undrained", func(name string) error {
				list, err := slicesOf(ctx, c, name)
				if err != nil {
					return err
				}
				for _, s := range list {
					for _, r := range drains(s) {
						if _, err := c.Unreserve(ctx, connect.NewRequest(&pb.UnreserveRequest{Id: r.Id,
							RequestId: session.Request()})); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}),
	})
}

// slicesOf are a node's.
func slicesOf(ctx context.Context, c session.Client, node string) (list []*pb.Slice, err error) {
	resp, err := c.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
	if err != nil {
		return nil, err
	}
	for _, s := range resp.Msg.Slices {
		if s.Node == node {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, errkind.Errorf(errkind.NotFound, "no slice of such a node is known; `sluice nodes` lists them")
	}
	return list, nil
}

// drains of a slice.
func drains(s *pb.Slice) (list []*pb.Reservation) {
	for _, r := range s.Reservations {
		if r.Kind == pb.Reservation_DRAIN {
			list = append(list, r)
		}
	}
	return list
}

func nodesRemoveCmd(a *session.Session) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove NODE...", Short: "Take a machine out of the cluster for good",
		Long: `Remove a machine: its certificate is good for nothing from then on, and nothing that it says
counts. What it runs is waited for until that can't run any more, and is then done again
elsewhere from the last checkpoint; what was committed stays. Drain it first where that
matters. It may join again by a new token.

There is no way back, so it asks at a terminal, and elsewhere wants --yes.`,
		Example: "  sluice nodes remove rack1-7\n  sluice nodes remove rack1-7 --yes",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx := cmd.Context()
			c, err := a.Nodes()
			if err != nil {
				return err
			}
			what := strings.Join(names, ", ") + " is taken out of the cluster for good, and what runs there is done again elsewhere"
			switch {
			case yes:
			case !a.Interactive():
				return command.Usage("%s: give --yes if that is meant; nothing was done", what)
			default:
				fmt.Fprintf(a.Err, "%s\nremove it? [y/N] ", what)
				if err := a.Confirmed(ctx); err != nil {
					return err
				}
			}
			return a.ForEach(names, "removed", func(name string) error {
				_, err := c.RemoveNode(ctx, connect.NewRequest(&pb.RemoveNodeRequest{Name: name}))
				return err
			})
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "without a question")
	return a.Output(c)
}

// TokenCmd is the command token.
func TokenCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Make tokens by which machines join", Example: "  sluice token create --for 1h"}
	c.AddCommand(tokenCreateCmd(a))
	return c
}

func tokenCreateCmd(a *session.Session) *cobra.Command {
	length := show.Span{Length: show.Length(time.Hour)}
	var quiet bool
	var name string
	c := &cobra.Command{
		Use: "create", Short: "Make a token by which one machine can join",
		Long: `Make a token at the head of a cluster. One machine can join by it, once, until it lapses.
It names the cluster's own certificate authority, so that the machine knows its head by
whatever address; who else has it can join in that machine's place, so pass it on as a
password. It is printed once and kept nowhere.`,
		Example: "  sluice token create\n  sluice token create --for 10m --name rack1-7\n  ssh rack1-7 sluice join head:7118 --token " +
			"$(sluice token create -q)",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Nodes()
			if err != nil {
				return err
			}
			resp, err := c.CreateToken(cmd.Context(), connect.NewRequest(&pb.CreateTokenRequest{Name: name,
				For: durationpb.New(time.Duration(length.Length))}))
			if err != nil {
				return err
			}
			m := resp.Msg
			if quiet {
				_, err := fmt.Fprintln(a.Out, m.Token)
				return err
			}
			line := fmt.Sprintf("good once, for %s; on the machine that is to join:\n  sluice join %s --token %s",
				command.Short(time.Duration(length.Length)), m.Head, m.Token)
			return a.Done(m.Token, "made", command.Record{{Key: "token", Value: m.Token}, {Key: "head", Value: m.Head}}, line)
		},
	}
	c.Flags().Var(&length, "for", "how long it is good for")
	c.Flags().StringVar(&name, "name", "", "the only machine that may join by it (default: any)")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the token alone")
	return a.Output(c)
}
