package learn

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Suspects are the stretches of an items job in which a unit is known to fail: disjoint, in order. A stretch is divided until the
// unit is alone, and what subjobs have completed is taken out of it wherever they lay, since they end in any order.

// passed takes completed units out of the suspects. What is left of one holds the bad unit, and is divided.
func passed(list []protocol.Suspect, done job.Range, parts int64) []protocol.Suspect {
	out := make([]protocol.Suspect, 0, len(list)+1)
	for _, s := range list {
		if !s.Range.Overlaps(done) {
			out = append(out, s)
			continue
		}
		for _, rest := range [2]job.Range{{From: s.Range.From, To: done.From}, {From: done.To, To: s.Range.To}} {
			if !rest.Empty() {
				out = append(out, divided(rest, parts))
			}
		}
	}
	return out
}

// divided is a suspect stretch that is tried in as many parts as the job may run at once, at least two.
func divided(r job.Range, parts int64) protocol.Suspect {
	return protocol.Suspect{Range: r, Limit: max(1, r.Len()/max(2, parts))}
}

// failed narrows the suspects to where a subjob failed: that explains why the stretch around it did, so the rest of that is
// suspected no longer. A single unit that failed alone has the limit 0, and if it does so once more it is bad.
func failed(list []protocol.Suspect, where job.Range, parts int64) (out []protocol.Suspect, bad bool) {
	again := protocol.Suspect{Range: where}
	bad = where.Len() == 1 && slices.Contains(list, again)
	out = slices.DeleteFunc(slices.Clone(list), func(s protocol.Suspect) bool { return s.Range.Overlaps(where) })
	switch {
	case bad:
		return out, true
	case where.Len() == 1:
		out = append(out, again)
	default:
		out = append(out, divided(where, parts))
	}
	slices.SortFunc(out, func(a, b protocol.Suspect) int { return cmp.Compare(a.Range.From, b.Range.From) })
	return out, false
}

// Suspected reports whether a unit is in a suspect stretch.
func Suspected(list []protocol.Suspect, unit int64) bool {
	for _, bad := range list {
		if bad.Range.From <= unit && unit < bad.Range.To {
			return true
		}
	}
	return false
}
