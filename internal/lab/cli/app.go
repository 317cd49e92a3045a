package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
	swarms "sluice.dev/sluice/internal/lab/swarm/all"
	traces "sluice.dev/sluice/internal/lab/trace/all"
)

// app is one run of a simulation's command.
type app struct{ *command.App }

// mechanisms is what a simulation can run.
func mechanisms() play.Table {
	return play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds(), Swarm: swarms.Kinds()}
}

// scenarios reads them, with arrivals from files of every format.
func scenarios() scenario.Reader { return scenario.Reader{Formats: traces.Formats()} }

// completeScenarios proposes the scenarios that ship.
func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return scenario.Shipped(), cobra.ShellCompDirectiveDefault
}

// fourDigits rounds a percent for programs.
func fourDigits(x float64) float64 { return math.Round(x*1e4) / 1e4 }

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// figure is a value for people: a share in percent, a time in its unit.
func figure(metric string, v float64) string {
	switch info := measure.About(metric); {
	case math.IsNaN(v):
		return "-"
	case info.Unit == measure.Share:
		return fmt.Sprintf("%.1f%%", 100*v)
	case info.Unit == measure.Seconds && v < 1e8:
		return command.Short(time.Duration(v * float64(time.Second)))
	}
	return number(v)
}

// number is a plain number with at most three digits that matter after the point.
func number(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
