package job

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// DefaultTheta is the accepted chance that a piece passes its slice's memory, in parts per million (SYSTEMS.md 2.2).
	DefaultTheta = 10_000
	// DefaultOverheadMax is o_max, in parts per thousand.
	DefaultOverheadMax = 100
	// DefaultMaxFailures is how many waves of subjobs in a row may end without progress.
	DefaultMaxFailures = 3
)

// TauMin is the least useful run of a job that gives none: max(floor, (r+k)(1-o)/o) with o the largest share of overhead
// in parts per thousand, from 1 to 1000, and a floor of 1 s; 0 when r = k = 0 (SYSTEMS.md 1.2). Negative costs count as 0.
func TauMin(restore, checkpoint time.Duration, overheadMax int) time.Duration {
	cost := max(restore, 0) + max(checkpoint, 0)
	if cost == 0 {
		return 0
	}
	o := int64(min(max(overheadMax, 1), 1000))
	return max(time.Second, time.Duration(quantity.MulDiv(int64(cost), 1000-o, o)))
}
