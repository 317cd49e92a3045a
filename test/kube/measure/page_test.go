//go:build kubernetes

package measure

import (
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
