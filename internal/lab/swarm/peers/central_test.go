package peers

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestDecisionsAreTheBottleneck: below one task per decision time a task waits as in a queue of one server with constant service
// (M/D/1, Pollaczek and Khinchine: x/(2(1-x)) services), above it one per decision time is placed, however large the cluster is.
func TestDecisionsAreTheBottleneck(t *testing.T) {
	const decision = 2 * time.Millisecond
	for _, x := range []float64{0.5, 0.8, 0.9} {
		o := Bare(Central(), 10, 100, 4, int64(x/decision.Seconds()/4000*1e6))
		o.Decision, o.Network.Delay = decision, time.Millisecond
		o.From, o.Until = quantity.Instant(20*time.Second), quantity.Instant(220*time.Second)
		waits := &Waits{From: o.From}
		o.Observer = waits
		Play(t, o)
		want := 0.002 + decision.Seconds()*(1+x/(2*(1-x)))
		if got := waits.Mean(); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%.1f of what it can decide: a task lands after %.5f s, want %.5f", x, got, want)
		}
	}
	for _, times := range []int64{2, 6} {
		o := Bare(Central(), 10, 100, 4, times*125_000)
		o.Decision, o.Network.Delay, o.Flow.Patience = decision, time.Millisecond, time.Second
		o.From, o.Until = quantity.Instant(10*time.Second), quantity.Instant(30*time.Second)
		c := Play(t, o)
		if got := Rate(&c); math.Abs(got/500-1) > 0.02 {
			t.Errorf("%d tasks a second come and %.1f are placed, want 500", times*500, got)
		}
	}
}
