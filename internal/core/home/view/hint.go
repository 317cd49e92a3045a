package view

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/output"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// A job that uses this many times what it declares, in parts per thousand, is told: less may be chance, or the machine.
const (
	hintMemory = 1500
	hintTime   = 2000
	// hinted is how many of a job's latest subjobs are looked at.
	hinted = 1000
)

// hints are what a job's owner should know of it: where it was observed to use much more than its file declares, by which it is placed and
// cut.
func hints(j *home.Job) (out []string) {
	var peak quantity.Amount
	past := j.History().Past()
	for i := range past[max(0, len(past)-hinted):] {
		peak = max(peak, past[len(past)-1-i].Peak[trp.Memory])
	}
	if declared := j.Spec.Safe.LeastOver(0, j.Spec.Total, trp.Unscaled); declared > 0 &&
		quantity.MulDiv(int64(peak), 1000, int64(declared)) >= hintMemory {
		out = append(out, fmt.Sprintf("a subjob used %s of memory, %s the %s that spec.memory declares: "+
			"on a smaller slice it would have been ended for it; declare what it uses",
			quantity.FormatBytes(peak), times(int64(peak), int64(declared)), quantity.FormatBytes(declared)))
	}
	if rates := slices.Sorted(slices.Values(j.Learned().Rates)); len(rates) > 0 && j.Spec.Divisible() && j.Spec.PerUnit > 0 {
		if mean := rates[len(rates)/2]; quantity.MulDiv(int64(mean), 1000, int64(j.Spec.PerUnit)) >= hintTime {
			key := map[job.Kind]string{job.Items: "spec.items.perItem", job.Steps: "spec.steps.perStep"}[j.Spec.Kind]
			if j.Spec.External {
				key = "spec.external.perUnit"
			}
			out = append(out, fmt.Sprintf("a unit took %v, %s the %v that %s declares: "+
				"its first pieces are cut too long, and estimates are wrong until it is learned",
				mean, times(int64(mean), int64(j.Spec.PerUnit)), j.Spec.PerUnit, key))
		}
	}
	if j.Ending().Final() && len(j.Output().List()) > 0 {
		out = append(out, fmt.Sprintf("the output of %s is not in its place: node %s has not said so, and is asked again and again",
			output.Units(j.Output().List(), j.Spec), output.Nodes(j.Output().List())))
	}
	return out
}

// times is how many times one amount is another, to a tenth.
func times(a, of int64) string {
	tenths := quantity.MulDiv(a, 10, of)
	return fmt.Sprintf("%d.%d times", tenths/10, tenths%10)
}
