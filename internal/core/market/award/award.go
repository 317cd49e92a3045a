// Package award is the market's output: the piece that a job has won, and the Seller that takes it. Invariant of whatever is asked for:
// nobody has the work yet, the time is unsold, it is safe there, and the job may run one more (markettest.Unsound). It must not know how
// a piece was won, nor what becomes of it.
package award

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Seller is what a market calls on its owner.
type Seller interface {
	// Ask asks the slice's node for a piece that a job has won.
	Ask(now quantity.Instant, j *index.Job, s *window.Slice, p Piece, out *protocol.Out)
	// Withdraw takes back what was sold of the slice from an instant on, as far as nothing of it has begun, and returns how much
	// that is.
	Withdraw(now, from quantity.Instant, s *window.Slice, out *protocol.Out) int
	// Purse is what the queue of a job can still pay in credits, and what a full purse of it holds.
	Purse(now quantity.Instant, j *index.Job) (has, full int64)
}

// Piece is a subjob that was won: what a node is asked for.
type Piece struct {
	atomizer.Piece
	Start, End quantity.Instant
	// Speed of the job there, in parts per thousand.
	Speed int64
	// Window and Round that it was won in, for people.
	Window, Round uint64
	// Option it runs with, and the bid that won it; nil where nobody bid.
	Option string
	Bid    *protocol.Bid
	// Late is what was spent of the budget of the late for it.
	Late int64
}
