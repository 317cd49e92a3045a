package lateness_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestTheFirstThatIsLateIsServed: held against looking at every job, whoever is in the index and whoever is asked each time: the first that
// could use a window is found, and given it as long as there is credit; one behind it only if credit is left for the first.
func TestTheFirstThatIsLateIsServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, board := quantity.Instant(1e15), window.NewBoard(time.Second)
		est := index.NewEstimator(fifo.Policy{}, time.Hour, false, board)
		x := index.New(index.Config{}, est)
		s := &window.Slice{Supply: &markettest.Slice{ID: "s"}}
		c, _ := board.ClassOf(&protocol.Slice{Capacity: trp.Vector{8 << 30}, Speed: 1000})
		x.Cover(c)
		limit := starvation.Limit{After: time.Minute, Slowdown: 1, Share: 500}.WithDefaults()
		a := lateness.New(limit, board, est, x)
		_, more := board.Place(s, c)
		a.Capacity(more)
		a.Fill(now.Add(-24 * time.Hour))
		a.Fill(now)
		a.Spend(rapid.Int64Range(0, a.Credit()+1000).Draw(t, "spent"))
		var jobs []*index.Job
		for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
			d := &markettest.Job{Of: markettest.Spec(t, rapid.IntRange(0, 20).Draw(t, "spec")),
				Came: now.Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "age")) * time.Minute)}
			d.Of.Name = job.ID(fmt.Sprintf("j%02d", i))
			d.Moves, d.Paused = rapid.IntRange(0, 3).Draw(t, "moves") == 0, rapid.IntRange(0, 3).Draw(t, "held") == 0
			j := &index.Job{Demand: d}
			x.Activate(j, a.Due(d.Came, d.Of))
			x.Changed(j)
			jobs = append(jobs, j)
		}
		x.Refresh(now)
		w := window.Of(1, now, now.Add(time.Duration(rapid.IntRange(1, 1200).Draw(t, "length"))*time.Second))
		able := func(end quantity.Instant) (list []*index.Job) {
			for _, j := range jobs {
				if _, r := est.Fit(j, c, now, end); j.Ineligible(now) == explain.Eligible && r.Why == atomizer.Interested {
					list = append(list, j)
				}
			}
			return list
		}
		want, first := lateness.First(now, able(w.End())), lateness.First(now, able(quantity.Never))
		if got := a.FirstFor(now, s, w); got != want {
			t.Fatalf("the first for a window of %v is %v, want %v", w.Length(now), got, want)
		}
		turn := lateness.Nobody()
		if first != nil {
			turn = lateness.TurnOf(first)
		}
		if got := a.First(now); got != turn {
			t.Fatalf("the first is %v, want %v", got, turn)
		}
		if want == nil {
			return
		}
		p, _ := est.Fit(want, c, now, w.End())
		may := a.Credit() > 0 && (want == first || a.Credit() > c.Cost(p.Length))
		if got, cost := a.Entitled(now, want, nil, c, w); (got == want) != may || may && cost != c.Cost(p.Length) {
			t.Fatalf("with a credit of %d it is entitled: %v, want %v", a.Credit(), got == want, may)
		}
		if a.Precedes(now, want, c.Cost(p.Length)) != may {
			t.Fatalf("with a credit of %d its bid goes first: %v", a.Credit(), !may)
		}
	})
}
