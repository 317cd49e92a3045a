package job

import "testing"

// TestUnitsAreCalledAsPeopleCount: from 0 as programs get them, but lines as an editor counts.
func TestUnitsAreCalledAsPeopleCount(t *testing.T) {
	for _, c := range []struct {
		spec               Spec
		unit, one, several string
	}{
		{Spec{}, "unit 50", "[50,51)", "[50,60)"},
		{Spec{Unit: "item"}, "item 50", "[50,51)", "[50,60)"},
		{Spec{Unit: "line", Launch: Launch{Adapter: Adapter{Lines: Lines{Input: "in.txt"}}}}, "line 51", "51", "51 to 60"},
		{Spec{Unit: "line", Launch: Launch{Adapter: Adapter{Lines: Lines{Input: "in.txt", Header: true}}}}, "line 52",
			"52", "52 to 61"},
		{Spec{Unit: "record", Launch: Launch{Adapter: Adapter{Lines: Lines{Input: "in.csv", Format: CSV, Header: true}}}}, "record 51",
			"51", "51 to 60"},
		{Spec{Unit: "task", Launch: Launch{Adapter: Adapter{Array: Array{Indices: "100-199%7"}}}}, "task 150", "[50,51)", "[50,60)"},
		{Spec{Unit: "task", Launch: Launch{Adapter: Adapter{Array: Array{Indices: "1-9"}}}}, "task 50", "[50,51)", "[50,60)"},
	} {
		if unit := c.spec.Called(50); unit != c.unit {
			t.Errorf("%q, want %q", unit, c.unit)
		}
		one, several := c.spec.Span(Range{From: 50, To: 51}), c.spec.Span(Range{From: 50, To: 60})
		if one != c.one || several != c.several {
			t.Errorf("%q and %q, want %q and %q", one, several, c.one, c.several)
		}
	}
}
