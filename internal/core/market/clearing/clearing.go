// Package clearing decides which of the variants bid for a window win it: weighted interval scheduling, exact, with what
// it does not decide by itself stated with each function (JASDA, arXiv 2510.14599, policy-driven clearing; docs/adr).
// Everything is integers, the outcome does not depend on the order of the bids, and nothing is allocated once warm.
package clearing

// Bid is one variant as clearing sees it.
type Bid struct {
	// Start and End, half-open, in any unit of time, relative to anything: 0 to 1<<40.
	Start, End int64
	// Weight, at least 0. Sums of all weights must stay below 1<<62.
	Weight int64
	// Job is the owner, a dense number from 0 on. Bids are compared by (Job, ID) where everything else is equal.
	Job, ID int32
}
