package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// started is one row for each mechanism whose programs may stay: what starting them takes, and what of the time beyond one start in each
// gap is left where they do.
func started(out io.Writer, results []outcome.Result) error {
	groups := slices.DeleteFunc(perMechanism(results), func(g group) bool { return math.IsNaN(g.mean(measure.ColdStarts)) })
	if len(groups) == 0 {
		return nil
	}
	columns := []struct{ head, metric string }{
		{"COLD-STARTS", measure.ColdStarts}, {"RESIDENT", measure.ResidentStarts}, {"START-TIME", measure.StartTime},
		{"GAPS-USED", measure.GapsUsed}, {"BEYOND-ONE", measure.StartOverhead},
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	heads := []string{"PROGRAMS"}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	fmt.Fprintln(w, strings.Join(append(heads, "/COLD"), "\t"))
	for _, g := range groups {
		cells := []string{g.name}
		for _, c := range columns {
			cells = append(cells, figure(c.metric, g.mean(c.metric)))
		}
		fmt.Fprintln(w, strings.Join(append(cells, ofCold(g, groups)), "\t"))
	}
	return w.Flush()
}

// ofCold is the overhead of starts under a mechanism over that under the same mechanism whose programs do not stay.
func ofCold(g group, groups []group) string {
	at := slices.IndexFunc(groups, func(o group) bool { return o.name == g.name+play.Cold })
	if at < 0 {
		return "-"
	}
	share := g.mean(measure.StartOverhead) / groups[at].mean(measure.StartOverhead)
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2f", share)
}
