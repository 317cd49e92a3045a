package indices

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"0-3": "[0 1 2 3] 0 1", "7": "[7] 0 1", "1,3,5-9:2%4": "[1 3 5 7 9] 4 2", "9,1,1-3": "[1 2 3 9] 0 1", "0-10:4": "[0 4 8] 0 4",
		"5-5%1": "[5] 1 1", "4000000": "[4000000] 0 1", "007": "[7] 0 1",
	} {
		l, err := Parse(text)
		if got := fmt.Sprint(l.IDs, l.Parallel, l.Step()); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "no index", "a": "no index", "-1": "no index", "1-": "no index", "3-1": "ends before", "1:2": "no range", "1-4:0": "step of 0",
		"1%": "at once", "1%0": "at once", "1%2%3": "at once", "1%-1": "at once", "4000001": "above 4000000", "1,": "no index",
		"1 ,2":                 "no index",
		"99999999999999999999": "above", "0-3999999": "more than 1000000", strings.Repeat("1,", 40000) + "1": "longer than",
		"+1": "no index", "0-1500000,0-1500000": "more than",
	} {
		if l, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || l.IDs != nil {
			t.Errorf("%.40q: %v, %v, want %q", text, l, err, want)
		}
	}
}

// TestParseIsASet: a list means the union of its parts.
func TestParseIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := make([]bool, 200)
		var parts []string
		for range rapid.IntRange(1, 8).Draw(t, "parts") {
			from := rapid.IntRange(0, 99).Draw(t, "from")
			to, step := rapid.IntRange(from, 199).Draw(t, "to"), rapid.IntRange(1, 30).Draw(t, "step")
			switch rapid.IntRange(0, 2).Draw(t, "form") {
			case 0:
				to, step = from, 1
				parts = append(parts, fmt.Sprint(from))
			case 1:
				step = 1
				parts = append(parts, fmt.Sprintf("%d-%d", from, to))
			default:
				parts = append(parts, fmt.Sprintf("%d-%d:%d", from, to, step))
			}
			for i := from; i <= to; i += step {
				in[i] = true
			}
		}
		var want []int64
		for i, is := range in {
			if is {
				want = append(want, int64(i))
			}
		}
		l, err := Parse(strings.Join(parts, ","))
		if err != nil || !slices.Equal(l.IDs, want) {
			t.Fatalf("%v: %v, %v, want %v", parts, l.IDs, err, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1,3,5-9:2%4", "0-199%20", "%", "1-2:3:4", "-", "1--2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := Parse(s)
		if (err == nil) != (len(l.IDs) > 0) || len(l.IDs) > MaxTasks || !slices.IsSorted(l.IDs) {
			t.Fatalf("%q: %d indices, %v", s, len(l.IDs), err)
		}
	})
}
