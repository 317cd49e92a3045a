package report

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/lab/measure"
)

// TestFrontier: whoever is as good in one measure and better in the other is before a series, in whichever way is better.
func TestFrontier(t *testing.T) {
	at := func(name string, x, y float64) Series { return Series{name, []Dot{{X: x, Y: y}}} }
	all := []Series{at("middle", 5, 5), at("left", 1, 9), at("right", 9, 1), at("left, worse", 2, 9), at("twin", 5, 5), at("low", 1, 1),
		at("high", 9, 9), {Name: "none"}}
	for _, c := range []struct {
		x, y measure.Better
		want []string
	}{
		{measure.Lower, measure.Lower, []string{"low"}},
		{measure.Higher, measure.Higher, []string{"high"}},
		{measure.Lower, measure.Higher, []string{"left"}},
		{measure.Higher, measure.Lower, []string{"right"}},
		{measure.Lower, measure.Neither, nil},
	} {
		p := &plot{Chart: &Chart{Series: all, X: Axis{Better: c.x}, Y: Axis{Better: c.y}}}
		if got := namesOf(p.frontier()); !slices.Equal(got, c.want) {
			t.Errorf("%v, %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
	p := &plot{Chart: &Chart{Series: all[:5], X: Axis{Better: measure.Lower}, Y: Axis{Better: measure.Lower}}}
	if got, want := namesOf(p.frontier()), []string{"left", "middle", "twin", "right"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func namesOf(all []Series) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// TestNamesKeepApart: no name lies on a dot or on another name, and one that finds no place is left out.
func TestNamesKeepApart(t *testing.T) {
	var taken []box
	placed := 0
	for range 40 {
		b, ok := beside(300, 150, "a-mechanism", 540, taken)
		if !ok {
			continue
		}
		if slices.ContainsFunc(taken, b.meets) {
			t.Fatalf("%v meets another", b)
		}
		taken = append(taken, b)
		placed++
	}
	if placed < 6 || placed == 40 {
		t.Errorf("%d names around one dot", placed)
	}
}
