package learn

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// unitSuspects is the plainest record of suspects: for every unit the number of its stretch, 0 for none, and of that the limit.
type unitSuspects struct {
	of    []int
	limit map[int]int64
	next  int
}

// mark makes one stretch of r, of which parts are tried at once.
func (u *unitSuspects) mark(r job.Range, limit int64) {
	u.next++
	for i := r.From; i < r.To; i++ {
		u.of[i] = u.next
	}
	u.limit[u.next] = limit
}

func (u *unitSuspects) passed(done job.Range, parts int64) {
	hit := map[int]bool{}
	for i := done.From; i < done.To; i++ {
		hit[u.of[i]], u.of[i] = true, 0
	}
	delete(hit, 0)
	for i := int64(0); i < int64(len(u.of)); i++ {
		if !hit[u.of[i]] {
			continue
		}
		j := i
		for j < int64(len(u.of)) && u.of[j] == u.of[i] {
			j++
		}
		u.mark(job.Range{From: i, To: j}, max(1, (j-i)/max(2, parts)))
	}
}

func (u *unitSuspects) failed(where job.Range, parts int64) bool {
	alone := where.Len() == 1 && u.of[where.From] != 0 && u.limit[u.of[where.From]] == 0
	hit := map[int]bool{}
	for i := where.From; i < where.To; i++ {
		hit[u.of[i]] = true
	}
	for i := range u.of {
		if hit[u.of[i]] {
			u.of[i] = 0
		}
	}
	switch {
	case alone:
	case where.Len() == 1:
		u.mark(where, 0)
	default:
		u.mark(where, max(1, where.Len()/max(2, parts)))
	}
	return alone
}

func (u *unitSuspects) list() (out []protocol.Suspect) {
	for i := 0; i < len(u.of); i++ {
		if u.of[i] == 0 {
			continue
		}
		j := i
		for j < len(u.of) && u.of[j] == u.of[i] {
			j++
		}
		out = append(out, protocol.Suspect{Range: job.Range{From: int64(i), To: int64(j)}, Limit: u.limit[u.of[i]]})
		i = j - 1
	}
	return out
}

// TestSuspectsAgainstAPlainRecord: whatever passes and fails in whatever order, the stretches are those of a record kept unit by
// unit.
func TestSuspectsAgainstAPlainRecord(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const units = 40
		u := &unitSuspects{of: make([]int, units), limit: map[int]int64{}}
		parts := rapid.Int64Range(1, 5).Draw(rt, "parts")
		var list []protocol.Suspect
		for range rapid.IntRange(1, 30).Draw(rt, "results") {
			from := rapid.Int64Range(0, units-1).Draw(rt, "from")
			r := job.Range{From: from, To: rapid.Int64Range(from+1, min(units, from+rapid.Int64Range(1, units).Draw(rt, "length"))).Draw(rt,
				"to")}
			if rapid.Bool().Draw(rt, "passes") {
				list = passed(list, r, parts)
				u.passed(r, parts)
			} else {
				var bad bool
				list, bad = failed(list, r, parts)
				if want := u.failed(r, parts); bad != want {
					rt.Fatalf("%v is bad: %v, want %v", r, bad, want)
				}
			}
			if want := u.list(); !slices.Equal(list, want) {
				rt.Fatalf("%v, want %v", list, want)
			}
		}
	})
}
