// Package throughput asks the job whose piece fills the window best in time times memory (our definition, ADR 0005).
package throughput

import (
	"cmp"

	"sluice.dev/sluice/internal/core/policy"
)

// Policy is the order.
type Policy struct{}

// Name is "throughput".
func (Policy) Name() string { return "throughput" }

// Compare orders by the share of the window's time times memory that the piece uses, largest first, then by age. All
// candidates of one round answer the same window, so Offered is the same for all.
func (Policy) Compare(a, b *policy.Candidate) int {
	return cmp.Or(
		cmp.Compare(b.Used, a.Used),
		policy.ByAge(a, b),
	)
}

// Motion: how well a piece fits depends on the window.
func (Policy) Motion() policy.Motion { return policy.ByUse }
