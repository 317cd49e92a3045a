package measure

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestStartsByHand: two slices over [100, 1000) s. Of the gaps of the first, [100, 400) has two cold starts and one in a program that
// stayed, [500, 1000) one that did not come to its end; that of the second is not used. One begins before the window, one behind it, and
// one where the host is.
func TestStartsByHand(t *testing.T) {
	at := func(s int) quantity.Instant { return quantity.Instant(s) * quantity.Instant(time.Second) }
	play := func(gaps []Gap) (m Metrics) {
		s := NewStarts(Window{From: at(100), To: at(1000)}, 2, gaps)
		for _, p := range []Piece{
			{Start: at(90), Startup: 60 * time.Second},
			{Start: at(100), Startup: 50 * time.Second}, {Start: at(200), Stayed: true}, {Start: at(300), Startup: 60 * time.Second},
			{Start: at(400), Startup: 7 * time.Second}, {Start: at(700), Startup: 40 * time.Second},
			{Start: at(1000), Startup: time.Second},
		} {
			p.Units = job.Range{To: 10}
			s.Ended(at(2000), &p)
		}
		s.Ended(at(2000), &Piece{Start: at(800), Startup: time.Second}) // a rigid job
		s.Set(&m)
		return m
	}
	for name, want := range map[string]float64{ColdStarts: 4, ResidentStarts: 1, StartTime: 157, GapsUsed: 2, StartOverhead: 67} {
		if got := play([]Gap{{0, at(100), at(400)}, {0, at(500), at(1000)}, {1, at(100), at(1000)}}).Get(name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if m := play(nil); m.Get(StartTime) != 157 || !math.IsNaN(m.Get(StartOverhead)) {
		t.Errorf("without a host: %v", m)
	}
}
