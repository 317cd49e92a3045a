// Package progress is how much of one job's work is done, sold and asked for, and what came of the claims.
package progress

import (
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Progress is the committed and claimed ranges of one job. Invariant: they are disjoint, so no unit is sold while it is sold already or
// done; skipped lies within committed. Its methods may be called on nil: nothing of the job was ever sold.
type Progress struct {
	// Durable, as protocol.Record has them.
	committed, claimed, skipped job.Ranges
	// resume is the claim that wrote the checkpoint which the next subjob goes on from, zero if there is none.
	resume job.Token
	// forgiven is how many skipped units do not count against the job any more.
	forgiven int64
	// length of a chain that declared none, once it has ended; 0 before.
	length int64
	// asked are the ranges in asks that no node has answered yet, asking how many asks those are.
	asked  job.Ranges
	asking int
	// one is room for what most jobs have no more of at a time.
	one [1]job.Range
}

// Init makes room.
func (p *Progress) Init() { p.claimed = p.one[:0] }

// Restore makes it the one of a record.
func (p *Progress) Restore(r *protocol.Record) {
	*p = Progress{
		committed: slices.Clone(r.Committed), claimed: slices.Clone(r.Claimed), skipped: slices.Clone(r.Skipped), resume: r.Resume,
		forgiven: r.Forgiven, length: r.Length,
	}
}

// Save puts it into a record.
func (p *Progress) Save(r *protocol.Record) {
	if p != nil {
		r.Committed, r.Claimed, r.Skipped = slices.Clone(p.committed), slices.Clone(p.claimed), slices.Clone(p.skipped)
		r.Resume, r.Forgiven, r.Length = p.resume, p.forgiven, p.length
	}
}

// Committed is what is done.
func (p *Progress) Committed() job.Ranges {
	if p == nil {
		return nil
	}
	return p.committed
}

// Claimed is what is sold.
func (p *Progress) Claimed() job.Ranges {
	if p == nil {
		return nil
	}
	return p.claimed
}

// Taken is what is sold or asked for.
func (p *Progress) Taken() job.Ranges {
	if p == nil || len(p.asked) == 0 {
		return p.Claimed()
	}
	taken := job.Ranges(nil)
	for _, r := range p.claimed {
		taken = taken.Add(r)
	}
	for _, r := range p.asked {
		taken = taken.Add(r)
	}
	return taken
}

// Skipped is what was given up; it counts as committed.
func (p *Progress) Skipped() job.Ranges {
	if p == nil {
		return nil
	}
	return p.skipped
}

// Bad is how many units were given up in this life of the job.
func (p *Progress) Bad() int64 {
	if p == nil {
		return 0
	}
	return p.skipped.Len() - p.forgiven
}

// Resume is the claim that wrote the latest checkpoint; zero if there is none.
func (p *Progress) Resume() job.Token {
	if p == nil {
		return job.Token{}
	}
	return p.resume
}

// Asking is how many asks wait for an answer.
func (p *Progress) Asking() int {
	if p == nil {
		return 0
	}
	return p.asking
}

// Free reports whether a range may be sold: none of it is done or sold.
func (p *Progress) Free(r job.Range) bool {
	return p == nil || !p.committed.Overlaps(r) && !p.claimed.Overlaps(r)
}

// Ask notes that a range is asked for.
func (p *Progress) Ask(r job.Range) { p.asked, p.asking = p.asked.Add(r), p.asking+1 }

// Answered notes that this is over.
func (p *Progress) Answered(r job.Range) { p.asked, p.asking = p.asked.Remove(r), p.asking-1 }

// Claim sells a range. It is false if that is empty or not free.
func (p *Progress) Claim(r job.Range) bool {
	if p.committed.Overlaps(r) || p.claimed.Overlaps(r) || r.Empty() {
		return false
	}
	p.claimed = p.claimed.Add(r)
	return true
}

// Move changes a claim's range. False if any of the new one is done.
func (p *Progress) Move(from, to job.Range) bool {
	p.claimed = p.claimed.Remove(from).Add(to)
	return !p.committed.Overlaps(to)
}

// Release gives back what a claim has sold.
func (p *Progress) Release(r job.Range) { p.claimed = p.claimed.Remove(r) }

// Committable says whether a part of a claim may be committed.
func (p *Progress) Committable(done, of job.Range) bool {
	return !done.Empty() && of.Contains(done) && !p.committed.Overlaps(done)
}

// Commit notes that a released range is done, or given up.
func (p *Progress) Commit(r job.Range, skipped bool) {
	p.committed = p.committed.Add(r)
	if skipped {
		p.skipped = p.skipped.Add(r)
	}
}

// End notes how long a chain is that declared no length: it has ended.
func (p *Progress) End(length int64) { p.length = length }

// Length is how many units a job has in all: what it declared, or what it turned out to be; false: nobody knows.
func (p *Progress) Length(spec *job.Spec) (n int64, known bool) {
	switch {
	case !spec.Open():
		return spec.Total, true
	case p == nil || p.length == 0:
		return 0, false
	}
	return p.length, true
}

// Checkpoint notes that a claim wrote the checkpoint to go on from.
func (p *Progress) Checkpoint(t job.Token) {
	p.resume = t
}

// Forgive makes what was skipped no longer count against the job.
func (p *Progress) Forgive() { p.forgiven = p.skipped.Len() }

// Mix adds the ranges to a digest.
func (p *Progress) Mix(h digest.Hash) digest.Hash {
	h = p.Skipped().Mix(p.Claimed().Mix(p.Committed().Mix(h)))
	if p != nil && p.length != 0 { // as it was before chains without a length
		h = h.Text("length").Int(p.length)
	}
	return h
}

// Forgiven is how many skipped units count no more.
func (p *Progress) Forgiven() int64 {
	if p == nil {
		return 0
	}
	return p.forgiven
}
