package job

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestEqualLooksAtEveryField but the name: jobs of which one field differs never share a spec.
func TestEqualLooksAtEveryField(t *testing.T) {
	s, was := &Spec{}, Spec{}
	first := true
	digesttest.EveryField(t, s, func() uint64 {
		if first {
			text, err := json.Marshal(s)
			if err == nil {
				err = json.Unmarshal(text, &was)
			}
			if err != nil || !reflect.DeepEqual(*s, was) {
				t.Fatalf("%v: %+v became %+v", err, *s, was)
			}
			first = false
		}
		named := was
		named.Name = s.Name
		if got, want := s.Equal(&was), reflect.DeepEqual(*s, named); got != want {
			t.Errorf("equal: %v, want %v:\n%+v\n%+v", got, want, *s, was)
		}
		return s.Mix(digest.New()).Sum()
	})
}

// drawn is one of a few specs, made anew.
func drawn(t *rapid.T) *Spec {
	mean := quantity.Amount(rapid.IntRange(1, 2).Draw(t, "mean"))
	s := &Spec{
		Name: ID(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")), Queue: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "queue"),
		Kind: Items, Total: 10,
		Launch: Launch{Command: []string{"sh", fmt.Sprint(rapid.IntRange(1, 2).Draw(t, "argument"))}},
	}
	s.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 10, Mean: mean}}}
	s.Safe = trp.Table{Bounds: []int64{10}, Least: [][]quantity.Amount{{mean}}}
	return s
}

// TestWhoSharesASpecSaysTheSame: what a pool returns says what it was given, but for the name; what was given stays as it was; and
// of two that say the same both get the same one.
func TestWhoSharesASpecSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pool
		var all, made []*Spec
		for range rapid.IntRange(1, 30).Draw(t, "specs") {
			given := drawn(t)
			if len(all) > 0 && rapid.Bool().Draw(t, "one that is shared") {
				given = rapid.SampledFrom(all).Draw(t, "which")
			}
			before := *given
			got, sum := p.Share(given)
			want := before
			want.Name = ""
			if !reflect.DeepEqual(*given, before) || !reflect.DeepEqual(*got, want) || sum != want.Mix(digest.New()).Sum() {
				t.Fatalf("of %+v, now %+v, came %+v", before, *given, *got)
			}
			for _, o := range all {
				if (o == got) != o.Equal(got) {
					t.Fatalf("%p and %p: %+v and %+v", o, got, *o, *got)
				}
			}
			if got != given && !slices.Contains(all, got) {
				for _, o := range made {
					if &o.Profile.Phases[0] != &got.Profile.Phases[0] && o.Profile.Equal(&got.Profile) {
						t.Fatalf("%+v and %+v have the same profile twice", *o, *got)
					}
				}
				made = append(made, got)
			}
			all = append(all, got)
		}
	})
}

// TestAPoolIsBounded: it holds no more than it may, and goes on sharing.
func TestAPoolIsBounded(t *testing.T) {
	var p Pool
	for i := range 3 * mostPooled {
		p.Share(&Spec{Total: int64(i)})
		if n := max(len(p.of), len(p.sums), len(p.profiles)); n > mostPooled {
			t.Fatalf("%d specs are held", n)
		}
	}
	a, _ := p.Share(&Spec{Name: "a"})
	if b, _ := p.Share(&Spec{Name: "b"}); a != b || a.Name != "" {
		t.Errorf("%+v and %+v are two", a, b)
	}
}
