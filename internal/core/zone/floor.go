package zone

import (
	"iter"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The zone's side of its floor: what a job, a slice and the zone itself answer to it (market.Demand, market.Supply, market.Sale).

// demand is a job as the floor sees it.
type demand entry

// jobOf is the job that the floor speaks of.
func jobOf(j *market.Job) *home.Job { return &j.Demand.(*demand).job }

func (d *demand) Name() job.ID                   { return d.job.ID }
func (d *demand) Spec() *job.Spec                { return d.job.Spec }
func (d *demand) Queue() (string, time.Duration) { return d.job.Queue().Name, d.job.Queue().MaxWindow }
func (d *demand) View() atomizer.View            { return d.job.View() }
func (d *demand) Busy() int                      { return d.job.Busy() }
func (d *demand) Submitted() quantity.Instant    { return d.job.Submitted }
func (d *demand) Served() quantity.Instant       { return d.job.History().Served() }
func (d *demand) RestsUntil() quantity.Instant   { return d.job.RestsUntil() }
func (d *demand) Attained() int64                { return d.job.History().Attained() }
func (d *demand) Trust() protocol.Trust          { return d.job.Trust() }
func (d *demand) Agent() protocol.Address {
	return protocol.Address{Role: protocol.Bidder, ID: string(d.job.ID)}
}

func (d *demand) Ineligible(now quantity.Instant) market.Reason {
	return d.zone.ineligible(now, &d.job)
}

// Volatile jobs are those whose queue has a cap, and those that avoid slices.
func (d *demand) Volatile() bool {
	q := d.job.Queue()
	return q.Cap != 0 || d.zone.kept[q] != nil || d.job.Backoff().Avoiding()
}

// Loses says whether most of its work would be lost where its gap ends unforeseen.
func (d *demand) Loses() bool { return d.zone.loses(&d.job) }

func (d *demand) Avoids(s *market.Slice) bool { return d.job.Backoff().Avoids(sliceOf(s).id) }

func (d *demand) Use(now quantity.Instant) (own, queue, weight int64) {
	q := d.job.Queue()
	return d.job.History().Attained() + d.job.Standing().Had(now), q.Use(now), max(1, q.Weight)
}

func (d *demand) Sentence(r market.Reason) string {
	return d.zone.view.Sentence(&d.job, &market.Cause{Reason: r})
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
		Close:      z.cfg.Close,
		Starvation: z.cfg.Starvation,
	}
	if c.Market != nil {
		c.Close = c.Market.Close
	}
	return c
}

// plannerConfig is how the planner of rigid jobs works.
func (z *Zone) plannerConfig() backfill.Config {
	return backfill.Config{Discipline: z.cfg.Rigid, Retry: z.cfg.Retry, AskTTL: z.cfg.AskTTL, Late: max(0, z.cfg.Starvation.WithDefaults().Places), ByAge: z.cfg.Search != nil}
}

// seller is the zone as its floor sees it.
type seller Zone

func (z *seller) Ask(now quantity.Instant, j *market.Job, s *market.Slice, p market.Piece, out *protocol.Out) {
	(*Zone)(z).ask(now, jobOf(j), sliceOf(s), nil, p, 0, out)
}

// Withdraw asks the slice's node to give up what was sold there and has not begun.
func (z *seller) Withdraw(now, from quantity.Instant, s *market.Slice, out *protocol.Out) (n int) {
	for _, x := range sliceOf(s).sold {
		if x.start > from && z.home.Withdraw(now, x.job, x.token, out) {
			n++
		}
	}
	return n
}

func (z *seller) Purse(now quantity.Instant, j *market.Job) (has, full int64) {
	return z.home.Purse(now, jobOf(j).Queue())
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

// sell plans rigid jobs, and then has the floor offer every window that opens now, or tickets search. It returns when to look again.
func (z *Zone) sell(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.lapse(now, out)
	z.turnSlices(now)
	z.expireGuests(now)
	z.planner.UpdateLine()
	z.keepCaps(now)
	wake := min(z.planner.Plan(now, out), z.trade(now, out))
	if z.search != nil {
		wake = min(wake, z.seek(now, out), z.visit(now, out))
	} else {
		wake = min(wake, z.floor.Sell(now, z.home.Waiting(), out))
	}
	return min(wake, z.planner.Unanswered(), z.stales.Next(), z.home.Next(now))
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
