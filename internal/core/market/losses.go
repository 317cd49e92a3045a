package market

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// What explain tells a losing job: counts and the latest of each kind, kept per job under JASDA, whose jobs bid, and per class of
// slices under SJA, whose rounds do not even look at those who lose them. All of it is soft, bounded, and decides nothing.

// mostLosses and mostGiven bound what is kept: classes for each job, and windows for each class.
const mostLosses, mostGiven = 8, 4

// loss is what a job has lost in windows of one class since it was last served.
type loss struct {
	class *Class
	// count of them; what follows is the latest.
	count int64
	slice job.SliceID
	at    quantity.Instant
	// score of both sides, in millionths, and the weight it was cleared with, of the job's heaviest variant there.
	score, weight int64
	// winner that held most of its time, by weight, and winners, what all that held it weighed together.
	winner       rival
	winners      int
	winnerWeight int64
	// starved: one of them went first because it had waited too long, whatever others were worth.
	starved bool
}

// rival is who got something. The names are kept, not the job: it may be gone when somebody asks.
type rival struct {
	job   job.ID
	queue string
	score int64
	// weight it was cleared with.
	weight int64
}

// given is a window that a job got in SJA's market.
type given struct {
	slice  *Slice
	length time.Duration
	at     quantity.Instant
	to     rival
}

// give notes who got a window of a class.
func (c *Class) give(g given) {
	c.given[c.gifts%mostGiven] = g
	c.gifts++
}

// loses notes for every job that bid for a window what it was beaten by. The bids are those for the window, by job; the winners
// those of them that are sold or planned.
func (f *Floor) loses(now quantity.Instant, o *offer, bids []bid, winners []*bid) {
	if len(winners) == 0 {
		return
	}
	for from := 0; from < len(bids); {
		best, won, to := &bids[from], false, from
		for ; to < len(bids) && bids[to].job == bids[from].job; to++ {
			won = won || bids[to].won
			if bids[to].weight > best.weight {
				best = &bids[to]
			}
		}
		from = to
		// Who has just got in another window all that it may run has lost nothing here.
		if j := best.job; !won && j.Busy() < j.Spec().Parallelism {
			f.lose(now, o, best, winners)
		}
	}
}

// lose notes a loss by what holds the time of a job's best variant. If nothing does, the job did not lose to others: its work is
// sold elsewhere, or what it bid weighs nothing.
func (f *Floor) lose(now quantity.Instant, o *offer, best *bid, winners []*bid) {
	n := loss{class: o.slice.class, slice: o.slice.Name(), at: now, score: best.total, weight: best.weight}
	for _, other := range winners {
		if !f.cfg.Market.Exclusive && (other.Start >= best.end || best.Start >= other.end) {
			continue
		}
		n.winners++
		n.winnerWeight += other.weight
		n.starved = n.starved || other.free
		if n.winners == 1 || other.weight > n.winner.weight {
			queue, _ := other.job.Queue()
			n.winner = rival{other.job.Name(), queue, other.total, other.weight}
		}
	}
	if n.winners == 0 {
		return
	}
	j := best.job
	i := slices.IndexFunc(j.losses, func(k loss) bool { return k.class == n.class })
	switch {
	case i >= 0:
		n.count = j.losses[i].count
	case len(j.losses) < mostLosses:
		i = len(j.losses)
		j.losses = append(j.losses, loss{})
	default: // the one that is longest ago makes room
		i = slices.Index(j.losses, slices.MinFunc(j.losses, func(a, b loss) int { return cmp.Compare(a.at, b.at) }))
	}
	n.count++
	j.losses[i] = n
}

// Losses lists a job's losses, the latest first.
func (j *Job) Losses() (out []status.Loss) {
	for i := range j.losses {
		l := &j.losses[i]
		out = append(out, status.Loss{
			Profile: l.class.Label(), Slice: l.slice, Count: l.count, Last: l.at, Score: l.score, Weight: l.weight,
			Winner: l.winner.job, WinnerQueue: l.winner.queue, WinnerScore: l.winner.score, WinnerWeight: l.winner.weight,
			Winners: l.winners, WinnersWeight: l.winnerWeight, Starved: l.starved,
		})
	}
	slices.SortStableFunc(out, func(a, b status.Loss) int { return cmp.Compare(b.Last, a.Last) })
	return out
}

// Label is what the slices of a class are called.
func (c *Class) Label() string {
	if c.Profile != "" {
		return c.Profile
	}
	return fmt.Sprintf("%d MiB", c.Capacity[trp.Memory]>>20)
}
