package auction

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

// world is an auction with what it rests on, and no floor around it.
type world struct {
	x      *Auction
	parts  Parts
	seller *markettest.Seller
	jobs   []*index.Job
	slices []*window.Slice
	out    protocol.Out
	// sell and displaces are the mechanism's, or the oracle's.
	sell      func(quantity.Instant, int, *protocol.Out) quantity.Instant
	displaces func(quantity.Instant, *index.Job, *window.Slice, *protocol.Claim, quantity.Instant, *atomizer.Piece) *index.Job
}

func newWorld(p policy.Policy, c Config) *world {
	return assemble(p, c, starvation.Limit{}, 0, time.Hour, New)
}

// newPlainWorld is the same with the oracle, which keeps no answers. A job starves as the limit says, unless the config says when.
func newPlainWorld(p policy.Policy, c Config, limit starvation.Limit, horizon time.Duration) *world {
	var plain *Plain
	w := assemble(p, c, limit, -1, horizon, func(c Config, parts Parts) *Auction {
		plain = NewPlain(c, parts)
		return plain.Auction
	})
	w.sell = plain.Sell
	w.displaces = plain.Displaces
	return w
}

func assemble(
	p policy.Policy, c Config, limit starvation.Limit, mostClasses int, horizon time.Duration, mechanism func(Config, Parts) *Auction,
) *world {
	c = c.Under(p)
	if c.Starve != 0 {
		limit.After = c.Starve
	}
	w := &world{seller: &markettest.Seller{}}
	w.seller.Floor = w
	w.parts = Parts{MinWindow: time.Second, Board: window.NewBoard(time.Second), Seller: w.seller, Stats: &status.Negotiation{}}
	w.parts.Est = index.NewEstimator(p, horizon, !c.Trusting, w.parts.Board)
	w.parts.Index = index.New(index.Config{ByQueue: p.Motion() == policy.WithinQueue || c.ByIndex(w.parts.Est), Seniority: true,
		MostClasses: mostClasses}, w.parts.Est)
	w.parts.Late = lateness.New(limit.WithDefaults(), w.parts.Board, w.parts.Est, w.parts.Index)
	w.parts.Relay = agents.NewRelay(agents.Config{Retry: time.Second, Close: c.Close}, w.parts.Est, w.parts.Index, w.parts.Stats)
	w.x = mechanism(c, w.parts)
	w.sell, w.displaces = w.x.Sell, w.x.Displaces
	return w
}

func (w *world) Changed(j *index.Job)            { w.parts.Index.Changed(j) }
func (w *world) InvalidateJob(j *index.Job)      { w.parts.Index.Invalidate(j) }
func (w *world) InvalidateSlice(s *window.Slice) { w.parts.Board.Invalidate(s) }
func (w *world) Retire(j *index.Job) {
	if j.Active() {
		w.parts.Index.Retire(j)
		w.parts.Relay.Leave(j)
	}
}

func (w *world) submit(d markettest.Job) {
	d.Sales = w.seller.Sales
	j := &index.Job{Demand: &d}
	w.jobs = append(w.jobs, j)
	w.parts.Index.Activate(j, w.parts.Late.Due(j.Submitted(), j.Spec()))
	w.parts.Relay.Attend(j, 7, true)
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
	w.pass(now, 0)
}

func (w *world) pass(now quantity.Instant, waiting int) quantity.Instant {
	w.parts.Late.Fill(now)
	w.parts.Relay.Recall(now)
	wake := w.sell(now, waiting, &w.out)
	w.parts.Index.EndPass()
	return min(wake, w.parts.Relay.Wake())
}

// run is a step as a floor takes it, after which agents answer.
func (w *world) run(now quantity.Instant) quantity.Instant {
	w.seller.Now = now
	w.out.Reset()
	for _, s := range w.parts.Board.Turning(now) {
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
		w.parts.Relay.Answer(now, w.jobs[i], &m, &protocol.Proposal{Round: c.Round, Variants: variants})
	}
}

// slice is one of a board that knows no other.
func (w *world) slice(gib, speed int64) *window.Slice {
	s, b := &window.Slice{Supply: &markettest.Slice{}}, window.NewBoard(0)
	c, _ := b.ClassOf(&protocol.Slice{Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: speed})
	b.Place(s, c)
	return s
}
