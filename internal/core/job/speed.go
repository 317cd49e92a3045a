package job

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// SpeedOn is how fast a job runs on slices of one profile ("3g.40gb"), in parts per thousand of the reference that its run
// times are declared for; from 0, where it can not run, to 10000.
type SpeedOn struct {
	Profile  string
	Permille int64
}

// SpeedOn is the job's speed on a slice of this profile and speed, in parts per thousand: what its owner declared for the
// profile, else the slice's own. 0 means that it can not run there.
func (s *Spec) SpeedOn(profile string, slice int64) int64 {
	for i := range s.Speeds {
		if s.Speeds[i].Profile == profile {
			return s.Speeds[i].Permille
		}
	}
	return slice
}

// longestTime keeps sums of a few times within 63 bits: 146 years.
const longestTime = time.Duration(math.MaxInt64 / 2)

// WalltimeAt is the walltime of a rigid job where it runs at this speed, in parts per thousand and above 0. Without Speeds
// the walltime is meant literally, whatever the slice.
func (s *Spec) WalltimeAt(speed int64) time.Duration {
	if len(s.Speeds) == 0 {
		return s.Walltime
	}
	return min(longestTime, time.Duration(quantity.MulDiv(int64(s.Walltime), 1000, speed)))
}
