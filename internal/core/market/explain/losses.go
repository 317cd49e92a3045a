package explain

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// mostLosses bounds the classes that losses are kept of for each job.
const mostLosses = 8

// Losses are what a job that bids has lost since it was last served. Invariant: one entry for each class of slices, at most mostLosses of
// them, those whose latest loss is the longest ago left out; in each the latest was to winners that held some of the job's time.
type Losses struct{ list []Loss }

// Loss is what a job has lost in windows of one class: how many, and the latest.
type Loss struct {
	Latest *Outcome
	count  int64
	// Start and End of the job's heaviest variant there, Score of both sides, in millionths, and the Weight it was cleared with.
	Start, End    quantity.Instant
	Score, Weight int64
}

// Outcome is who got a window that jobs bid for: all that lost there share it.
type Outcome struct {
	// Class is the place of the slice's class among the classes, Label what people call it.
	Class int
	Label string
	Slice job.SliceID
	At    quantity.Instant
	// Winners of it. Exclusive: each of them blocks everybody, not only bids for the same time.
	Winners   []Winner
	Exclusive bool
}

// Winner is a variant that is sold or planned. The job's name is kept, not the job: it may be gone when somebody asks.
type Winner struct {
	Job   job.ID
	Queue string
	// Score of both sides, and the Weight it was cleared with.
	Score, Weight int64
	Start, End    quantity.Instant
	// Late: it went first because its job was late.
	Late bool
}

// holds says whether a winner has some of the time of a loser.
func (o *Outcome) holds(w *Winner, start, end quantity.Instant) bool {
	return o.Exclusive || w.Start < end && start < w.End
}

// held says whether some winner has some of the time of a loser.
func (o *Outcome) held(start, end quantity.Instant) bool {
	for i := range o.Winners {
		if o.holds(&o.Winners[i], start, end) {
			return true
		}
	}
	return false
}

// Note notes a loss, unless no winner holds the time of the job's best variant: then the job did not lose to others, its work is sold
// elsewhere, or what it bid weighs nothing.
func (l *Losses) Note(n *Loss) {
	if !n.Latest.held(n.Start, n.End) {
		return
	}
	at, oldest := -1, 0
	for i := range l.list {
		if l.list[i].Latest.Class == n.Latest.Class {
			at = i
		}
		if l.list[i].Latest.At < l.list[oldest].Latest.At {
			oldest = i
		}
	}
	switch {
	case at >= 0:
		n.count = l.list[at].count
	case len(l.list) < mostLosses:
		at = len(l.list)
		l.list = append(l.list, Loss{})
	default: // the one that is longest ago makes room
		at = oldest
	}
	n.count++
	l.list[at] = *n
}

// Clear forgets them: the job was served.
func (l *Losses) Clear() { l.list = l.list[:0] }

// Free forgets them, and gives back their room.
func (l *Losses) Free() { l.list = nil }

// List returns the losses for people, the latest first.
func (l *Losses) List() (out []status.Loss) {
	for i := range l.list {
		x := &l.list[i]
		of := x.Latest
		n := status.Loss{Profile: of.Label, Slice: of.Slice, Count: x.count, Last: of.At, Score: x.Score, Weight: x.Weight}
		for k := range of.Winners {
			w := &of.Winners[k]
			if !of.holds(w, x.Start, x.End) {
				continue
			}
			n.Winners++
			n.WinnersWeight += w.Weight
			n.Late = n.Late || w.Late
			if n.Winners == 1 || w.Weight > n.WinnerWeight { // it held most of its time, by weight
				n.Winner, n.WinnerQueue, n.WinnerScore, n.WinnerWeight = w.Job, w.Queue, w.Score, w.Weight
			}
		}
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b status.Loss) int { return cmp.Compare(b.Last, a.Last) })
	return out
}
