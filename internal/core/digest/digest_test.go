package digest

import (
	"fmt"
	"math/bits"
	"testing"
)

// TestAKeyStays: streams begin from keys, so another one would be another decision.
func TestAKeyStays(t *testing.T) {
	if a, b := Key("job-1", 1, 0), Key(""); a != 0xac3c5047492a2e23 || b != 0xa26f7de7a435bf31 {
		t.Errorf("the keys are %#x and %#x", a, b)
	}
}

// TestNeighboursDiffer: what is nearly alike has another hash, in about half of its bits.
func TestNeighboursDiffer(t *testing.T) {
	seen, flipped, pairs := map[Hash]string{}, 0, 0
	note := func(what string, h Hash) {
		if other, had := seen[h]; had {
			t.Errorf("%s and %s have the same hash", what, other)
		}
		seen[h] = what
	}
	for i := range int64(2000) {
		h := New().Int(1, i)
		note(fmt.Sprint("int ", i), h)
		note(fmt.Sprint("int 0, ", i), New().Int(2, 0, i))
		note(fmt.Sprint("int, 0 ", i), New().Int(2, i+1, 0))
		note(fmt.Sprint("text ", i), New().Int(3).Text(fmt.Sprint("a job called ", i)))
		flipped, pairs = flipped+bits.OnesCount64(uint64(h^New().Int(1, i+1))), pairs+1
	}
	for _, s := range []string{"", "\x00", "\x00\x00", "a", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaa\x00"} {
		note(fmt.Sprintf("%q", s), New().Int(4).Text(s))
	}
	note("two texts", New().Int(5).Text("a").Text("b"))
	note("one text", New().Int(5).Text("ab").Text(""))
	for n := range 4 {
		note(fmt.Sprint(n, " false"), New().Int(6).Bool(make([]bool, n)...))
	}
	note("true", New().Int(6).Bool(true))
	if mean := float64(flipped) / float64(pairs); mean < 30 || mean > 34 {
		t.Errorf("of 64 bits %.1f differ", mean)
	}
}
