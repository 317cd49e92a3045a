package forecast

import "sluice.dev/sluice/internal/core/digest"

// Mix mixes a run into a digest.
func (run *Run) Mix(h digest.Hash) digest.Hash {
	return digest.Numbers(h, run.Peaks).Int(int64(run.Unit))
}
