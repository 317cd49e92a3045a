package home

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/protocol"
)

func queueSum(q *Queue) uint64 {
	if q.Queue == (protocol.Queue{Name: q.Name, Weight: 1}) && q.standing == (protocol.Standing{}) {
		return 0 // as good as never heard of: reading a queue makes one
	}
	h := q.Queue.Mix(digest.New())
	if q.standing != (protocol.Standing{}) {
		h = q.standing.Mix(h)
	}
	return h.Sum()
}

// A record's long parts that seldom change have sums of their own, so that a fact costs what it changes and not the record: the spec
// (job.Pool), the profile that was learned (Learned.Safe), and the past.

func safeSum(l *protocol.Learned) uint64 { return digest.Optional(digest.New(), l.Safe).Sum() }

// unsafeSum is that of a job of which no profile was learned.
var unsafeSum = safeSum(&protocol.Learned{}) //nolint:gochecknoglobals // read-only by use

func pastSum(past []protocol.Past, i int) uint64 {
	return past[i].Mix(digest.New().Int(int64(i))).Sum()
}

// hash is the job's part of the digest.
func (j *Job) hash() uint64 {
	w, l, f, safe := j.work(), j.Learned(), j.fate(), unsafeSum
	if j.lessons != nil {
		safe = j.lessons.safeSum
	}
	h := digest.New().Text(string(j.ID)).Int(int64(j.Epoch), int64(j.Generation), int64(j.specSum), int64(j.Submitted), w.forgiven).Text(j.q.Name).Bool(j.Held)
	h = w.skipped.Mix(w.claimed.Mix(w.committed.Mix(h)))
	h = learnedHash(digest.List(h, w.claims), l).Int(int64(safe))
	h = w.resume.Mix(h).Int(w.attained, int64(w.started), int64(len(w.past)), int64(w.pastSum))
	h = f.verdict.Mix(digest.List(h, w.unpublished)).Int(int64(f.ended), int64(w.served))
	if f.moving != "" { // seldom, and written since there are drains
		h = h.Text(f.moving)
	}
	return h.Sum()
}

// learnedHash leaves out Safe, which has a sum of its own.
func learnedHash(h digest.Hash, l *protocol.Learned) digest.Hash {
	h = digest.Numbers(digest.Numbers(h, l.Rates), l.Prepares).Int(int64(l.Prepare), int64(l.Rate), l.Margin, l.MemoryScale, int64(l.Failures), int64(l.FailedAt), int64(l.Kills), int64(l.KilledAt), l.Spread, l.Runs)
	h = l.Trust.Mix(l.Peak.Mix(h)).Text(l.LastDetail).Int(int64(len(l.Suspects)))
	for _, s := range l.Suspects {
		h = s.Range.Mix(h).Int(s.Limit)
	}
	if l.Busy != 0 { // as it was before this was learned
		h = h.Int(l.Busy)
	}
	return h
}

// templateSum hashes what is remembered of a template.
func templateSum(queue string, t *template) uint64 {
	return t.runs.Mix(digest.New().Text(queue).Text(t.name)).Sum()
}
