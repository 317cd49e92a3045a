package auction

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/overdue"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// world is an auction with what it rests on, and no floor around it.
type world struct {
	x      *Auction
	parts  Parts
	seller *markettest.Seller
	jobs   []*index.Job
	slices []*window.Slice
	out    protocol.Out
}

func newWorld(p policy.Policy, c Config) *world {
	c = c.Under(p)
	w := &world{seller: &markettest.Seller{}}
	w.seller.Floor = w
	w.parts = Parts{MinWindow: time.Second, Board: window.NewBoard(time.Second), Seller: w.seller, Stats: &status.Negotiation{}}
	w.parts.Est = index.NewEstimator(p, time.Hour, !c.Trusting, w.parts.Board)
	w.parts.Index = index.New(index.Config{ByQueue: p.Motion() == policy.WithinQueue || c.ByIndex(w.parts.Est), Seniority: true},
		w.parts.Est)
	w.parts.Late = overdue.New(starvation.Limit{After: c.Starve}.WithDefaults(), w.parts.Board, w.parts.Est, w.parts.Index)
	w.parts.Desk = agents.NewDesk(agents.Config{Retry: time.Second, Close: c.Close}, w.parts.Est, w.parts.Index, w.parts.Stats)
	w.x = New(c, w.parts)
	return w
}

func (w *world) Changed(j *index.Job)            { w.parts.Index.Changed(j) }
func (w *world) InvalidateJob(j *index.Job)      { w.parts.Index.Invalidate(j) }
func (w *world) InvalidateSlice(s *window.Slice) { w.parts.Board.Invalidate(s) }
func (w *world) Retire(j *index.Job)             { w.parts.Index.Retire(j) }

func (w *world) submit(d markettest.Job) {
	d.Seller = w.seller
	j := &index.Job{Demand: &d}
	w.jobs = append(w.jobs, j)
	w.parts.Index.Activate(j, w.parts.Late.Due(j.Submitted(), j.Spec()))
	w.Changed(j)
}

func (w *world) offer(name string, gib, speed int64, gaps ...protocol.Gap) {
	s := &window.Slice{Supply: &markettest.Slice{ID: job.SliceID(name), On: "n", Gaps: gaps}}
	w.slices = append(w.slices, s)
	c, first := w.parts.Board.ClassOf(&protocol.Slice{ID: job.SliceID(name), Capacity: trp.Vector{quantity.Amount(gib << 30)},
		Speed: speed})
	if first {
		w.parts.Index.Cover(c)
	}
	_, more := w.parts.Board.Place(s, c)
	w.parts.Late.Capacity(more)
	w.InvalidateSlice(s)
}

func (w *world) step(now quantity.Instant) {
	w.seller.Now = now
	w.parts.Late.Fill(now)
	w.x.Sell(now, 0, &w.out)
	w.parts.Index.EndPass()
}

// slice is one of a board that knows no other.
func (w *world) slice(gib, speed int64) *window.Slice {
	s, b := &window.Slice{Supply: &markettest.Slice{}}, window.NewBoard(0)
	c, _ := b.ClassOf(&protocol.Slice{Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: speed})
	b.Place(s, c)
	return s
}
