package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// listed is a scenario of the list.
type listed struct {
	scenario *scenario.Scenario
	facts    play.Facts
}

func (a *app) simListCmd() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "list [NAME|FILE]...", Short: "List scenarios, and measure what work they offer",
		Long: `List the scenarios that ship with the program, or those named, with what is measured of
the work that they offer under their first seed. Load is the work offered over what the
cluster can do for this mix of jobs until the last one arrives; rigid is the share of the
work that can't be cut; gap is the mean idle stretch of a slice where only the rigid work
and the reservations run; job is the mean run time of a job on a whole GPU, where it takes
the least. Those marked data need --data DIR.`,
		Example:           "  sluice sim list\n  sluice sim list small mine.yml\n  sluice sim list --data ./data -o json",
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []listed
			traces := &play.Traces{Dir: data}
			if len(args) == 0 {
				args = scenario.Shipped()
			}
			for _, name := range args {
				s, err := scenarios().Load(name)
				if err != nil {
					return err
				}
				l := listed{scenario: s}
				if l.facts, err = facts(cmd.Context(), s, traces); cmd.Context().Err() != nil {
					return &command.Failure{Code: command.ExitInterrupted, Err: fmt.Errorf("interrupted: %d of %d scenarios were measured",
						len(list), len(args))}
				} else if err != nil {
					return err
				}
				list = append(list, l)
			}
			return command.Show(a.App, list, scenarioColumns(), func(l listed) string { return l.scenario.Name }, "no scenarios")
		},
	}
	c.Flags().StringVar(&data, "data", a.Getenv("SLUICE_DATA"), "the folder of published traces (SLUICE_DATA)")
	return a.Output(c)
}

// facts measures a scenario under sja.
func facts(ctx context.Context, s *scenario.Scenario, data *play.Traces) (play.Facts, error) {
	if s.Swarm != nil {
		return play.Measure(ctx, s, play.Mechanism{}, data)
	}
	sja, err := mechanisms().Find(s, []string{play.SJA})
	if err != nil {
		return play.Facts{}, err
	}
	f, err := play.Measure(ctx, s, sja[0], data)
	if err != nil {
		return f, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return f, nil
}

func scenarioColumns() []command.Column[listed] {
	// measured is a column that is empty where nothing could be measured.
	measured := func(key, head string, value func(*play.Facts) any, text func(*play.Facts) string) command.Column[listed] {
		return command.Column[listed]{Key: key, Head: head, Value: func(l listed) any {
			if !l.facts.Measured {
				return nil
			}
			return value(&l.facts)
		}, Text: func(l listed) string {
			if !l.facts.Measured {
				return ""
			}
			return text(&l.facts)
		}}
	}
	return []command.Column[listed]{
		{Key: "name", Head: "NAME", Value: func(l listed) any { return l.scenario.Name }},
		{Key: "slices", Head: "SLICES", Value: func(l listed) any { return l.facts.Slices }},
		measured("jobs", "JOBS", func(f *play.Facts) any { return f.Jobs },
			func(f *play.Facts) string { return fmt.Sprint(f.Jobs) }),
		measured("load", "LOAD", func(f *play.Facts) any { return known(f.Load) }, func(f *play.Facts) string {
			if f.Load == 0 {
				return ""
			}
			return fmt.Sprintf("%.2f", f.Load)
		}),
		measured("rigidShare", "RIGID", func(f *play.Facts) any { return f.RigidShare },
			func(f *play.Facts) string { return fmt.Sprintf("%.0f%%", 100*f.RigidShare) }),
		measured("meanGapSeconds", "GAP", func(f *play.Facts) any { return known(f.MeanGap.Seconds()) },
			func(f *play.Facts) string {
				if f.MeanGap == 0 {
					return ""
				}
				return command.Short(f.MeanGap)
			}),
		measured("meanJobSeconds", "JOB", func(f *play.Facts) any { return f.MeanJob.Seconds() },
			func(f *play.Facts) string { return command.Short(f.MeanJob) }),
		{Key: "needsData", Head: "NEEDS", Value: func(l listed) any { return l.scenario.NeedsData() }, Text: func(l listed) string {
			if l.scenario.NeedsData() {
				return "data"
			}
			return ""
		}},
		{Key: "mechanisms", Head: "MECHANISMS", Wide: true, Value: func(l listed) any { return l.scenario.Settings.Use },
			Text: func(l listed) string { return fmt.Sprint(l.scenario.Settings.Use) }},
		{Key: "doc", Head: "WHAT IT IS", Value: func(l listed) any { return l.scenario.Doc },
			Text: func(l listed) string { return firstSentence(l.scenario.Doc) }},
	}
}

// known is a number that is above 0 where it is known, nil elsewhere.
func known(v float64) any {
	if v == 0 {
		return nil
	}
	return v
}

// firstSentence is a text up to its first full stop.
func firstSentence(s string) string {
	for i := range s {
		if s[i] == '.' && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\n') {
			return s[:i]
		}
	}
	return s
}
