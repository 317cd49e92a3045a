package zone

import (
	"iter"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The zone's side of its floor: what a job, a slice and the zone itself answer to it (market.Demand, market.Supply, market.Sale).

// demand is a job as the floor sees it.
type demand entry

// stateOf is the job that the floor speaks of.
func jobOf(j *market.Job) *Job { return &j.Demand.(*demand).Job }

func (d *demand) Name() job.ID                   { return d.ID }
func (d *demand) Spec() *job.Spec                { return d.accepted.Spec }
func (d *demand) Queue() (string, time.Duration) { return d.q.Name, d.q.MaxWindow }
func (d *demand) View() atomizer.View            { return d.view() }
func (d *demand) Busy() int                      { return len(d.work().claims) + d.work().asking }
func (d *demand) Submitted() quantity.Instant    { return d.accepted.Submitted }
func (d *demand) Served() quantity.Instant       { return d.work().served }
func (d *demand) RestsUntil() quantity.Instant   { return d.met().notBefore }
func (d *demand) Attained() int64                { return d.work().attained }
func (d *demand) Trust() protocol.Trust          { return d.trust() }

func (d *demand) Ineligible(now quantity.Instant) market.Reason {
	return d.zone.ineligible(now, &d.Job)
}

// Volatile jobs are those whose queue has a cap, and those that avoid slices.
func (d *demand) Volatile() bool {
	return d.q.Cap > 0 || d.zone.kept[d.q] != nil || len(d.met().backoff.avoided) > 0
}

func (d *demand) Avoids(s *market.Slice) bool { return d.avoids(sliceOf(s)) }

func (d *demand) Use(now quantity.Instant) (own, queue, weight int64) {
	return d.work().attained + d.had(now), d.q.attained + d.q.going.at(now), max(1, d.q.Weight)
}

func (d *demand) Sentence(r market.Reason) string {
	return d.zone.sentence(&d.Job, &market.Cause{Reason: r})
}

// sliceOf is the slice that the floor speaks of.
func sliceOf(s *market.Slice) *slice { return s.Supply.(*slice) }

// Name is the slice's id.
func (s *slice) Name() job.SliceID { return s.id }

// Node is the one that offers it.
func (s *slice) Node() job.NodeID { return s.view.Node }

// Usable says whether its node may grant it to anybody.
func (s *slice) Usable() bool { return s.view.Usable }

// Unsold is its time that is for sale.
func (s *slice) Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return s.free(now, anyone, out)
}

// floorConfig is how the zone's floor works.
func (z *Zone) floorConfig() market.FloorConfig {
	c := market.FloorConfig{
		Self: z.self, Policy: z.cfg.Policy, Market: z.cfg.Market, Horizon: z.cfg.Horizon, MinWindow: z.cfg.MinWindow, Retry: z.cfg.Retry,
		Close: z.cfg.Close,
	}
	if c.Market != nil {
		c.Close = c.Market.Close
	}
	return c
}

// plannerConfig is how the planner of rigid jobs works.
func (z *Zone) plannerConfig() backfill.Config {
	return backfill.Config{Discipline: z.cfg.Rigid, Retry: z.cfg.Retry, AskTTL: z.cfg.AskTTL}
}

// seller is the zone as its floor sees it.
type seller Zone

func (z *seller) Ask(now quantity.Instant, j *market.Job, s *market.Slice, p market.Piece, out *protocol.Out) {
	(*Zone)(z).ask(now, jobOf(j), sliceOf(s), nil, p, 0, out)
}

// Withdraw asks the slice's node to give up what was sold there and has not begun.
func (z *seller) Withdraw(now, from quantity.Instant, s *market.Slice, out *protocol.Out) (n int) {
	for _, x := range sliceOf(s).sold {
		l := x.job.lease(x.token)
		if x.start <= from || l.running != 0 || l.ask != 0 || x.job.fate().dropping.State != job.Waiting {
			continue
		}
		l.withdrawn = true
		(*Zone)(z).sendWithdrawal(x.job, &x.job.work().claims[x.job.claim(x.token)], l, now, out)
		(*Zone)(z).armLeases(x.job)
		n++
	}
	return n
}

func (z *seller) Purse(now quantity.Instant, j *market.Job) (has, full int64) {
	q := jobOf(j).q
	return (*Zone)(z).purse(now, q), (*Zone)(z).full(q)
}

// sendWithdrawal is repeated until the lease is over or has begun, and idempotent.
func (z *Zone) sendWithdrawal(j *Job, c *protocol.Claim, l *lease, now quantity.Instant, out *protocol.Out) {
	l.sent = now
	z.send(out, protocol.Message{
		Kind: protocol.Stop, To: nodeOf(c), Token: c.Token, Job: j.ID, Flag: true, Text: "withdrawn before it began: something better is known",
	})
}

// offeredSlices yields the slices that nodes have offered, by capacity, then id.
func (z *Zone) offeredSlices() iter.Seq[*slice] {
	return func(yield func(*slice) bool) {
		for _, s := range z.floor.Slices() {
			if !yield(sliceOf(s)) {
				return
			}
		}
	}
}

// sell plans rigid jobs, and then has the floor offer every window that opens now. It returns when to look again.
func (z *Zone) sell(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.lapse(now)
	z.turnSlices(now)
	z.planner.LineUp()
	z.keepCaps(now)
	wake := z.planRigid(now, out)
	wake = min(wake, z.floor.Sell(now, z.waiting(), out))
	return min(wake, z.unanswered(), z.leases.Next())
}

// turnSlices marks the slices whose windows open or close now, or that are no longer left alone.
func (z *Zone) turnSlices(now quantity.Instant) {
	for _, s := range z.floor.Turning(now) {
		z.mark(sliceOf(s))
	}
	for {
		s, ok := z.stales.Due(now)
		if !ok {
			return
		}
		z.mark(s)
	}
}

// ask proposes a piece to the node, which alone decides: the first of the five steps.
func (z *Zone) ask(now quantity.Instant, j *Job, s *slice, also []job.SliceID, p market.Piece, reservation uint64, out *protocol.Out) {
	id := z.newAsk()
	a := &ask{
		id: id, job: j, generation: j.Generation, slice: s, also: also, piece: p, expires: now.Add(z.cfg.AskTTL), asked: now, version: s.view.Version,
	}
	z.asks = append(z.asks, a)
	a.on(z, func(s *slice) { s.asks = append(s.asks, a) })
	w := j.makeWork()
	w.asked = w.asked.Add(p.Range)
	w.asking++
	z.floor.Served(&entryOf(j).floor)
	j.q.asking += 1 + len(also)
	if p.Bid != nil && !planted.In(planted.ForgetPledged) {
		j.q.pledged += p.Bid.Price
	}
	z.touch(j)
	m := protocol.Message{
		Kind: protocol.Ask, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: j.ID, Epoch: j.Epoch,
		Generation: j.Generation, Slice: s.id, Also: also, Start: p.Start, End: p.End, Demand: p.Demand,
	}
	if reservation != 0 {
		m.Reservation = &protocol.Reservation{ID: reservation, Kind: protocol.ForRigid, Job: j.ID}
	}
	z.send(out, m)
}

// newAsk numbers an ask. Ids of different lives of this zone are distinct, since a node answers a repeated id with the
// same grant: they start from the instant the zone came up, in nanoseconds, and no life makes one a nanosecond.
func (z *Zone) newAsk() uint64 {
	z.nextAsk = max(z.nextAsk, uint64(z.since)) + 1
	return z.nextAsk
}
