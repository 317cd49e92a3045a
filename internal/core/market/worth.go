package market

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// What a slice is worth to a gang, which no window holds, beside what it is worth to those that windows are for: so both stand in one
// order (adr 0031).

// Indexes says whether the policy has an index, by which gangs and others can be compared.
func (f *Floor) Indexes() bool { return f.indexer != nil }

// GangIndex is what the policy makes of one of the slices of a gang, on a class, where the gang runs at a speed, in parts per thousand:
// having it over is worth to each slice its part. It is 0 without an index or a speed.
func (f *Floor) GangIndex(spec *job.Spec, c *Class, speed int64) int64 {
	if f.indexer == nil || speed == 0 {
		return 0
	}
	return f.indexer.Index(policy.Outlook{
		Worth: worth(spec) / int64(max(1, spec.Slices)), Left: f.rigidLeft(spec, speed),
		Advantage: quantity.MulDiv(speed, 1_000_000, max(1, c.Speed)), Best: f.advantage(spec),
	})
}

// Contenders appends the greatest indexes of those that wait for windows of a class and could use one of a length, n of them or as many as
// there are, the greatest first.
func (f *Floor) Contenders(now quantity.Instant, c *Class, length time.Duration, n int, out []int64) []int64 {
	if f.indexer == nil {
		return out
	}
	from := len(out)
	enter := func(x int64) {
		i, _ := slices.BinarySearchFunc(out[from:], x, func(a, b int64) int { return cmp.Compare(b, a) })
		out = slices.Insert(out, from+i, x)
		out = out[:min(len(out), from+n)]
	}
	if f.plain != nil {
		for _, j := range f.jobs {
			if x := f.contention(now, j, c, length); x > 0 {
				enter(x)
			}
		}
		return out
	}
	f.refreshIndex(now)
	for _, g := range f.groups {
		if c.at >= len(g.rankings) {
			continue
		}
		var at ranking.Cursor
		for range n {
			j, ok := g.rankings[c.at].Next(&at, min(length, never-1))
			if !ok {
				break
			}
			enter(j.answers[c.at].index)
		}
	}
	for _, j := range f.unindexed {
		if x := f.contention(now, j, c, length); x > 0 {
			enter(x)
		}
	}
	return out
}

// contention is the index of a job on a class if it waits for a window there of a length and could use it, else 0. An agent may be silent:
// nobody waits for it.
func (f *Floor) contention(now quantity.Instant, j *Job, c *Class, length time.Duration) int64 {
	if j.active == 0 || j.Spec().External || j.Ineligible(now) != Eligible {
		return 0
	}
	a, simple := f.answer(j, c)
	could := a.need <= length && a.need != never
	if !simple {
		_, could = f.contends(now, j, c)
	}
	if !could {
		return 0
	}
	return f.index(j, c)
}
