package market

import (
	"fmt"
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

// BenchmarkAnswers is the answer of every waiting job to a window, with its reason.
func BenchmarkAnswers(b *testing.B) {
	benchmarkIndex(b, func(f *Floor, now quantity.Instant, c *window.Class, w *window.Window) bool {
		a := f.answersTo(now, c, w, len(f.index.Jobs()))
		return a.Interested() > 0
	})
}

func benchmarkIndex(b *testing.B, ask func(*Floor, quantity.Instant, *window.Class, *window.Window) bool) {
	for _, p := range all.Policies() {
		for _, n := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/waiting=%d", p.Name(), n), func(b *testing.B) {
				if n > 10_000 && testing.Short() {
					b.Skip("it takes long to set up; run it without -short")
				}
				f := NewFloor(FloorConfig{Policy: p, Horizon: time.Hour, MinWindow: time.Second, Retry: time.Second}, &markettest.Seller{})
				now, answered := quantity.Instant(1e15), 0
				for class := range 5 {
					f.Place(&window.Slice{Supply: &markettest.Slice{ID: job.SliceID(fmt.Sprint("s", class))}},
						&protocol.Slice{Capacity: trp.Vector{quantity.Amount((5 + class) << 30)}, Speed: 1000})
				}
				for i := range n {
					d := &markettest.Job{Of: markettest.Spec(b, i), Came: quantity.Instant(i)}
					d.Of.Queue = fmt.Sprint("q", i%5)
					j := &index.Job{Demand: d}
					f.Activate(j)
					f.Changed(j)
				}
				f.index.Refresh(now)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					if ask(f, now, f.board.Classes()[i%5], window.Of(0, now, now.Add(time.Duration(60+i%17*30)*time.Second))) {
						answered++
					}
				}
				if answered == 0 {
					b.Fatal("nobody is interested")
				}
			})
		}
	}
}
