package home

import (
	"sluice.dev/sluice/internal/core/protocol"
)

// Queue is a queue's settings and use.
type Queue struct {
	protocol.Queue
	// attained is the sum over its jobs, those included that the archive alone has, in MiB-milliseconds.
	attained int64
	// held is the number of slices its claims hold, asking that of its unanswered asks.
	held, asking int
	// going is what its running subjobs have had so far.
	going meter
	// standing is what the market has learned of it, and its credits; pledged is what its unanswered asks will take of them.
	standing protocol.Standing
	pledged  int64
	// templates that finished jobs of it have taught, the one that was taught last behind.
	templates []*template
	// unbegun are the jobs of each template that have not begun; no template without any is in it.
	unbegun map[string]*unbegun
	// alive is how many jobs without a final verdict it has, rosters all its jobs.
	alive   int
	rosters rosters
}

// queue returns the named queue; an unknown one has weight 1 and no caps.
func (h *Ledger) queue(name string) *Queue {
	q := h.queues[name]
	if q == nil {
		q = newQueue(name)
		h.queues[name] = q
	}
	return q
}

func newQueue(name string) *Queue {
	return &Queue{Queue: protocol.Queue{Name: name, Weight: 1}, unbegun: map[string]*unbegun{}}
}

// freed tells the other jobs of a capped queue that it holds a slice less.
func (h *Ledger) freed(q *Queue) {
	if q.Cap != 0 {
		h.ChangedIn(q)
	}
}

// ChangedIn marks all jobs of a queue.
func (h *Ledger) ChangedIn(q *Queue) {
	for _, j := range h.live {
		if j.q == q {
			h.changed(j)
		}
	}
}
