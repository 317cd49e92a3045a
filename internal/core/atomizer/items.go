package atomizer

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// leastShare is the shortest piece the sharing rule asks for: shorter ones would spend their time starting processes.
const leastShare = time.Second

// fitItems looks for the first free stretch from which a piece can be cut: independent units may be taken anywhere, so
// what does not fit this slice is left for another.
func fitItems(v *View, w Window) (Piece, Refusal) {
	total, table, scale := v.Spec.Total, v.Safe(), v.Scale()
	refusal := Refusal{Why: NoFreeWork}
	share := int64(0)
	for free := job.NextFree(v.from, total, v.Committed, v.Claimed); !free.Empty(); free = job.NextFree(free.To, total, v.Committed,
		v.Claimed) {
		if share == 0 {
			share = v.share(w.Speed)
		}
		for from := free.From; from < free.To; {
			safe := table.NextSafe(from, free.To, w.Capacity[trp.Memory], scale)
			if safe >= free.To {
				refusal = closer(refusal, Refusal{Why: Unsafe, Least: table.LeastOver(from, from+1, scale)})
				break
			}
			limit, end := v.suspectLimit(job.Range{From: safe, To: free.To})
			if limit > share {
				limit = v.align(safe, safe+share, end) - safe
			}
			p, r := cut(v, w, job.Range{From: safe, To: end}, safe+limit)
			if r.Why == Interested {
				return p, r
			}
			refusal = closer(refusal, r)
			// Nothing to be had from here; what follows the stretch that is safe here may still fit.
			from = table.Reach(safe, w.Capacity[trp.Memory], end, scale)
		}
	}
	return Piece{}, refusal
}

// closer keeps the more informative refusal: a window too short for a safe piece tells more than an unsafe piece.
func closer(a, b Refusal) Refusal {
	switch {
	case a.Why == NoFreeWork, a.Why == Unsafe && b.Why == TooShort:
		return b
	case a.Why == Unsafe && b.Why == Unsafe && b.Least < a.Least, a.Why == TooShort && b.Why == TooShort && b.Need < a.Need:
		return b
	}
	return a
}

// share is how many units one of several parallel subjobs may take: half of an equal part of what is left, so that
// slices of different speed end together (guided self-scheduling), but never less than leastShare's worth. Where bad units
// were skipped it is no more than lay between two of them so far, since a longer piece would fail with all that it did.
func (v *View) share(speed int64) int64 {
	if v.Measures() {
		return v.Spec.Grid
	}
	part := v.Spec.Total
	if v.Spec.Parallelism > 1 {
		part = quantity.MulDiv(v.Left(), 1, 2*int64(v.Spec.Parallelism))
	}
	if v.Skipped > 0 {
		part = min(part, (v.Committed.Len()-v.Skipped)/v.Skipped)
	}
	least := quantity.MulDiv(int64(max(leastShare, v.Spec.TauMin)), 1, int64(v.unit(speed)))
	return max(part, least, v.Spec.Grid)
}

// suspectLimit narrows a free range for the halving of failing ranges: a piece does not cross the edge of a suspect
// range and takes at most its limit within it. It returns the number of units and where the range now ends.
func (v *View) suspectLimit(free job.Range) (limit, end int64) {
	end = free.To
	for _, s := range v.Learned.Suspects {
		switch {
		case s.Range.From <= free.From && free.From < s.Range.To:
			end = min(end, s.Range.To, free.From+max(1, s.Limit))
			return end - free.From, end
		case s.Range.From > free.From:
			end = min(end, s.Range.From)
		}
	}
	return end - free.From, end
}
