package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	planners "sluice.dev/sluice/internal/core/planner/all"
	policies "sluice.dev/sluice/internal/core/policy/all"
	traces "sluice.dev/sluice/internal/edge/trace/all"
	"sluice.dev/sluice/internal/face/config"
	"sluice.dev/sluice/internal/face/scenario"
)

func (a *app) simCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "sim", Short: "Simulate clusters, and compare mechanisms",
		Long: `Run scenarios in virtual time: the same gate, zone and nodes as in the daemon, or a
planner that runs every job as one block. A scenario is a file; several ship with the
program. The same scenario, mechanism and seed give the same bytes on every machine.`,
		Example: "  sluice sim list\n  sluice sim run small --mechanism sja,easy\n  sluice sim compare small --mechanism sja,easy --seeds 1-20",
	}
	c.AddCommand(a.simRunCmd(), a.simCompareCmd(), a.simListCmd(), a.simShowCmd(), a.simReplayCmd(), a.simCheckCmd())
	return c
}

// mechanisms is what a simulation can run.
func mechanisms() scenario.Table {
	return scenario.Table{Policies: policies.Policies(), Planners: planners.Kinds()}
}

// scenarios reads them, with arrivals from files of every format.
func scenarios() scenario.Reader { return scenario.Reader{Formats: traces.Formats()} }

// outputAs adds -o with forms of its own to a command; the first is the default.
func (a *app) outputAs(c *cobra.Command, forms ...string) *cobra.Command {
	c.Flags().StringVarP(&a.format, "output", "o", forms[0], "the form of the answer: "+strings.Join(forms, ", "))
	c.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("output") {
			a.format = forms[0] // all commands share the variable, and so the default that was set last
		}
		for _, f := range forms {
			if a.format == f {
				return nil
			}
		}
		return usage("-o %s is no form; want one of %s", a.format, strings.Join(forms, ", "))
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

// simFlags are what run and compare have in common.
type simFlags struct {
	mechanisms []string
	seeds      string
	data       string
	sets       []string
	workers    int
}

func (f *simFlags) add(a *app, c *cobra.Command) {
	c.Flags().StringSliceVarP(&f.mechanisms, "mechanism", "m", nil, "mechanisms: "+strings.Join(mechanisms().Names(), ", ")+", or all (default: the scenario's own)")
	c.Flags().StringVar(&f.seeds, "seeds", "", "seeds such as 1-20 or 1,3,9 (default: the scenario's own)")
	c.Flags().StringVar(&f.data, "data", a.Getenv("SLUICE_DATA"), "the folder of published traces (SLUICE_DATA), for scenarios that need it")
	c.Flags().StringArrayVar(&f.sets, "set", nil, "replace a value of the scenario, such as mechanism.policy=efficiency; may be repeated")
	c.Flags().IntVar(&f.workers, "workers", 0, "how many runs go at once (default: one for each processor)")
	_ = c.RegisterFlagCompletionFunc("mechanism", cobra.FixedCompletions(append(mechanisms().Names(), scenario.All), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// options reads the scenario and what the flags say of it.
func (f *simFlags) options(name string) (scenario.Options, error) {
	var o scenario.Options
	sets, err := replacements(f.sets)
	if err != nil {
		return o, err
	}
	if f.workers < 0 {
		return o, usage("--workers %d: want 1 or more, or 0 for one for each processor", f.workers)
	}
	s, err := scenarios().Load(name, sets...)
	if err != nil {
		return o, err
	}
	o = scenario.Options{Scenario: s, Data: &scenario.Traces{Dir: f.data}, Workers: f.workers, Seeds: s.Seeds}
	names := f.mechanisms
	if len(names) == 0 {
		names = s.Settings.Use
	}
	if o.Mechanisms, err = mechanisms().Find(s, names); err != nil {
		return o, err
	}
	if f.seeds != "" {
		if o.Seeds, err = scenario.Seeds(f.seeds); err != nil {
			return o, usage("--seeds: %w", err)
		}
	}
	return o, nil
}

// replacements reads PATH=VALUE.
func replacements(texts []string) ([]config.Set, error) {
	var out []config.Set
	for _, t := range texts {
		path, value, ok := strings.Cut(t, "=")
		if !ok || path == "" {
			return nil, usage("--set %q: want a path of keys and a value, such as mechanism.policy=efficiency", t)
		}
		out = append(out, config.Set{Path: path, Value: value})
	}
	return out, nil
}

// completeScenarios proposes the scenarios that ship.
func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return scenario.Shipped(), cobra.ShellCompDirectiveDefault
}

func (a *app) simShowCmd() *cobra.Command {
	return a.outputAs(&cobra.Command{
		Use: "show NAME", Short: "Print a scenario's file",
		Long:    "Print the file of a scenario that ships with the program, to read, or to change and run as a file.",
		Example: "  sluice sim show small > mine.yml",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: completeScenarios,
		RunE: func(_ *cobra.Command, args []string) error {
			data, _, err := scenario.Open(args[0])
			if err != nil {
				return err
			}
			if a.format == "json" {
				var v any
				if err = yaml.Unmarshal(data, &v); err != nil {
					return err
				}
				if data, err = plain(v); err != nil {
					return err
				}
				return a.dumpJSON(data)
			}
			_, err = fmt.Fprint(a.Out, string(data))
			return err
		},
	}, "yaml", "json")
}
