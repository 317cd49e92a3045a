package job_test

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
)

const units = 40

// set is the plainest set of units.
type set [units]bool

func (s *set) put(r job.Range, v bool) {
	for i := r.From; i < r.To; i++ {
		s[i] = v
	}
}

func (s *set) count(r job.Range, v bool) (n int64) {
	for i := r.From; i < r.To; i++ {
		if s[i] == v {
			n++
		}
	}
	return n
}

func drawRange(t *rapid.T) job.Range {
	return job.Range{From: rapid.Int64Range(0, units).Draw(t, "from"), To: rapid.Int64Range(0, units).Draw(t, "to")}
}

func drawSet(t *rapid.T) (r job.Ranges, s set) {
	for range rapid.IntRange(0, 12).Draw(t, "changes") {
		x := drawRange(t)
		if add := rapid.Bool().Draw(t, "add"); add {
			r = r.Add(x)
			s.put(x, true)
		} else {
			r = r.Remove(x)
			s.put(x, false)
		}
	}
	return r, s
}

// TestRangesAgainstAPlainSet: whatever is added and removed, every question has the answer of a set kept unit by unit, and
// the ranges stay sorted, apart and not empty.
func TestRangesAgainstAPlainSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawSet(t)
		last := int64(-1)
		for _, x := range r {
			if x.Empty() || x.From <= last || s.count(x, true) != x.Len() {
				t.Fatalf("%v has an empty range, two that touch, or a unit too many", r)
			}
			last = x.To
		}
		if r.Len() != s.count(job.Range{To: units}, true) {
			t.Fatalf("%v has %d units, want %d", r, r.Len(), s.count(job.Range{To: units}, true))
		}
		q := drawRange(t)
		if got, want := r.Overlaps(q), s.count(q, true) > 0; got != want {
			t.Fatalf("%v overlaps %v: %v", r, q, got)
		}
		if got, want := r.Contains(q), s.count(q, false) == 0; got != want {
			t.Fatalf("%v contains %v: %v", r, q, got)
		}
	})
}

// TestNextFreeAgainstAPlainSet: the first units in none of two sets, as far as they go on.
func TestNextFreeAgainstAPlainSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, sa := drawSet(t)
		b, sb := drawSet(t)
		from, total := rapid.Int64Range(0, units).Draw(t, "start"), rapid.Int64Range(0, units).Draw(t, "total")
		want := from
		for want < total && (sa[want] || sb[want]) {
			want++
		}
		end := want
		for end < total && !sa[end] && !sb[end] {
			end++
		}
		got := job.NextFree(from, total, a, b)
		if end <= want {
			if !got.Empty() {
				t.Fatalf("nothing is free in %v and %v from %d to %d, got %v", a, b, from, total, got)
			}
		} else if got != (job.Range{From: want, To: end}) {
			t.Fatalf("got %v, want [%d,%d)", got, want, end)
		}
	})
}

func TestTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := job.Token{Epoch: rapid.Uint32().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq")}
		b := job.Token{Epoch: rapid.Uint32().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq")}
		if got, err := job.ParseToken(a.String()); err != nil || got != a {
			t.Fatalf("%v reads as %v, %v", a, got, err)
		}
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) || a.Epoch < b.Epoch && a.Compare(b) >= 0 {
			t.Fatalf("%v and %v compare %d and %d", a, b, a.Compare(b), b.Compare(a))
		}
	})
	for _, s := range []string{"", "1", "1-", "-1", "1-2-3", "01-2", "1- 2", "4294967296-1", "x-y"} {
		if got, err := job.ParseToken(s); err == nil {
			t.Errorf("%q reads as %v", s, got)
		}
	}
}
