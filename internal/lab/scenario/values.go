package scenario

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

const (
	// MaxNodes of a cluster.
	MaxNodes = 16_384
	// MaxGates of a cluster.
	MaxGates = 64
	// MaxSlices of all nodes.
	MaxSlices = 65_536
	// MaxSpan is the longest virtual time.
	MaxSpan = 10 * 365 * 24 * time.Hour
	// MaxJobs that are written out.
	MaxJobs = 10_000
	// MaxGenerated is how many jobs a stream may generate.
	MaxGenerated = 100_000_000
	// MaxSeeds of one run.
	MaxSeeds = 10_000
)

// moment is an instant of virtual time, written as the time since the start.
func moment(v strict.Value, or quantity.Instant) quantity.Instant {
	if !v.Given() {
		return or
	}
	return quantity.Instant(v.Duration(0, MaxSpan, 0))
}

// errorOf reads how declarations are off: a factor exp(bias + sigma z) on the truth.
func errorOf(v strict.Value, or compose.Error) compose.Error {
	if !v.Given() {
		return or
	}
	o := v.Object("bias", "sigma")
	return compose.Error{
		Bias:  o.Get("bias").Real(-5, 5, 0),
		Sigma: float64(o.Get("sigma").Fraction(1000, 0, 5000, 0)) / 1000,
	}
}

// What records of requests and of states get that give no run time, where the scenario does not say: none is published
// with them.
const (
	promptToken = 100 * time.Microsecond
	outputToken = 20 * time.Millisecond
)
