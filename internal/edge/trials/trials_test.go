package trials

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAxis(t *testing.T) {
	for text, want := range map[string]string{
		"lr=1e-3,3e-4": "[1e-3 3e-4]", "seed=0..3": "[0 1 2 3]", "n=-2..2..2": "[-2 0 2]", "n=0..5..4": "[0 4]", "v=1.5,2..3": "[1.5 2 3]",
		"p=../a,b..c": "[../a b..c]", "x=a=b": "[a=b]",
		"n=9223372036854775806..9223372036854775807": "[9223372036854775806 9223372036854775807]",
	} {
		if a, err := ParseAxis(text); err != nil || fmt.Sprint(a.Values) != want {
			t.Errorf("%s: %v, %v, want %s", text, a.Values, err, want)
		}
	}
	for text, want := range map[string]string{
		"lr": "want NAME=", "=1": "no name", "a b=1": "no name", "{=1": "no name", "lr=": "empty", "lr=1,,2": "empty", "lr=1,1": "twice",
		"s=0..1,1": "twice", "s=3..1": "no range", "s=1..3..0": "no range", "s=0..100000": "more than",
		"s=0..60000,70000..120000":                    "more than",
		"s=-9223372036854775808..9223372036854775807": "more than", "s=a\x00": "no text", "s=\xff": "no text",
		"s=" + strings.Repeat("x", 4097): "4097 bytes", strings.Repeat("n", 65) + "=1": "no name",
	} {
		if a, err := ParseAxis(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v, want %q", text, a, err, want)
		}
	}
}

// TestGrid: every combination stands there once, or so many different ones of them, the same for the same seed.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var axes []Axis
		want := []string{""}
		for i := range rapid.IntRange(1, 4).Draw(t, "axes") {
			a := Axis{Name: fmt.Sprint("p", i)}
			var next []string
			for k := range rapid.IntRange(1, 5).Draw(t, "values") {
				a.Values = append(a.Values, fmt.Sprint(k))
			}
			for _, w := range want {
				for _, v := range a.Values {
					next = append(next, w+v+" ")
				}
			}
			axes, want = append(axes, a), next
		}
		rows := func(t Table) (out []string) {
			for _, r := range t.Rows {
				out = append(out, strings.Join(r, " ")+" ")
			}
			return out
		}
		all, err := Grid(axes, 0, 0)
		if err != nil || !slices.Equal(rows(all), want) {
			t.Fatalf("%q, %v, want %q", rows(all), err, want)
		}
		draw, seed := rapid.IntRange(1, len(want)).Draw(t, "draw"), rapid.Uint64().Draw(t, "seed")
		some, err := Grid(axes, draw, seed)
		again, _ := Grid(axes, draw, seed)
		got := rows(some)
		slices.Sort(got)
		if err != nil || len(got) != draw || len(slices.Compact(slices.Clone(got))) != draw || !slices.Equal(rows(some), rows(again)) {
			t.Fatalf("%q, %v, then %q", got, err, rows(again))
		}
		for _, g := range got {
			if !slices.Contains(want, g) {
				t.Fatalf("%q is no combination", g)
			}
		}
	})
	many := Axis{Name: "a"}
	for i := range 1000 {
		many.Values = append(many.Values, fmt.Sprint(i))
	}
	two := []Axis{many, {Name: "b", Values: many.Values}}
	for want, err := range map[string]error{
		"1000000 trials":     third(Grid(two, 0, 0)),
		"at most as many":    third(Grid([]Axis{many}, 1001, 0)),
		"names two":          third(Grid([]Axis{many, many}, 0, 0)),
		"more than 10995116": third(Grid([]Axis{many, many, many, many, many}, 5, 0)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if some, err := Grid(two, 50, 7); err != nil || len(some.Rows) != 50 {
		t.Errorf("%d, %v", len(some.Rows), err)
	}
}

func third(_ Table, err error) error { return err }

func TestReadCSV(t *testing.T) {
	got, err := ReadCSV(strings.NewReader("\ufefflr, seed\n1e-3,0\n\"a, b\n\"\"c\"\"\",1\n"))
	if err != nil || fmt.Sprintf("%q", got) != `{["lr" "seed"] [["1e-3" "0"] ["a, b\n\"c\"" "1"]]}` {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{
		"": "no row", "a,b\n": "no row", "a,a\n1,2\n": "names two", "a,b\n1\n": "line 2 has 1", "a b\n1\n": "line 1", "a\n\"x": "line 2",
		"a\n\xff\n": "line 2: the value",
	} {
		if _, err := ReadCSV(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("lr,seed\n1e-3,0\n")
	f.Add("\"a\n\",b\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadCSV(strings.NewReader(text))
		for _, r := range got.Rows {
			if len(r) != len(got.Names) {
				t.Fatalf("%q", got)
			}
		}
		if (err == nil) != (len(got.Rows) > 0) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func FuzzParseAxis(f *testing.F) {
	f.Add("lr=1e-3,3e-4")
	f.Add("s=0..9..2,-3..1")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAxis(text)
		if err == nil && (len(a.Values) == 0 || len(a.Values) > Most || a.Name == "") {
			t.Fatalf("%q", a)
		}
	})
}
