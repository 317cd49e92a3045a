package oom

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// ray is the memory monitor of Ray 2.4x with its defaults (Out-Of-Memory Prevention in its documentation;
// worker_killing_policy_group_by_owner.cc): every 250 ms, where more than 95% of the memory is used, one worker, and no other before that
// one is gone. Workers are grouped by the task that submitted them, which is the job here; those that can't be run again are one group.
// First are groups that can, then the largest, then the one that began last; and of it the worker that began last.
//
// What can be run again is what can be cut: a gang or a rigid job is an actor, which by default is not. Ray fails the last task of a group
// instead of running it again; here it is run again, as every victim is.
type ray struct {
	every
	killed uint64
	waits  bool
}

const (
	rayPeriod    = 250 * time.Millisecond
	rayThreshold = 950
)

// Look implements Killer.
func (r *ray) Look(now quantity.Instant, h *Host) []Kill {
	if r.waits = r.waits && most(h, func(p *Process) bool { return p.ID == r.killed }, larger) >= 0; r.waits {
		return nil
	}
	if !r.due(now, rayPeriod) || h.Capacity-h.Available <= share(h.Capacity, rayThreshold) {
		return nil
	}
	type group struct {
		first quantity.Instant
		size  int
	}
	owner := func(p *Process) string {
		if p.Retriable {
			return p.Owner
		}
		return ""
	}
	groups := map[string]group{}
	for i := range h.Processes {
		p := &h.Processes[i]
		g, known := groups[owner(p)]
		if !known || p.Start < g.first {
			g.first = p.Start
		}
		g.size++
		groups[owner(p)] = g
	}
	i := most(h, anybody, func(a, b *Process) int {
		x, y := groups[owner(a)], groups[owner(b)]
		switch {
		case a.Retriable != b.Retriable:
			return sign(a.Retriable)
		case owner(a) != owner(b) && x.size != y.size:
			return sign(x.size > y.size)
		case owner(a) != owner(b) && x.first != y.first:
			return sign(x.first > y.first)
		case owner(a) != owner(b):
			return sign(owner(a) > owner(b)) // else two that are alike would be mixed
		case a.Start != b.Start:
			return sign(a.Start > b.Start)
		}
		return sign(a.ID > b.ID)
	})
	if i < 0 {
		return nil
	}
	r.killed, r.waits = h.Processes[i].ID, true
	return []Kill{{Process: i}}
}

func sign(first bool) int {
	if first {
		return 1
	}
	return -1
}

// Badness implements Killer.
func (*ray) Badness(_ *Host, p *Process) int64 { return int64(p.size()) }
