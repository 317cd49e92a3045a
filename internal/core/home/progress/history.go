package progress

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// History is what came of the settled claims of one job. Invariant: sum and fruitless are those of past, which only grows. Its reading
// methods may be called on nil.
type History struct {
	// Durable, as protocol.Record has them.
	past            []protocol.Past
	attained        int64
	started, served quantity.Instant
	// sum is over the past of each entry's hash with its place, fruitless how many of them committed nothing.
	sum       uint64
	fruitless int
	// settled is when the last claim was, or the job's present life began, since its ledger came up; 0: before.
	settled quantity.Instant
}

// Restore makes it the one of a record.
func (y *History) Restore(r *protocol.Record) {
	*y = History{attained: r.Attained, started: r.Started, served: r.Served, past: slices.Clone(r.Past)}
	for i := range y.past {
		y.count(i)
	}
}

// Save puts it into a record.
func (y *History) Save(r *protocol.Record) {
	if y == nil {
		return
	}
	r.Attained, r.Started, r.Served, r.Past = y.attained, y.started, y.served, slices.Clone(y.past)
}

func (y *History) count(i int) {
	y.sum += y.past[i].Mix(digest.New().Int(int64(i))).Sum()
	if y.past[i].Committed.Empty() {
		y.fruitless++
	}
}

// Past are the claims that were settled, oldest first.
func (y *History) Past() []protocol.Past {
	if y == nil {
		return nil
	}
	return y.past
}

// Fruitless is how many of these committed nothing.
func (y *History) Fruitless() int {
	if y == nil {
		return 0
	}
	return y.fruitless
}

// Attained is the memory-time of ended subjobs, in MiB-milliseconds.
func (y *History) Attained() int64 {
	if y == nil {
		return 0
	}
	return y.attained
}

// Started is when the first subjob began of those that have ended; 0 if none has.
func (y *History) Started() quantity.Instant {
	if y == nil {
		return 0
	}
	return y.started
}

// Served is when the job last got something.
func (y *History) Served() quantity.Instant {
	if y == nil {
		return 0
	}
	return y.served
}

// Settled is when the last claim was; 0 if that was before its ledger came up.
func (y *History) Settled() quantity.Instant {
	if y == nil {
		return 0
	}
	return y.settled
}

// Mix adds it to a digest, but for when it was served.
func (y *History) Mix(h digest.Hash) digest.Hash {
	sum := uint64(0)
	if y != nil {
		sum = y.sum
	}
	return h.Int(y.Attained(), int64(y.Started()), int64(len(y.Past())), int64(sum))
}

// Of is what became of the settled claim with a token, or with a member of that token; nil if there is none.
func (y *History) Of(t job.Token) *protocol.Past {
	if y == nil {
		return nil
	}
	for i := len(y.past) - 1; i >= 0; i-- {
		if p := &y.past[i]; p.Token == t || protocol.MemberOf(p.Members, t) >= 0 {
			return p
		}
	}
	return nil
}

// Serve notes that the job gets something at an instant.
func (y *History) Serve(at quantity.Instant) { y.served = max(y.served, at) }

// Unserve notes that it got nothing after all: it waits since then.
func (y *History) Unserve(since quantity.Instant) {
	y.served = since
}

// Settle adds what became of a claim, and returns the entry and the memory-time that it had. It is good until the next.
func (y *History) Settle(p protocol.Past, r *job.Result, at quantity.Instant) (entry *protocol.Past, attained int64) {
	y.settled = max(y.settled, at)
	if r != nil {
		p.Outcome, p.RealStart, p.RealEnd, p.Peak = r.Outcome, r.Start, r.End, r.Peak
		p.Spent = protocol.Spent{Prepare: r.Prepare, Startup: r.Startup, Waited: r.Waited, Stayed: r.Stayed}
		p.Detail, p.LeftNothing = cmp.Or(p.Detail, r.Detail), r.LeftNothing
		attained = policy.MemoryTime(p.Demand, r.Ran())
		y.attained += attained
		if r.Start != 0 && (y.started == 0 || r.Start < y.started) {
			y.started = r.Start
		}
	}
	y.past = append(y.past, p)
	y.count(len(y.past) - 1)
	return &y.past[len(y.past)-1], attained
}

// Reopen begins another life of the job.
func (y *History) Reopen() { y.started, y.served = 0, 0 }

// Resettle notes when it began: a verdict counts its wait from then.
func (y *History) Resettle(now quantity.Instant) { y.settled = now }
