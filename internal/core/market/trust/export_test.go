package trust

import (
	"sluice.dev/sluice/internal/core/protocol"
)

// Calibrated is the declared score as far as it is believed, and the job's history for the rest: rho x declared +
// (1 - rho) x History, in millionths, 0 to One. It lies between the two.
func (s Settings) Calibrated(t *protocol.Trust, declared int64) int64 {
	return s.Belief(t).In(declared)
}
