package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// simFlags are what run and compare have in common.
type simFlags struct {
	mechanisms []string
	seeds      string
	data       string
	sets       []string
	workers    int
	cpu        bool
	messages   bool
}

func (f *simFlags) add(a *app, c *cobra.Command) {
	c.Flags().StringSliceVarP(&f.mechanisms, "mechanism", "m", nil, "mechanisms: "+strings.Join(mechanisms().Names(), ", ")+
		", or all (default: the scenario's own)")
	c.Flags().StringVar(&f.seeds, "seeds", "", "seeds such as 1-20 or 1,3,9 (default: the scenario's own)")
	c.Flags().StringVar(&f.data, "data", a.Getenv("SLUICE_DATA"),
		"the folder of published traces (SLUICE_DATA), for scenarios that need it")
	c.Flags().StringArrayVar(&f.sets, "set", nil, "replace a value of the scenario, such as mechanism.policy=throughput; may be repeated")
	c.Flags().IntVar(&f.workers, "workers", 0, "how many runs go at once (default: one for each processor)")
	c.Flags().BoolVar(&f.cpu, "cpu", false, "measure the processor time of mechanisms for lean nodes: three times each, one after the "+
		"other (cpuNanosPerTask)")
	c.Flags().BoolVar(&f.messages, "messages", false, "count what gates, zones and nodes say to each other, by kind")
	// the flag is there
	_ = c.RegisterFlagCompletionFunc("mechanism", cobra.FixedCompletions(append(mechanisms().Names(), play.All),
		cobra.ShellCompDirectiveNoFileComp))
}

// options reads the scenario and what the flags say of it.
func (f *simFlags) options(a *app, name string) (play.Options, error) {
	var o play.Options
	sets, err := replacements(f.sets)
	if err != nil {
		return o, err
	}
	if f.workers < 0 {
		return o, command.Usage("--workers %d: want 1 or more, or 0 for one for each processor", f.workers)
	}
	s, err := scenarios().Load(name, sets...)
	if err != nil {
		return o, err
	}
	for _, text := range s.Renamed {
		fmt.Fprintf(a.Err, "sluice: scenario %s: %s\n", s.Name, text)
	}
	o = play.Options{Scenario: s, Data: &play.Traces{Dir: f.data}, Workers: f.workers, Seeds: s.Seeds}
	if f.cpu {
		if s.Swarm == nil {
			return o, command.Usage("--cpu: scenario %s has no lean nodes; of the others nothing is measured but virtual time", s.Name)
		}
		begin := time.Now()
		o.Clock, o.Workers = func() int64 { return int64(time.Since(begin)) }, 1
	}
	if o.Mail = f.messages; o.Mail && s.Swarm != nil {
		return o, command.Usage("--messages: scenario %s has lean nodes, whose messages are metrics (messagesPerTask)", s.Name)
	}
	names := f.mechanisms
	if len(names) == 0 {
		names = s.Settings.Use
	}
	if o.Mechanisms, err = mechanisms().Find(s, names); err != nil {
		return o, err
	}
	if f.seeds != "" {
		if o.Seeds, err = scenario.Seeds(f.seeds); err != nil {
			return o, command.Usage("--seeds: %w", err)
		}
	}
	return o, nil
}

// replacements reads PATH=VALUE.
func replacements(texts []string) ([]strict.Set, error) {
	var out []strict.Set
	for _, t := range texts {
		path, value, ok := strings.Cut(t, "=")
		if !ok || path == "" {
			return nil, command.Usage("--set %q: want a path of keys and a value, such as mechanism.policy=throughput", t)
		}
		out = append(out, strict.Set{Path: path, Value: value})
	}
	return out, nil
}
