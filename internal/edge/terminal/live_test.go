package terminal

import (
	"bytes"
	"testing"
)

func TestLive(t *testing.T) {
	var b bytes.Buffer
	l := NewLive(&b)
	l.Clear() // nothing is shown: nothing to take away
	l.Show("one\x1b[2J")
	l.Show("two")
	l.Clear()
	l.Clear()
	if want := "\r\x1b[Kone^[[2J\r\x1b[Ktwo\r\x1b[K"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"short", 5, "short"}, {"longer", 5, "long…"}, {"grüße", 4, "grü…"}, {"ab", 1, "…"}, {"ab", 0, ""}, {"", 0, ""}} {
		if got := Cut(c.in, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}
