package strict

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFraction(t *testing.T) {
	for _, c := range []struct {
		text  string
		scale int64
		want  int64
		ok    bool
	}{
		{"0.01", 1_000_000, 10_000, true}, {"1%", 1_000_000, 10_000, true}, {".5", 1000, 500, true}, {"1", 1000, 1000, true},
		{"0.0000001", 1_000_000, 0, false}, {"0.0005%", 1_000_000, 5, true}, {"", 1000, 0, false}, {"%", 1000, 0, false},
		{"-1", 1000, 0, false}, {"1e-2", 1000, 0, false}, {"0.10000", 1000, 100, true}, {"1.2.3", 1000, 0, false},
		{"99999999999999999999", 1000, 0, false},
	} {
		if got, ok := parseFraction(c.text, c.scale); got != c.want || ok != c.ok {
			t.Errorf("parseFraction(%q, %d) = %d, %v", c.text, c.scale, got, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 999_000_000).Draw(t, "n")
		if got, ok := parseFraction(FormatFraction(n, 1_000_000), 1_000_000); !ok || got != n {
			t.Fatalf("%d is written %s and read %d", n, FormatFraction(n, 1_000_000), got)
		}
	})
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"items", "itms", 1}, {"weight", "wieght", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"same", "same", 0}} {
		if got, back := distance(c.a, c.b), distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("distance(%q, %q) = %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}
