package memory

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestEighths: never more than the amount, and never an eighth less.
func TestEighths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := quantity.Amount(rapid.Int64Range(0, 1<<50).Draw(t, "capacity"))
		a := quantity.Amount(rapid.Int64Range(0, 1<<51).Draw(t, "amount"))
		got := inEighths(a, capacity)
		if got > min(a, capacity) || got < capacity && a-got > capacity/eighths+1 {
			t.Fatalf("%d of %d becomes %d", a, capacity, got)
		}
	})
}

type peaks map[job.Token]trp.Peak

func (p peaks) Peak(t job.Token) (trp.Peak, bool) {
	x, known := p[t]
	return x, known
}

// TestWhatIsSoldIsWithinTheLimitAtEverySecond: a piece is refused exactly if there is a second of its time at which all that run then,
// itself among them, need more than the host has.
func TestWhatIsSoldIsWithinTheLimitAtEverySecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := joint.Config{Memory: 100, Given: true, Correlation: rapid.Int64Range(0, joint.Whole).Draw(t, "correlation")}
		i, sold := inventory.New(), peaks{}
		h, limit := New(cfg, time.Hour, time.Second, i, peaks{}, sold), joint.NewLimit(cfg)
		now := quantity.Instant(1_000_000 * time.Second)
		second := func(n int) quantity.Instant { return now.Add(time.Duration(n) * time.Second) }
		for k := range rapid.IntRange(0, 5).Draw(t, "sold") {
			token := job.Token{Epoch: 1, Seq: uint64(k)}
			start := rapid.IntRange(0, 9).Draw(t, "start")
			i.Record(job.SliceID(rune('a'+k))).Sell(protocol.ForLease, "j", token, second(start),
				second(start+rapid.IntRange(1, 9).Draw(t, "length")))
			sold[token] = trp.Peak{Mean: quantity.Amount(rapid.IntRange(0, 40).Draw(t, "mean")),
				Deviation: quantity.Amount(rapid.IntRange(0, 5).Draw(t, "deviation"))}
		}
		from := rapid.IntRange(0, 9).Draw(t, "from")
		p := Piece{From: second(from), To: second(from + rapid.IntRange(1, 9).Draw(t, "length")), Slice: "x",
			Peak: trp.Peak{Mean: quantity.Amount(rapid.IntRange(0, 60).Draw(t, "mean")), Deviation: 2}}
		over := false
		for at := p.From; at < p.To; at = at.Add(time.Second) {
			var load joint.Load
			load.Add(p.Peak)
			for _, s := range i.All() {
				for _, r := range s.Sold() {
					if r.Start <= at && at < r.End {
						load.Add(sold[r.Token])
					}
				}
			}
			over = over || limit.Need(&load, cfg.Correlation) > cfg.Memory
		}
		if why := h.Overcrowded(now, p); (why != "") != over {
			t.Fatalf("refused since %q, want %v", why, over)
		}
	})
}
