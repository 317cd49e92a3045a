package market

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// fakeWorld is a floor with jobs and slices, and nothing else: no zone, no node, no claim.
type fakeWorld struct {
	f      *Floor
	sale   *markettest.Seller
	jobs   []*index.Job
	slices []*window.Slice
	out    protocol.Out
}

func newFakeWorld(cfg FloorConfig) *fakeWorld {
	w := &fakeWorld{sale: &markettest.Seller{}}
	w.f = NewFloor(cfg, w.sale)
	w.sale.Floor = w.f
	return w
}

func (w *fakeWorld) submit(d markettest.Job) {
	d.Sales = w.sale.Sales
	j := &index.Job{Demand: &d}
	w.jobs = append(w.jobs, j)
	w.f.Activate(j)
	w.f.Changed(j)
}

func (w *fakeWorld) offer(name string, gib, speed int64, gaps ...protocol.Gap) {
	s := &window.Slice{Supply: &markettest.Slice{ID: job.SliceID(name), On: "n", Gaps: gaps}}
	w.slices = append(w.slices, s)
	w.f.Place(s, &protocol.Slice{ID: job.SliceID(name), Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: speed})
	w.f.InvalidateSlice(s)
}

func (w *fakeWorld) step(now quantity.Instant) quantity.Instant {
	w.sale.Now = now
	for _, s := range w.f.Turning(now) {
		w.f.InvalidateSlice(s)
	}
	waiting := 0
	for _, j := range w.jobs {
		if j.Active() && j.Busy() == 0 {
			waiting++
		}
	}
	return w.f.Sell(now, waiting, &w.out)
}

// TestAFloorStandsAlone: it sells what it is given to whoever is there, with no zone around it.
func TestAFloorStandsAlone(t *testing.T) {
	w := newFakeWorld(FloorConfig{Policy: all.Policies()[0], Horizon: 10 * time.Minute, MinWindow: time.Second, Retry: time.Second})
	now := quantity.Instant(1e12)
	w.offer("s", 10, 1000, protocol.Gap{Start: now.Add(time.Minute), End: now.Add(5 * time.Minute)})
	s := markettest.Spec(t, 1)
	w.submit(markettest.Job{Of: s, Came: now})
	if wake := w.step(now); wake != now.Add(time.Minute) || len(w.sale.Sold) > 0 {
		t.Fatalf("before its window begins %q was sold, and the floor looks again at %v", w.sale.Sold, wake.Sub(now))
	}
	w.step(now.Add(time.Minute))
	if len(w.sale.Sold) != 1 {
		t.Fatalf("in one window %q was sold", w.sale.Sold)
	}
}
