package all_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// conforms checks what every policy must pass: a total order that ends on the job's id, whatever the candidates.
func conforms(t *testing.T, p policy.Policy) {
	t.Helper()
	t.Run("total order", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			cs := candidates(t)
			for i := range cs {
				for j := range cs {
					ij, ji := p.Compare(&cs[i], &cs[j]), p.Compare(&cs[j], &cs[i])
					if sign(ij) != -sign(ji) {
						t.Fatalf("not antisymmetric: %+v and %+v compare as %d and %d", cs[i], cs[j], ij, ji)
					}
					if (ij == 0) != (i == j) {
						t.Fatalf("a tie that does not end on the id: %+v and %+v", cs[i], cs[j])
					}
					for k := range cs {
						if ij < 0 && p.Compare(&cs[j], &cs[k]) < 0 && p.Compare(&cs[i], &cs[k]) >= 0 {
							t.Fatalf("not transitive: %+v, %+v, %+v", cs[i], cs[j], cs[k])
						}
					}
				}
			}
		})
	})
	t.Run("key", func(t *testing.T) { keys(t, p) })
	t.Run("motion", func(t *testing.T) { moves(t, p) })
	t.Run("having had more", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			cs := candidates(t)
			a, b := cs[0], cs[1]
			before := p.Compare(&a, &b)
			if b.Attained += rapid.Int64Range(0, 9).Draw(t, "more"); before < 0 && p.Compare(&a, &b) > 0 {
				t.Fatalf("%+v is asked before %+v for having attained more", b, a)
			}
		})
	})
	t.Run("any order of answers gives the same pick", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			cs := candidates(t)
			want := pick(p, cs)
			shuffled := rapid.Permutation(cs).Draw(t, "shuffled")
			if got := pick(p, shuffled); got != want {
				t.Fatalf("picked %s, and %s when the answers came in another order", want, got)
			}
		})
	})
}

// keys checks that of jobs of one queue the lesser key is asked first, and that keys read nothing that changes by itself.
func keys(t *testing.T, p policy.Policy) {
	rapid.Check(t, func(t *rapid.T) {
		cs := candidates(t)
		a, b := cs[0], cs[1]
		b.QueueAttained, b.Weight = a.QueueAttained, a.Weight
		scale := rapid.SampledFrom([]quantity.Instant{1, 1 << 21, 1 << 59}).Draw(t, "scale")
		a.Submitted, b.Submitted = a.Submitted*scale, b.Submitted*scale
		far := rapid.SampledFrom([]int32{1, -1, 1 << 20, -1 << 29}).Draw(t, "far")
		a.Priority, b.Priority = a.Priority*far, b.Priority*far
		x, y := p.Key(&a), p.Key(&b)
		if c := slices.Compare(x[:], y[:]); c != 0 && c != sign(p.Compare(&a, &b)) {
			t.Fatalf("%+v and %+v compare as %d, their keys %v and %v as %d", a, b, p.Compare(&a, &b), x, y, c)
		}
		other := a
		other.QueueAttained, other.Weight = other.QueueAttained+1, other.Weight+1
		other.Used, other.Offered = other.Used+1, other.Offered+1
		if p.Key(&other) != x {
			t.Fatalf("the key of %+v is %v, that of %+v %v", a, x, other, p.Key(&other))
		}
	})
}

// moves checks that the order of two jobs stays what it was while only that moves which the policy allows to.
func moves(t *testing.T, p policy.Policy) {
	rapid.Check(t, func(t *rapid.T) {
		cs := candidates(t)
		a, b := cs[0], cs[1]
		switch p.Motion() {
		case policy.Free:
			return
		case policy.WithinQueue:
			b.QueueAttained, b.Weight = a.QueueAttained, a.Weight
		case policy.Still, policy.ByClass:
		default:
			t.Fatalf("motion %d is none there is", p.Motion())
		}
		before := p.Compare(&a, &b)
		gone, had := time.Duration(rapid.Int64Range(0, 9).Draw(t, "gone")), rapid.Int64Range(0, 9).Draw(t, "had")
		for _, c := range []*policy.Candidate{&a, &b} {
			c.Laxity -= gone
			c.QueueAttained += had
			c.Used, c.Offered = rapid.Int64Range(0, 9).Draw(t, "used"), 10
		}
		if p.Motion() != policy.WithinQueue {
			b.QueueAttained, b.Weight = rapid.Int64Range(0, 9).Draw(t, "other queue"), rapid.Int64Range(1, 9).Draw(t, "its weight")
		}
		if after := p.Compare(&a, &b); sign(after) != sign(before) {
			t.Fatalf("%+v and %+v compared as %d before", a, b, before)
		}
	})
}

// candidates draws two to eight candidates with distinct ids and many ties.
func candidates(t *rapid.T) []policy.Candidate {
	n := rapid.IntRange(2, 8).Draw(t, "n")
	cs := make([]policy.Candidate, n)
	small := rapid.Int64Range(0, 3)
	for i := range cs {
		cs[i] = policy.Candidate{
			Job:           job.ID("j" + strconv.Itoa(i)),
			Priority:      int32(small.Draw(t, "priority")),
			Submitted:     quantity.Instant(small.Draw(t, "submitted")),
			Attained:      small.Draw(t, "attained"),
			QueueAttained: small.Draw(t, "queue attained") * rapid.SampledFrom([]int64{1, 1 << 58}).Draw(t, "scale"),
			Weight:        1 + small.Draw(t, "weight"),
			Laxity:        time.Duration(small.Draw(t, "laxity")),
			Index:         small.Draw(t, "index"),
			Used:          small.Draw(t, "used"),
			Offered:       10,
		}
	}
	return cs
}

func pick(p policy.Policy, cs []policy.Candidate) job.ID {
	return slices.MinFunc(cs, func(a, b policy.Candidate) int { return p.Compare(&a, &b) }).Job
}

func sign(x int) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}
