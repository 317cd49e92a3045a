package reclaim

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// boards is a machine with whole devices on boards, by the names given; all run subjobs of ours, of which a later one loses less.
func boards(name string, devices ...string) *Machine {
	p := Pool{Name: "d/" + name, Driver: "d"}
	m := &Machine{Name: name}
	for _, n := range slices.Sorted(slices.Values(devices)) {
		id := job.SliceID(name + "/" + n)
		p.Devices = append(p.Devices, Device{
			Name: n, Here: true, Attributes: []Pair{{"d/board", n[:1]}, {"d/kind", "gpu"}}, Slice: id, Holder: Ours, End: quantity.Never,
			Capacities: []Capacity{{"d/memory", Amount{40, 0}}},
		})
		p.Layout = append(p.Layout, int64(len(p.Layout)))
		began := at(time.Duration(slices.Index(devices, n)) * time.Minute)
		m.Slices = append(m.Slices, Slice{ID: id, Notice: time.Second})
		m.Tenants = append(m.Tenants, Tenant{Slice: id, Began: began, End: quantity.Never})
	}
	m.Pools = []Pool{p}
	return m
}

// TestSeveralDevicesForOneWish satisfy its claims together.
func TestSeveralDevicesForOneWish(t *testing.T) {
	gpu := Term{Kind: OfAttribute, Domain: "d", Name: "kind", Op: "==", Value: "gpu"}
	of := func(n int64, terms ...Term) Choice { return Choice{N: n, Terms: append(terms, gpu)} }
	board := func(name string) Term {
		return Term{Kind: OfAttribute, Domain: "d", Name: "board", Op: "==", Value: name}
	}
	alike := func(c Choice) Choice { c.Alike = []Alike{{0, "d", "board"}}; return c }
	odd := func(c Choice) Choice { c.Odd = true; return c }
	memory := func(op string, n int64) Term {
		return Term{Kind: OfCapacity, Domain: "d", Name: "memory", Op: op, Amount: Amount{n, 0}}
	}
	one := func(c ...Choice) []Request { return []Request{{Choices: c}} }
	// Costs rise from b2 over a2 to b1.
	m := boards("m", "a1", "b1", "a2", "b2")
	for name, c := range map[string]struct {
		claims []Claim
		want   string
	}{
		"the cheapest two":                  {[]Claim{{Requests: one(of(2))}}, "[m/a2 m/b2]"},
		"of one board":                      {[]Claim{{Requests: one(alike(of(2)))}}, "[m/b1 m/b2]"},
		"of one board, in two requests":     {[]Claim{{Requests: append(one(alike(of(1))), one(alike(of(1)))...)}}, "[m/b1 m/b2]"},
		"constraints hold within a claim":   {[]Claim{{Requests: one(alike(of(1)))}, {Requests: one(alike(of(1)))}}, "[m/a2 m/b2]"},
		"all of a board":                    {[]Claim{{Requests: one(of(0, board("a")))}}, "[m/a1 m/a2]"},
		"all, of which one is in doubt":     {[]Claim{{Requests: one(odd(of(0)))}}, "none"},
		"what is in doubt, and is not free": {[]Claim{{Requests: one(odd(of(1)))}}, "[m/b2]"},
		"the first alternative":             {[]Claim{{Requests: one(of(1, board("a")), of(1, board("b")))}}, "[m/a2]"},
		"the first that there is":           {[]Claim{{Requests: one(of(1, board("c")), of(1, board("b")))}}, "[m/b2]"},
		"large enough":                      {[]Claim{{Requests: one(of(1, memory(">=", 40)))}}, "[m/b2]"},
		"too small":                         {[]Claim{{Requests: one(of(1, memory(">", 40)))}}, "none"},
		"an attribute that none has":        {[]Claim{{Requests: one(of(1, Term{Kind: HasAttribute, Domain: "d", Name: "x"}))}}, "none"},
		"another driver's":                  {[]Claim{{Requests: one(of(1, Term{Kind: OfDriver, Op: "==", Value: "e"}))}}, "none"},
		"a class that none is listed under": {[]Claim{{Requests: one(Choice{N: 1, Class: "c", Terms: []Term{gpu}})}}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			k := New()
			k.Hear(m)
			k.Wish(&Wish{ID: "p", Who: "p", Claims: c.claims})
			k.Decide(at(time.Hour), nil)
			got := "none"
			if list := k.Places(); len(list) == 1 {
				got = fmt.Sprint(list[0].Stops)
			}
			if got != c.want {
				t.Errorf("cut are %s, want %s", got, c.want)
			}
		})
	}
}

// TestCompareAmounts: exactly, whatever their places.
func TestCompareAmounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (Amount, *big.Rat) {
			a := Amount{rapid.Int64().Draw(t, name), int16(rapid.IntRange(0, 9).Draw(t, "places"))}
			return a, new(big.Rat).SetFrac(big.NewInt(a.N), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Places)), nil))
		}
		a, x := draw("a")
		b, y := draw("b")
		if got, want := a.Compare(b), x.Cmp(y); got != want {
			t.Fatalf("%v and %v compare as %d, want %d", a, b, got, want)
		}
	})
}

// TestRenamedIsACopy: the original does not change.
func TestRenamedIsACopy(t *testing.T) {
	for _, m := range []*Machine{board("m", 0, 1), counted("m", 2, 1)} {
		before := fmt.Sprintf("%+v", *m)
		n := m.Renamed(func(id job.SliceID) job.SliceID { return "n/" + id })
		if got := fmt.Sprintf("%+v", *m); got != before {
			t.Errorf("it was %s and is %s", before, got)
		}
		k := New()
		k.Hear(&n)
		k.Wish(wish("p", 2))
		k.Wish(deviceWish("q", 1, "7g"))
		k.Decide(at(time.Hour), nil)
		for _, p := range k.Places() {
			for _, id := range p.Stops {
				if id[:4] != "n/m/" {
					t.Errorf("cut is %s", id)
				}
			}
		}
		if len(k.Places()) != 1 {
			t.Errorf("kept are %v", k.Places())
		}
	}
}
