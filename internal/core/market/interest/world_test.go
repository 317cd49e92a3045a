package interest

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// world is the mechanism with what it rests on, and no floor around it.
type world struct {
	x      *Interest
	seller *markettest.Seller
	jobs   []*index.Job
	slices []*window.Slice
	out    protocol.Out
	// sell and displaces are the mechanism's, or the oracle's.
	sell      func(quantity.Instant, int, *protocol.Out) quantity.Instant
	displaces func(quantity.Instant, *index.Job, *window.Slice, *protocol.Claim, quantity.Instant, *atomizer.Piece) *index.Job
	board     *window.Board
	est       *index.Estimator
	index     *index.Index
}

func newWorld(p policy.Policy, limit starvation.Limit, plainly bool) *world {
	w := &world{seller: &markettest.Seller{}, board: window.NewBoard(time.Second)}
	w.seller.Floor = w
	w.est = index.NewEstimator(p, 10*time.Minute, false, w.board)
	byQueue := index.Config{ByQueue: p.Motion() == policy.WithinQueue}
	if plainly {
		byQueue.MostClasses = -1
	}
	w.index = index.New(byQueue, w.est)
	stats := &status.Negotiation{}
	c := Config{
		Retry: time.Second, Board: w.board, Index: w.index, Est: w.est, Seller: w.seller, Stats: stats,
		Relay: agents.NewRelay(agents.Config{Retry: time.Second, Close: 200 * time.Millisecond}, w.est, w.index, stats),
		Late:  lateness.New(limit.WithDefaults(), w.board, w.est, w.index),
	}
	if plainly {
		plain := NewPlain(c)
		w.x, w.sell, w.displaces = plain.Interest, plain.Sell, plain.Displaces
	} else {
		w.x = New(c)
		w.sell, w.displaces = w.x.Sell, w.x.Displaces
	}
	return w
}

func (w *world) Changed(j *index.Job)            { w.index.Changed(j) }
func (w *world) InvalidateJob(j *index.Job)      { w.index.Invalidate(j) }
func (w *world) InvalidateSlice(s *window.Slice) { w.board.Invalidate(s) }
func (w *world) Retire(j *index.Job) {
	if j.Active() {
		w.index.Retire(j)
		w.x.relay.Leave(j)
		w.x.Retire(j)
	}
}

func (w *world) submit(d markettest.Job) {
	d.Sales = w.seller.Sales
	j := &index.Job{Demand: &d}
	w.jobs = append(w.jobs, j)
	w.index.Activate(j, w.x.late.Due(j.Submitted(), j.Spec()))
	w.x.relay.Attend(j, 7, true)
	w.Changed(j)
}

func (w *world) offer(name string, gib, speed int64, gaps ...protocol.Gap) {
	s := &window.Slice{Supply: &markettest.Slice{ID: job.SliceID(name), On: "n", Gaps: gaps}}
	w.slices = append(w.slices, s)
	c, first := w.board.ClassOf(&protocol.Slice{ID: job.SliceID(name), Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: speed})
	if first {
		w.index.Cover(c)
	}
	_, more := w.board.Place(s, c)
	w.x.late.Capacity(more)
	w.InvalidateSlice(s)
}

func (w *world) pass(now quantity.Instant, waiting int) quantity.Instant {
	w.x.late.Fill(now)
	w.x.relay.Recall(now)
	wake := w.sell(now, waiting, &w.out)
	w.index.EndPass()
	return min(wake, w.x.relay.Wake())
}

// run is a step as a floor takes it, after which agents answer.
func (w *world) run(now quantity.Instant) quantity.Instant {
	w.seller.Now = now
	w.out.Reset()
	for _, s := range w.board.Turning(now) {
		w.InvalidateSlice(s)
	}
	waiting := 0
	for _, j := range w.jobs {
		if j.Active() && j.Busy() == 0 {
			waiting++
		}
	}
	return w.pass(now, waiting)
}

// hear has the agents answer what they were told in a step, as their jobs' atomizers would. Every third is mute.
func (w *world) hear(now quantity.Instant) {
	for _, m := range w.out.Effects {
		c, called := m.Body.(*protocol.Call)
		i := slices.IndexFunc(w.jobs, func(j *index.Job) bool { return j.Name() == m.Job })
		if !called || i%3 == 2 {
			continue
		}
		var variants []protocol.Variant
		for k := range c.Windows {
			v, on := atomizer.FromCall(w.jobs[i].Spec(), c, &c.Windows[k])
			variants = atomizer.Propose(&v, on, c.Most, c.Windows[k].Start, variants)
		}
		w.x.relay.Answer(now, w.jobs[i], &m, &protocol.Proposal{Round: c.Round, Variants: variants})
	}
}
