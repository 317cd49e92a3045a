package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// The zone's side of its floor: what a job, a slice and the zone itself answer to it (index.Demand, window.Supply, award.Seller).

// demand is a job as the floor sees it.
type demand entry

// jobOf is the job that the floor speaks of.
func jobOf(j *index.Job) *home.Job { return &j.Demand.(*demand).job }

func (d *demand) Name() job.ID                   { return d.job.ID }
func (d *demand) Spec() *job.Spec                { return d.job.Spec }
func (d *demand) Queue() (string, time.Duration) { return d.job.Queue().Name, d.job.Queue().MaxWindow }
func (d *demand) View() atomizer.View            { return d.job.View() }
func (d *demand) Busy() int                      { return d.job.Busy() }
func (d *demand) Submitted() quantity.Instant    { return d.job.Submitted }
func (d *demand) Served() quantity.Instant       { return d.job.History().Served() }
func (d *demand) RestsUntil() quantity.Instant   { return d.job.Backoff().Rests() }
func (d *demand) Attained() int64                { return d.job.History().Attained() }
func (d *demand) Trust() protocol.Trust          { return d.job.Trust() }
func (d *demand) Agent() protocol.Address {
	return protocol.Address{Role: protocol.Bidder, ID: string(d.job.ID)}
}

func (d *demand) Ineligible(now quantity.Instant) explain.Reason {
	z := d.zone
	if d.rigid.Planned() {
		return explain.Reserved // a better place than any window is planned for it
	}
	if why := z.caps.Waits(now, &d.job); why != explain.Eligible || d.job.Spec.Kind != job.Rigid || z.cfg.Rigid.Overtake {
		return why
	}
	return explain.InLine
}

// Volatile jobs are those whose queue has a cap, and those that avoid slices.
func (d *demand) Volatile() bool {
	q := d.job.Queue()
	return q.Cap != 0 || d.zone.caps.Keeps(q) || d.job.Backoff().Avoiding()
}

// Loses says whether most of its work would be lost where its gap ends unforeseen.
func (d *demand) Loses() bool { return d.zone.bets.Loses(&d.job) }

func (d *demand) Avoids(s *window.Slice) bool { return d.job.Backoff().Avoids(sites.Of(s).Name()) }

func (d *demand) Use(now quantity.Instant) (own, queue, weight int64) {
	q := d.job.Queue()
	return d.job.History().Attained() + d.job.ClaimSet().Had(now), q.Use(now), max(1, q.Weight)
}

func (d *demand) Sentence(r explain.Reason) string {
	return d.zone.view.Sentence(&d.job, &explain.Cause{Reason: r})
}

// seller is the zone as its floor sees it.
type seller Zone

func (z *seller) Ask(now quantity.Instant, j *index.Job, s *window.Slice, p award.Piece, out *protocol.Out) {
	(*Zone)(z).ask(now, newAsk(jobOf(j), sites.Of(s), nil, p), 0, out)
}

// Withdraw asks the slice's node to give up what was sold there and has not begun.
func (z *seller) Withdraw(now, from quantity.Instant, s *window.Slice, out *protocol.Out) (n int) {
	for _, x := range sites.Of(s).Sold() {
		if x.Start > from && z.home.Withdraw(now, x.Job, x.Token, out) {
			n++
		}
	}
	return n
}

func (z *seller) Purse(now quantity.Instant, j *index.Job) (has, full int64) {
	return z.home.Purse(now, jobOf(j).Queue())
}
