package forecast

import "sluice.dev/sluice/internal/core/digest"

// Mix mixes a run into a digest.
func (run *Run) Mix(h digest.Hash) digest.Hash {
	return digest.Numbers(h, run.Peaks).Int(int64(run.Unit))
}

// Mix mixes runs that were added into a digest, in their order.
func (r *Runs) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(len(r.sums)))
	for _, sum := range r.sums {
		h = h.Int(int64(sum)) //nolint:gosec // all of its bits are mixed in
	}
	return h
}
