// Package cli is the commands of the simulator: `sluice sim` and all below it. cmd/sluice registers them beside the live ones; it
// knows nothing of a daemon.
package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/scenario"
)

// Command is `sluice sim` with all that is below it.
func Command(run *command.App) *cobra.Command {
	a := &app{run}
	c := &cobra.Command{
		Use: "sim", Short: "Simulate clusters, and compare mechanisms",
		Long: `Run scenarios in virtual time: the same gate, zone and nodes as in the daemon, or a
planner that runs every job as one block. A scenario is a file; several ship with the
program. The same scenario, mechanism and seed give the same bytes on every machine.`,
		Example: "  sluice sim list\n  sluice sim run small --mechanism sja,easy\n  sluice sim compare small --mechanism sja,easy " +
			"--seeds 1-20",
	}
	c.AddCommand(a.simRunCmd(), a.simCompareCmd(), a.simListCmd(), a.simShowCmd(), a.simReplayCmd(), a.simCheckCmd())
	return c
}

func (a *app) simShowCmd() *cobra.Command {
	return a.OutputAs(&cobra.Command{
		Use: "show NAME", Short: "Print a scenario's file",
		Long:    "Print the file of a scenario that ships with the program, to read, or to change and run as a file.",
		Example: "  sluice sim show small > mine.yml",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: completeScenarios,
		RunE: func(_ *cobra.Command, args []string) error {
			data, _, err := scenario.Open(args[0])
			if err != nil {
				return err
			}
			if a.Format == "json" {
				var v any
				if err = yaml.Unmarshal(data, &v); err != nil {
					return err
				}
				if data, err = command.Plain(v); err != nil {
					return err
				}
				return a.DumpJSON(data)
			}
			_, err = fmt.Fprint(a.Out, string(data))
			return err
		},
	}, "yaml", "json")
}
