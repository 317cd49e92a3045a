package loan

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// split is how many slices a gang takes of which zone, of as few zones as hold it: the one that has just enough of what is still wanted, else the one
// that has most; on a tie the first, where its home stands first. It is in order of zone id, and nil if all of them are too few.
func split(width int, lenders []protocol.Lender) (parts []part) {
	left := slices.Clone(lenders)
	for want := width; want > 0; {
		best := -1
		for i := range left {
			if left[i].Slices > 0 && (best < 0 || fit(left[i].Slices, want) < fit(left[best].Slices, want)) {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		n := min(want, left[best].Slices)
		parts = append(parts, part{zone: left[best].Zone, slices: n})
		want -= n
		left = slices.Delete(left, best, best+1)
	}
	slices.SortFunc(parts, func(a, b part) int { return byZone(a.zone, b.zone) })
	return parts
}

// fit ranks how well a zone with so many slices serves what is wanted: the least that is enough first, else the most.
func fit(has, want int) int {
	if has >= want {
		return has - want
	}
	return want - has + 1<<30
}

// homeFirst has a zone stand first among others, if it is one of them.
func homeFirst(self job.ZoneID, lenders []protocol.Lender) []protocol.Lender {
	out := make([]protocol.Lender, 0, len(lenders))
	for _, first := range []bool{true, false} {
		for _, l := range lenders {
			if (l.Zone == self) == first {
				out = append(out, l)
			}
		}
	}
	return out
}
