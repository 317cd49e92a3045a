package jobs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// QueuesCmd is the command queues.
func QueuesCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "queues", Short: "List queues and their use",
		Long: `List queues and their use. Under mechanism jasda also TRUST, how far what their jobs declare
is believed, and CREDITS, what they may bid with: one is a millisecond of a slice at a
score of 1.`,
		Example: "  sluice queues\n  sluice queues -o wide",
		Args:    cobra.NoArgs,
		RunE: a.Calling(func(ctx context.Context, c session.Client, _ []string) error {
			resp, err := c.ListQueues(ctx, connect.NewRequest(&pb.ListQueuesRequest{}))
			if err != nil {
				return err
			}
			return command.Show(a.App, resp.Msg.Queues, queueColumns(resp.Msg.Queues),
				func(q *pb.Queue) string { return q.Settings.GetName() }, "no queues")
		}),
	}
	return a.Output(c)
}

// queueColumns are the properties of queues; trust and credits only where a market negotiates.
func queueColumns(list []*pb.Queue) []command.Column[*pb.Queue] {
	type queue = *pb.Queue
	columns := []command.Column[queue]{
		{Key: "name", Head: "QUEUE", Value: func(q queue) any { return q.Settings.GetName() }},
		{Key: "weight", Head: "WEIGHT", Value: func(q queue) any { return q.Settings.GetWeight() }},
		{Key: "pending", Head: "PENDING", Value: func(q queue) any { return q.Pending }},
		{Key: "running", Head: "RUNNING", Value: func(q queue) any { return q.Running }},
		{Key: "held", Head: "SLICES", Value: func(q queue) any { return q.Held }},
		{Key: "cap", Head: "CAP", Value: func(q queue) any { return q.Settings.GetCap() },
			Text: func(q queue) string { return show.NonZero(int64(q.Settings.GetCap())) }},
		{Key: "maxJobs", Head: "MAX-JOBS", Value: func(q queue) any { return q.Settings.GetMaxJobs() },
			Text: func(q queue) string { return show.NonZero(int64(q.Settings.GetMaxJobs())) }},
		{Key: "maxWindowSeconds", Head: "MAX-WINDOW", Value: func(q queue) any { return show.Seconds(q.Settings.GetMaxWindow()) },
			Text: func(q queue) string {
				if q.Settings.GetMaxWindow() == nil {
					return ""
				}
				return command.Short(q.Settings.GetMaxWindow().AsDuration())
			}},
		{Key: "user", Head: "USER", Wide: true, Value: func(q queue) any { return q.Settings.GetUser() }},
		{Key: "attainedGiBSeconds", Head: "GIB-SECONDS", Value: func(q queue) any { return q.AttainedGibSeconds },
			Text: func(q queue) string {
				return fmt.Sprintf("%.0f", q.AttainedGibSeconds)
			}},
	}
	if slices.ContainsFunc(list, func(q queue) bool { return q.Trust != nil }) {
		columns = append(columns, standingColumns()...)
	}
	return columns
}

// QueueCmd is the command queue.
func QueueCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "queue", Short: "Change queues", Example: "  sluice queue set research --weight 3"}
	c.AddCommand(queueSetCmd(a))
	return c
}

func queueSetCmd(a *session.Session) *cobra.Command {
	var weight int64
	var slots, jobs int32
	var window show.Length
	var user string
	c := &cobra.Command{
		Use: "set NAME", Short: "Create a queue or change its settings",
		Long:    "Create a queue, or change those of its settings that are given; the others stay.",
		Example: "  sluice queue set research --weight 3 --cap 4\n  sluice queue set batch --max-window 15m",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !job.ValidName(args[0]) {
				return command.Usage("%q is no name: want %s", args[0], job.NameRule)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			resp, err := c.ListQueues(cmd.Context(), connect.NewRequest(&pb.ListQueuesRequest{}))
			if err != nil {
				return err
			}
			set := &pb.QueueSettings{Name: args[0], Weight: 1}
			for _, q := range resp.Msg.Queues {
				if q.Settings.GetName() == args[0] {
					set = q.Settings
				}
			}
			given := cmd.Flags().Changed
			if given("weight") {
				if weight < 1 || weight > math.MaxInt32 {
					return command.Usage("--weight %d: want at least 1", weight)
				}
				set.Weight = weight
			}
			if given("cap") {
				set.Cap = slots
			}
			if given("max-jobs") {
				set.MaxJobs = jobs
			}
			if given("max-window") {
				set.MaxWindow = durationpb.New(time.Duration(window))
			}
			if given("user") {
				set.User = user
			}
			if _, err := c.SetQueue(cmd.Context(),
				connect.NewRequest(&pb.SetQueueRequest{Queue: set, RequestId: session.Request()})); err != nil {
				return err
			}
			r := command.Record{{Key: "name", Value: set.Name}, {Key: "weight", Value: set.Weight}, {Key: "cap", Value: set.Cap},
				{Key: "maxJobs", Value: set.MaxJobs}, {Key: "maxWindowSeconds", Value: show.Seconds(set.MaxWindow)},
				{Key: "user", Value: set.User}}
			return a.Done(set.Name, "set", r, fmt.Sprintf("queue %s set", set.Name))
		},
	}
	c.Flags().Int64Var(&weight, "weight", 1, "its fair share against other queues")
	c.Flags().Int32Var(&slots, "cap", 0, "how many slices its jobs may hold at once; 0 for no cap")
	c.Flags().Int32Var(&jobs, "max-jobs", 0, "how many unfinished jobs it may have; 0 for no limit")
	c.Flags().Var(&window, "max-window", "how long one subjob may hold a slice; 0 for no bound")
	c.Flags().StringVar(&user, "user", "", "the account its subjobs run as")
	return a.Output(c)
}
