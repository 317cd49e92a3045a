//go:build kubernetes

package measure

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAQuantileCountsWhoNeverStarted(t *testing.T) {
	w := &Waits{Started: []time.Duration{1, 2, 3}, Never: 1}
	for _, c := range []struct {
		q    float64
		want time.Duration
		ok   bool
	}{{0, 1, true}, {.25, 1, true}, {.5, 2, true}, {.75, 3, true}, {.76, 0, false}, {1, 0, false}} {
		if got, ok := w.At(c.q); got != c.want || ok != c.ok {
			t.Errorf("At(%g) = %d, %v, want %d, %v", c.q, got, ok, c.want, c.ok)
		}
	}
	if _, ok := (&Waits{}).At(.5); ok {
		t.Error("a quantile of nothing")
	}
}

func TestAPageIsWrittenBetweenItsMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const page = "before\n<!-- x: written by make it -->\nold\n<!-- x: end -->\nafter\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := write(path, "x", "| new |\n"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if want := "before\n<!-- x: written by make it -->\n\n| new |\n\n<!-- x: end -->\nafter\n"; err != nil || string(got) != want {
			t.Fatalf("%v\n%s", err, got)
		}
	}
	if write(path, "y", "") == nil {
		t.Error("a page without marks was written")
	}
}
