package forecast

import "sluice.dev/sluice/internal/core/digest"

// Mix mixes a run into a digest.
func (r *Run) Mix(h digest.Hash) digest.Hash { return digest.Numbers(h, r.Peaks).Int(int64(r.Unit)) }
