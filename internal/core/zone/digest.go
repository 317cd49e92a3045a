package zone

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/protocol"
)

func queueSum(q *queue) uint64 {
	if q.Queue == (protocol.Queue{Name: q.Name, Weight: 1}) && q.standing == (protocol.Standing{}) {
		return 0 // as good as never heard of: reading a queue makes one
	}
	h := q.Queue.Mix(digest.New())
	if q.standing != (protocol.Standing{}) {
		h = q.standing.Mix(h)
	}
	return h.Sum()
}

// sums of the parts of a record that are long and seldom change, so that a fact costs what it changes and not the record:
// the spec, the profile that was learned (Learned.Safe), and the sum over the past of each entry's hash with its place.
type sums struct{ spec, safe, past uint64 }

func sumsOf(r *protocol.Record) sums {
	s := sums{spec: digest.Optional(digest.New(), r.Spec).Sum(), safe: safeSum(&r.Learned)}
	for i := range r.Past {
		s.past += pastSum(r, i)
	}
	return s
}

func safeSum(l *protocol.Learned) uint64 { return digest.Optional(digest.New(), l.Safe).Sum() }

func pastSum(r *protocol.Record, i int) uint64 {
	return r.Past[i].Mix(digest.New().Int(int64(i))).Sum()
}

// recordSum hashes a job's record; its long parts are told.
func recordSum(r *protocol.Record, parts sums) uint64 {
	h := digest.New().Text(string(r.Job)).Int(int64(r.Epoch), int64(r.Generation), int64(parts.spec), int64(r.Submitted), r.Forgiven).Text(r.Queue).Bool(r.Held)
	h = r.Skipped.Mix(r.Claimed.Mix(r.Committed.Mix(h)))
	h = learnedHash(digest.List(h, r.Claims), &r.Learned).Int(int64(parts.safe))
	h = r.Resume.Mix(h).Int(r.Attained, int64(r.Started), int64(len(r.Past)), int64(parts.past))
	return r.Verdict.Mix(digest.List(h, r.Unpublished)).Int(int64(r.Ended), int64(r.Served)).Sum()
}

// learnedHash leaves out Safe, which has a sum of its own.
func learnedHash(h digest.Hash, l *protocol.Learned) digest.Hash {
	h = digest.Numbers(digest.Numbers(h, l.Rates), l.Prepares).Int(int64(l.Prepare), int64(l.Rate), l.Margin, l.MemoryScale, int64(l.Failures), int64(l.FailedAt), int64(l.Kills), int64(l.KilledAt), l.Spread, l.Runs)
	h = l.Trust.Mix(l.Peak.Mix(h)).Text(l.LastDetail).Int(int64(len(l.Suspects)))
	for _, s := range l.Suspects {
		h = s.Range.Mix(h).Int(s.Limit)
	}
	return h
}

// templateSum hashes what is remembered of a template.
func templateSum(queue string, t *template) uint64 {
	return digest.List(digest.New().Text(queue).Text(t.name), t.runs.List).Sum()
}
