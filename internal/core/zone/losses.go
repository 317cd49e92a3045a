package zone

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// What explain tells a losing job: counts and the latest of each kind, kept per job under JASDA, whose jobs bid, and per class of
// slices under SJA, whose rounds do not even look at those who lose them. All of it is soft, bounded, and decides nothing.

// mostLosses and mostGiven bound what is kept: classes for each job, and windows for each class.
const mostLosses, mostGiven = 8, 4

// loss is what a job has lost in windows of one class since it was last served.
type loss struct {
	class *class
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
	slice  job.SliceID
	length time.Duration
	at     quantity.Instant
	to     rival
}

// give notes who got a window of a class.
func (c *class) give(g given) {
	c.given[c.gifts%mostGiven] = g
	c.gifts++
}

// loses notes for every job that bid for a window what it was beaten by. The tenders are those for the window, by job; the winners
// those of them that are sold or planned.
func (z *Zone) loses(now quantity.Instant, l *lot, tenders []tender, winners []*tender) {
	if len(winners) == 0 {
		return
	}
	for from := 0; from < len(tenders); {
		best, won, to := &tenders[from], false, from
		for ; to < len(tenders) && tenders[to].job == tenders[from].job; to++ {
			won = won || tenders[to].won
			if tenders[to].weight > best.weight {
				best = &tenders[to]
			}
		}
		from = to
		// Who has just got in another window all that it may run has lost nothing here.
		if s := best.job; !won && len(s.Claims)+s.asking < s.Spec.Parallelism {
			z.lose(now, l, best, winners)
		}
	}
}

// lose notes a loss by what holds the time of a job's best variant. If nothing does, the job did not lose to others: its work is
// sold elsewhere, or what it bid weighs nothing.
func (z *Zone) lose(now quantity.Instant, l *lot, best *tender, winners []*tender) {
	n := loss{class: l.slice.class, slice: l.slice.id, at: now, score: best.total, weight: best.weight}
	for _, o := range winners {
		if !z.cfg.Market.Exclusive && (o.Start >= best.end || best.Start >= o.end) {
			continue
		}
		n.winners++
		n.winnerWeight += o.weight
		n.starved = n.starved || o.free
		if n.winners == 1 || o.weight > n.winner.weight {
			n.winner = rival{o.job.Job, o.job.Queue, o.total, o.weight}
		}
	}
	if n.winners == 0 {
		return
	}
	s := best.job
	i := slices.IndexFunc(s.losses, func(k loss) bool { return k.class == n.class })
	switch {
	case i >= 0:
		n.count = s.losses[i].count
	case len(s.losses) < mostLosses:
		i = len(s.losses)
		s.losses = append(s.losses, loss{})
	default: // the one that is longest ago makes room
		i = slices.Index(s.losses, slices.MinFunc(s.losses, func(a, b loss) int { return cmp.Compare(a.at, b.at) }))
	}
	n.count++
	s.losses[i] = n
}
