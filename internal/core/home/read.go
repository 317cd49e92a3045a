package home

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// What others read of a job and of a queue. Lists are the ledger's own: they are only read, and good until the next fact.

// Queue that it is in.
func (j *Job) Queue() *Queue { return j.q }

// Committed is what of the job is done.
func (j *Job) Committed() job.Ranges { return j.work().committed }

// Claimed is what of it is sold.
func (j *Job) Claimed() job.Ranges { return j.work().claimed }

// Skipped is what of it was given up.
func (j *Job) Skipped() job.Ranges { return j.work().skipped }

// Claims are those that stand, by token.
func (j *Job) Claims() []protocol.Claim { return j.work().claims }

// Asking is how many asks wait for an answer.
func (j *Job) Asking() int { return j.work().asking }

// Busy is how many subjobs run or are asked for.
func (j *Job) Busy() int { return len(j.work().claims) + j.work().asking }

// Claim under a token; nil if none stands.
func (j *Job) Claim(t job.Token) *protocol.Claim {
	if i := j.claim(t); i >= 0 {
		return &j.work().claims[i]
	}
	return nil
}

// Past are the claims that were settled, oldest first.
func (j *Job) Past() []protocol.Past { return j.work().past }

// Fruitless is how many of these committed nothing.
func (j *Job) Fruitless() int { return j.work().fruitless }

// Publishing is what was committed and is not in its place yet, by token.
func (j *Job) Publishing() []protocol.Publication { return j.work().unpublished }

// Attained is the memory-time of ended subjobs, in MiB-milliseconds.
func (j *Job) Attained() int64 { return j.work().attained }

// Started is when the first subjob began of those that have ended; 0 if none has.
func (j *Job) Started() quantity.Instant { return j.work().started }

// Served is when it last got something.
func (j *Job) Served() quantity.Instant { return j.work().served }

// Began is when the first subjob began, of those that run too; 0 if none has.
func (j *Job) Began() quantity.Instant {
	began := j.work().started
	for i := range j.work().leases {
		if t := j.work().leases[i].running; t != 0 && (began == 0 || t < began) {
			began = t
		}
	}
	return began
}

// Verdict is how it ended; its State is Waiting (zero) while there is none.
func (j *Job) Verdict() job.Verdict { return j.fate().verdict }

// Ended is when it got its verdict.
func (j *Job) Ended() quantity.Instant { return j.fate().ended }

// Ending is the verdict that it ends with once its claims are settled; its State is Waiting while there is none.
func (j *Job) Ending() job.Verdict { return j.fate().dropping }

// Safe is the profile that plans use.
func (j *Job) Safe() *trp.Table {
	return safeOf(j.Learned(), j)
}

// RestsUntil is when its pause is over; 0 if it never had one.
func (j *Job) RestsUntil() quantity.Instant { return j.met().notBefore }

// Pause is why a job pauses: so many times in a row, and what was said last. Until then it does for this reason.
type Pause struct {
	Times int
	Text  string
	Until quantity.Instant
}

// Ailed are troubles of nodes with it.
func (j *Job) Ailed() Pause {
	a := &j.met().ailed
	return Pause{a.times, a.text, a.until}
}

// Outlived is how many subjobs in a row had processes that outlived their lease.
func (j *Job) Outlived() int { return j.met().outlived }

// Refused are places that it had won and did not get.
func (j *Job) Refused() Pause {
	b := &j.met().backoff
	return Pause{b.refusals, b.text, b.until}
}

// Avoiding says whether it leaves any slice to others.
func (j *Job) Avoiding() bool { return len(j.met().backoff.avoided) > 0 }

// Running since then; 0 if that was not heard of.
func (l *Lease) Running() quantity.Instant { return l.running }

// Stores says whether its subjob has ended and what it left is being stored.
func (l *Lease) Stores() bool { return l.storing != 0 }

// Progress last reported.
func (l *Lease) Progress() int64 { return l.progress }

// Held is how many slices its claims hold.
func (q *Queue) Held() int { return q.held }

// Holding is the same with the slices of asks.
func (q *Queue) Holding() int { return q.held + q.asking }

// Attained is what its jobs have had, those included that the archive alone has, in MiB-milliseconds.
func (q *Queue) Attained() int64 { return q.attained }

// Use is the same with what runs now.
func (q *Queue) Use(now quantity.Instant) int64 { return q.attained + q.going.at(now) }

// Trust is what was observed of its declarations.
func (q *Queue) Trust() *protocol.Trust { return &q.standing.Trust }
