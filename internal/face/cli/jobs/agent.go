package jobs

import (
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// AgentCmd is the command agent.
func AgentCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "agent", Short: "What the agent of an external job needs",
		Long: `An external job (kind external in its job file) is cut by its owner's own agent, a
program that answers windows over the API. The Go package sdk/agent and the Python
module sluice_agent do the talking; examples/agents has one of each.`,
		Example: "  sluice agent key train",
	}
	key := &cobra.Command{
		Use: "key JOB", Short: "Print the key of an external job's agent",
		Long: `Print the key that opens the negotiation of one external job and nothing else. It is
valid as long as the job is kept. Whoever has it can bid for the job: hand it to the
agent by its environment, not on its command line.`,
		Example: "  SLUICE_AGENT_KEY=$(sluice agent key train) python3 agent.py train",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			resp, err := c.AgentKey(cmd.Context(), connect.NewRequest(&pb.AgentKeyRequest{Job: args[0]}))
			if err != nil {
				return err
			}
			if a.Format == "json" || a.Format == "yaml" {
				return a.Dump(command.Record{{Key: "job", Value: args[0]}, {Key: "key", Value: resp.Msg.Key}})
			}
			_, err = fmt.Fprintln(a.Out, resp.Msg.Key)
			return err
		},
	}
	c.AddCommand(a.Output(key))
	return c
}
