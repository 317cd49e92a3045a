// Package caps keeps queues' caps from starving gangs: of every capped queue it knows the first gang that the cap keeps from running, and
// what comes after that in the queue does not take the slices it waits for, or it would wait for ever.
package caps

import (
	"slices"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// Caps holds the caps of one zone's queues. All of it is soft.
type Caps struct {
	// first is the gang of a queue that waits for the cap to have room.
	first map[*home.Queue]*home.Job
	// keeping are all of these, spare is room for the next such list.
	keeping, spare []*home.Job
}

// New knows of no gang.
func New() *Caps { return &Caps{first: map[*home.Queue]*home.Job{}} }

// Waits is why a job is not asked at all.
func (c *Caps) Waits(now quantity.Instant, j *home.Job) explain.Reason {
	q := j.Queue()
	switch {
	case j.Ending().Stopping():
		return explain.Ending
	case j.Paused:
		return explain.Paused
	case j.Backoff().Rests() > now && j.Backoff().Refusals().Until >= j.Backoff().Rests():
		return explain.TurnedDown
	case j.Backoff().Rests() > now:
		return explain.Resting
	case q.Cap != 0 && q.Holding()+j.Width() > q.Cap:
		return explain.QueueCap
	}
	if k := c.first[q]; k != nil && k != j && older(k, j) < 0 && q.Holding()+j.Width()+k.Width() > q.Cap {
		return explain.QueueCap
	}
	return explain.Eligible
}

// Keeps says whether a gang waits for the cap of a queue to have room.
func (c *Caps) Keeps(q *home.Queue) bool { return c.first[q] != nil }

// Keep finds the gangs again among those of the zone. changed is called for each queue whose gang no longer waits.
func (c *Caps) Keep(now quantity.Instant, gangs []*home.Job, changed func(*home.Queue)) {
	kept := c.spare[:0]
	for _, s := range gangs {
		q := s.Queue()
		if q.Cap == 0 || s.Width() > q.Cap || len(s.Claims()) > 0 || s.Progress().Asking() > 0 || s.Paused || s.Backoff().Rests() > now ||
			s.Ending().Stopping() {
			continue
		}
		if i := slices.IndexFunc(kept, func(k *home.Job) bool { return k.Queue() == q }); i < 0 {
			kept = append(kept, s)
		} else if older(s, kept[i]) < 0 {
			kept[i] = s
		}
	}
	for _, k := range c.keeping {
		if !slices.Contains(kept, k) && c.first[k.Queue()] == k {
			delete(c.first, k.Queue())
			changed(k.Queue()) // the cap itself may be gone
		}
	}
	for _, k := range kept {
		c.first[k.Queue()] = k
	}
	c.keeping, c.spare = kept, c.keeping
}

// older orders jobs as rigid ones are served: by priority, then age.
func older(a, b *home.Job) int {
	return policy.ByAge(
		&policy.Candidate{Job: a.ID, Priority: a.Spec.Priority, Submitted: a.Submitted},
		&policy.Candidate{Job: b.ID, Priority: b.Spec.Priority, Submitted: b.Submitted},
	)
}
