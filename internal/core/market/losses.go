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

// loss is what a job has lost in windows of one class since it was last served: how many, and the latest.
type loss struct {
	latest *outcome
	count  int64
	// start and end of the job's heaviest variant there, score of both sides, in millionths, and the weight it was cleared with.
	start, end    quantity.Instant
	score, weight int64
}

// outcome is who got a window that jobs bid for: all that lost there share it.
type outcome struct {
	class *Class
	slice job.SliceID
	at    quantity.Instant
	// winners of it. exclusive: each of them is in the way of everybody, not only of what would run at the same time.
	winners   []winner
	exclusive bool
}

// winner is a variant that is sold or planned. starved: it went first because its job had waited too long.
type winner struct {
	rival
	start, end quantity.Instant
	starved    bool
}

// holds says whether a winner has some of the time of a loser.
func (w *outcome) holds(k *winner, start, end quantity.Instant) bool {
	return w.exclusive || k.start < end && start < k.end
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

// loses notes for every job that bid for a window what it was beaten by. The bids are those for the window that were cleared, by job,
// the winners those of them that are sold or planned. Of quotes that were asked for not all are among the bids.
func (f *Floor) loses(now quantity.Instant, o *offer, at int32, bids []bid, winners []*bid) {
	if len(winners) == 0 {
		return
	}
	of := &outcome{class: o.slice.class, slice: o.slice.Name(), at: now, exclusive: f.cfg.Market.Exclusive,
		winners: make([]winner, len(winners))}
	for i, t := range winners {
		queue, _ := t.job.Queue()
		of.winners[i] = winner{rival{t.job.Name(), queue, t.total, t.weight}, t.Start, t.end, t.free}
	}
	for i := range f.asks {
		a := &f.asks[i]
		q := a.quote
		if a.offer != at || won(q.job, winners) {
			continue
		}
		n := loss{latest: of, score: a.score, weight: a.weight}
		n.start, n.end = q.terms[a.best].span(now)
		q.job.lose(&n)
	}
	for from := 0; from < len(bids); {
		best, to := &bids[from], from
		for ; to < len(bids) && bids[to].job == bids[from].job; to++ {
			if bids[to].weight > best.weight {
				best = &bids[to]
			}
		}
		if from = to; !best.quoted && !won(best.job, winners) {
			best.job.lose(&loss{latest: of, start: best.Start, end: best.end, score: best.total, weight: best.weight})
		}
	}
}

// won says whether a job has one of the winners.
func won(j *Job, winners []*bid) bool {
	for _, t := range winners {
		if t.job == j {
			return true
		}
	}
	return false
}

// lose notes a loss, unless nothing holds the time of the job's best variant: then the job did not lose to others, its work is sold
// elsewhere, or what it bid weighs nothing. Who has just got in another window all that it may run has lost nothing here either.
func (j *Job) lose(n *loss) {
	held := false
	for i := range n.latest.winners {
		held = held || n.latest.holds(&n.latest.winners[i], n.start, n.end)
	}
	if !held || bool(j.stale) && j.Busy() >= j.Spec().Parallelism {
		return
	}
	at, oldest := -1, 0
	for i := range j.losses {
		if j.losses[i].latest.class == n.latest.class {
			at = i
		}
		if j.losses[i].latest.at < j.losses[oldest].latest.at {
			oldest = i
		}
	}
	switch {
	case at >= 0:
		n.count = j.losses[at].count
	case len(j.losses) < mostLosses:
		at = len(j.losses)
		j.losses = append(j.losses, loss{})
	default: // the one that is longest ago makes room
		at = oldest
	}
	n.count++
	j.losses[at] = *n
}

// Losses lists a job's losses, the latest first.
func (j *Job) Losses() (out []status.Loss) {
	for i := range j.losses {
		l := &j.losses[i]
		of := l.latest
		n := status.Loss{Profile: of.class.Label(), Slice: of.slice, Count: l.count, Last: of.at, Score: l.score, Weight: l.weight}
		for k := range of.winners {
			w := &of.winners[k]
			if !of.holds(w, l.start, l.end) {
				continue
			}
			n.Winners++
			n.WinnersWeight += w.weight
			n.Starved = n.Starved || w.starved
			if n.Winners == 1 || w.weight > n.WinnerWeight { // it held most of its time, by weight
				n.Winner, n.WinnerQueue, n.WinnerScore, n.WinnerWeight = w.job, w.queue, w.score, w.weight
			}
		}
		out = append(out, n)
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
