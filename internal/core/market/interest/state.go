package interest

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Interest sells windows to the jobs that the policy picks among the interested. Invariant: between two passes every window that has begun
// was offered to all jobs, and since then to every job that changed, unless agents are waited for.
type Interest struct {
	picker
	backoff backoff
	board   *window.Board
	late    *lateness.Allowance
	seller  award.Seller
	stats   *status.Negotiation
	// rounds counts them.
	rounds uint64
	// askings are by round the windows that an agent is asked for its piece of.
	askings map[uint64]*asking
	calling calling
	// given are by class the latest windows that somebody got there.
	given []gifts
	// missed and latest are room for a pass.
	missed []missed
	latest []int
	offers offerer // what offers one window: Interest itself, but in tests
}

// offerer offers one window.
type offerer interface {
	offer(now quantity.Instant, s *window.Slice, w *window.Window, t *asking, out *protocol.Out)
	// findFirst puts the first in order of those who signal for a window, but for one that is not meant, into pick: nothing is counted.
	findFirst(now quantity.Instant, s *window.Slice, w *window.Window, full bool, t *asking, but *index.Job, pick *candidate)
}

// asking is one window whose jobs are asked in order until one cuts a piece that fits.
type asking struct {
	signals []signal
	// asks of agents so far.
	asks int
	// since is the generation of the jobs when the signals were asked for: those that came since were not asked.
	since uint64
	// second is the next in order, as of when the first was asked, where the order depends on the piece; without a job if there is none, or
	// the piece decides nothing. first is what the policy saw of the one that was asked.
	first, second policy.Candidate
}

// signal is an agent's interest in a window.
type signal struct {
	job            *index.Job
	session, round uint64
	variant        uint32
	// piece is what it would use, for a policy that orders by that.
	piece atomizer.Piece
	// asked: its agent has been, for the piece.
	asked bool
}

// calling are the agents that are called in one pass, and the round that is opened for it.
type calling struct {
	asked []agents.Callee
	calls []*protocol.Call
	round *agents.Round
}

// missed is what a pass knows of a class: whether a job that changed could use slices of it, up to which place that was minded, how
// many rounds nobody could use, and where the last of them was.
type missed struct {
	wanted          bool
	from, n, latest int
}

// mostGiven bounds the windows that are kept for each class.
const mostGiven = 4

// gifts are the latest windows of a class that somebody got, a ring; n counts them all.
type gifts struct {
	list [mostGiven]given
	n    int
}

// given is a window that a job got. The names are kept, not the job: it may be gone when somebody asks.
type given struct {
	slice  *window.Slice
	length time.Duration
	at     quantity.Instant
	job    job.ID
	queue  string
}

// add notes who got a window of the class.
func (x *gifts) add(g given) {
	x.list[x.n%mostGiven] = g
	x.n++
}
