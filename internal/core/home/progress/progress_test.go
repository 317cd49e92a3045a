package progress

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestLength: a chain that declared none has one once it has ended, also after a restart.
func TestLength(t *testing.T) {
	open, known := &job.Spec{Kind: job.Steps, Total: job.OpenTotal}, &job.Spec{Kind: job.Steps, Total: 9}
	var p Progress
	var none *Progress
	for _, c := range []struct {
		p    *Progress
		spec *job.Spec
		n    int64
	}{{none, open, 0}, {&p, open, 0}, {none, known, 9}, {&p, known, 9}} {
		if n, ok := c.p.Length(c.spec); n != c.n || ok != (n > 0) {
			t.Errorf("%+v: %d, %v", c.spec, n, ok)
		}
	}
	before := p.Mix(digest.New())
	p.End(7)
	var r protocol.Record
	p.Save(&r)
	var again Progress
	again.Restore(&r)
	if n, ok := again.Length(open); n != 7 || !ok || again.Mix(digest.New()) == before {
		t.Errorf("%d, %v", n, ok)
	}
}

// TestNoUnitIsSoldTwice: random claims, extensions, releases and commits, held against a plain record of each unit: what is claimed is
// what the claims that stand come to, it is apart from what is committed, and what is not free is never sold.
func TestNoUnitIsSoldTwice(t *testing.T) {
	const free, sold, done, skipped = 0, 1, 2, 3
	rapid.Check(t, func(rt *rapid.T) {
		var p Progress
		p.Init()
		units := make([]int, 24)
		var claims, asks []job.Range
		draw := func(what string) job.Range {
			from := rapid.Int64Range(0, 22).Draw(rt, what+" from")
			return job.Range{From: from, To: rapid.Int64Range(from+1, 24).Draw(rt, what+" to")}
		}
		set := func(r job.Range, to int) {
			for u := r.From; u < r.To; u++ {
				units[u] = to
			}
		}
		has := func(r job.Range, in ...int) bool {
			for u := r.From; u < r.To; u++ {
				for _, x := range in {
					if units[u] == x {
						return true
					}
				}
			}
			return false
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := -1
			if len(claims) > 0 {
				i = rapid.IntRange(0, len(claims)-1).Draw(rt, "claim")
			}
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				r := draw("sold")
				want := !has(r, sold, done, skipped)
				if p.Free(r) != want || p.Claim(r) != want {
					rt.Fatalf("%v is free: %v, of %v", r, want, units)
				}
				if want {
					set(r, sold)
					claims = append(claims, r)
				}
			case 1: // it grows over what is free behind it
				if i < 0 || claims[i].To == 24 || units[claims[i].To] != free {
					continue
				}
				to := job.Range{From: claims[i].From, To: claims[i].To + 1}
				if !p.Move(claims[i], to) {
					rt.Fatalf("%v can not grow to %v", claims[i], to)
				}
				set(to, sold)
				claims[i] = to
			case 2, 3: // it ends, and some of it counts
				if i < 0 {
					continue
				}
				r := claims[i]
				counts := job.Range{From: r.From, To: rapid.Int64Range(r.From, r.To).Draw(rt, "counts")}
				if p.Committable(counts, r) == counts.Empty() {
					rt.Fatalf("of %v %v may be committed: %v", r, counts, counts.Empty())
				}
				p.Release(r)
				set(r, free)
				if bad := rapid.Bool().Draw(rt, "skipped"); !counts.Empty() {
					p.Commit(counts, bad)
					set(counts, map[bool]int{false: done, true: skipped}[bad])
				}
				claims = append(claims[:i], claims[i+1:]...)
			case 4:
				r := draw("asked")
				if !has(r, sold, done, skipped) && !p.asked.Overlaps(r) {
					p.Ask(r)
					asks = append(asks, r)
				}
			default:
				if len(asks) > 0 {
					p.Answered(asks[0])
					asks = asks[1:]
				}
			}
			var claimed, committed, gaveUp, taken job.Ranges
			for u, state := range units {
				r := job.Range{From: int64(u), To: int64(u) + 1}
				if state == sold {
					claimed, taken = claimed.Add(r), taken.Add(r)
				}
				if state >= done {
					committed = committed.Add(r)
				}
				if state == skipped {
					gaveUp = gaveUp.Add(r)
				}
			}
			for _, r := range asks {
				taken = taken.Add(r)
			}
			if p.Claimed().Len() != claimed.Len() || p.Committed().Len() != committed.Len() || p.Skipped().Len() != gaveUp.Len() ||
				p.Bad() != gaveUp.Len() || p.Taken().Len() != taken.Len() || p.Asking() != len(asks) {
				rt.Fatalf("%+v, want %v sold, %v done, %v given up, %v taken", p, claimed, committed, gaveUp, taken)
			}
		}
		var r protocol.Record
		p.Save(&r)
		var again Progress
		if again.Restore(&r); again.Claimed().Len() != p.Claimed().Len() || again.Resume() != p.Resume() {
			rt.Fatalf("%+v comes back as %+v", p, again)
		}
	})
}

// TestAJobOfWhichNothingWasSoldHasNoProgress: reading it is as reading an empty one.
func TestAJobOfWhichNothingWasSoldHasNoProgress(t *testing.T) {
	var p *Progress
	var y *History
	r := job.Range{To: 1}
	if p.Committed() != nil || p.Claimed() != nil || p.Taken() != nil || p.Skipped() != nil || p.Bad() != 0 || p.Asking() != 0 ||
		!p.Free(r) || !p.Resume().Zero() {
		t.Error("nothing was sold, and it has progress")
	}
	if y.Past() != nil || y.Attained()|int64(y.Started())|int64(y.Served())|int64(y.Settled()) != 0 || y.Of(job.Token{}) != nil {
		t.Error("nothing was sold, and it has a history")
	}
}
