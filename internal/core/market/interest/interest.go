package interest

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Config is what the mechanism rests on.
type Config struct {
	// Retry is the first rest of a job that declined.
	Retry  time.Duration
	Board  *window.Board
	Index  *index.Index
	Est    *index.Estimator
	Relay  *agents.Relay
	Late   *lateness.Allowance
	Seller award.Seller
	Stats  *status.Negotiation
}

// New is a mechanism that has sold nothing.
func New(c Config) *Interest {
	x := &Interest{board: c.Board, late: c.Late, seller: c.Seller, stats: c.Stats, askings: map[uint64]*asking{}}
	x.picker = picker{policy: c.Est.Policy(), est: c.Est, index: c.Index, relay: c.Relay}
	x.backoff = backoff{retry: c.Retry, index: c.Index, stats: c.Stats}
	x.offers = x
	return x
}

// Sell offers every window that has begun, to every job that is eligible or to those that have changed since, and asks for what is
// won. Waiting is how many jobs run nowhere. It returns when to look again.
func (x *Interest) Sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	x.backoff.wake(now)
	x.index.Refresh(now)
	x.board.Advertise(now)
	x.conclude(now, out)
	x.index.Refresh(now)
	x.beginCalls(now)
	news := x.index.News()
	if news {
		x.board.LoudInTurn() // the pass finds the quiet ones by itself
	}
	if waiting <= x.board.Open() {
		// With as many windows as jobs to fill them the fast slices go first: no job is to run on a slow one while fast ones are idle.
		// Otherwise the small ones do, so that small pieces go to small slices and the large are left to others.
		for _, speed := range x.board.Speeds() {
			x.offerTurn(now, speed, news, out)
		}
	} else {
		x.offerTurn(now, anySpeed, news, out)
	}
	x.endCalls(now, out)
	return min(x.relay.Next(), x.board.Wake(), x.backoff.resting.Next())
}

// Retire forgets a job that is over.
func (x *Interest) Retire(j *index.Job) { x.backoff.forget(j) }

// Remove forgets what a slice that is there no more was given to.
func (x *Interest) Remove(s *window.Slice) {
	for class := range x.given {
		for i := range x.given[class].list {
			if g := &x.given[class].list[i]; g.slice == s {
				*g = given{}
			}
		}
	}
}

// Declining is why a job has declined last.
func (x *Interest) Declining(j *index.Job) (refusal atomizer.Refusal, text string) {
	return x.backoff.latest(j)
}

// Missed is the latest window that a job could have used and another got, with its slice; nil if there is none.
func (x *Interest) Missed(now quantity.Instant, j *index.Job) (at *window.Slice, latest status.Given) {
	since := j.Since()
	for class := range x.given {
		for i := range x.given[class].list {
			g := &x.given[class].list[i]
			if g.slice == nil || !g.slice.Usable() || g.slice.Class().At() != class || g.job == j.Name() || g.at < since ||
				g.at <= latest.At {
				continue
			}
			if _, refusal := x.est.Fit(j, g.slice.Class(), now, now.Add(g.length)); refusal.Why == atomizer.Interested {
				at, latest = g.slice, status.Given{Slice: g.slice.Name(), Length: g.length, At: g.at, Winner: g.job, WinnerQueue: g.queue}
			}
		}
	}
	return at, latest
}
