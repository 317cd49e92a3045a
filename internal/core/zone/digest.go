package zone

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

func queueSum(q *queue) uint64 {
	if q.Queue == (protocol.Queue{Name: q.Name, Weight: 1}) && q.standing == (protocol.Standing{}) {
		return 0 // as good as never heard of: reading a queue makes one
	}
	h := digest.New()
	if s := &q.standing; *s != (protocol.Standing{}) {
		h = trustHash(h.Int(s.Credits, int64(s.Refilled)), &s.Trust)
	}
	return h.Text(q.Name).Int(q.Weight, int64(q.Cap), int64(q.MaxJobs), int64(q.MaxWindow)).Text(q.User).Sum()
}

// recordSum hashes a job's record. The past only grows, so its length and its last entry stand for all of it.
func recordSum(r *protocol.Record) uint64 {
	h := digest.New().Text(string(r.Job)).Int(int64(r.Epoch), int64(r.Submitted)).Bool(r.Held)
	h = rangesHash(rangesHash(rangesHash(h, r.Committed), r.Claimed), r.Skipped)
	for i := range r.Claims {
		h = claimHash(h, &r.Claims[i])
	}
	h = learnedHash(h, &r.Learned)
	h = h.Int(int64(r.Resume.Epoch), int64(r.Resume.Seq), r.Attained, int64(r.Started), int64(len(r.Past)))
	if n := len(r.Past); n > 0 {
		p := &r.Past[n-1]
		h = claimHash(h, &p.Claim).Int(p.Committed.From, p.Committed.To, int64(p.Outcome), int64(p.RealStart), int64(p.RealEnd))
	}
	return h.Int(int64(r.Verdict.State), int64(r.Ended), int64(r.Served)).Text(r.Verdict.Reason).Sum()
}

func rangesHash(h digest.Hash, s job.Ranges) digest.Hash {
	h = h.Int(int64(len(s)))
	for _, r := range s {
		h = h.Int(r.From, r.To)
	}
	return h
}

func claimHash(h digest.Hash, c *protocol.Claim) digest.Hash {
	h = h.Int(int64(c.Token.Epoch), int64(c.Token.Seq), c.Range.From, c.Range.To, int64(c.Start), int64(c.End), c.Speed, int64(len(c.Also)))
	return h.Text(string(c.Node)).Text(string(c.Slice))
}

func learnedHash(h digest.Hash, l *protocol.Learned) digest.Hash {
	h = h.Int(int64(len(l.Rates)), int64(l.Rate), l.Margin, l.MemoryScale, int64(l.Failures), int64(l.Kills))
	for _, s := range l.Suspects {
		h = h.Int(s.Range.From, s.Range.To, s.Limit)
	}
	if l.Safe != nil { // a table comes whole in one fact: its first row stands for it
		h = tableHash(h.Int(l.Spread, l.Runs), l.Safe)
	}
	return trustHash(h, &l.Trust).Text(l.LastDetail)
}

func tableHash(h digest.Hash, t *trp.Table) digest.Hash {
	h = h.Int(t.Bounds...)
	for _, a := range t.Least[0] {
		h = h.Int(int64(a))
	}
	return h
}

// templateSum hashes what is remembered of a template. Runs come whole and leave in their order: how many there are, the
// oldest and the newest stand for all of them.
func templateSum(queue string, t *template) uint64 {
	h := digest.New().Text(queue).Text(t.name).Int(int64(len(t.runs.List)))
	for _, i := range []int{0, len(t.runs.List) - 1} {
		r := &t.runs.List[i]
		h = h.Int(int64(r.Unit))
		for _, a := range r.Peaks {
			h = h.Int(int64(a))
		}
	}
	return h.Sum()
}

func trustHash(h digest.Hash, t *protocol.Trust) digest.Hash {
	if *t == (protocol.Trust{}) {
		return h
	}
	return h.Int(t.Error, t.History, t.Seen, t.Risk, t.Pace, t.Runs, t.Excess, t.Evidence)
}
