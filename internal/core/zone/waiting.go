package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// waits says why a job is not asked at all.
func (z *Zone) waits(now quantity.Instant, j *home.Job) market.Reason {
	q := j.Queue()
	switch {
	case j.Ending().Stopping():
		return market.Ending
	case j.Held:
		return market.Held
	case j.RestsUntil() > now && j.Backoff().Refusals().Until >= j.RestsUntil():
		return market.TurnedDown
	case j.RestsUntil() > now:
		return market.Resting
	case q.Cap != 0 && q.Holding()+j.Width() > q.Cap:
		return market.QueueCap
	}
	if k := z.kept[q]; k != nil && k != j && older(k, j) < 0 && q.Holding()+j.Width()+k.Width() > q.Cap {
		return market.QueueCap
	}
	return market.Eligible
}

// ineligible says why a job does not answer windows: it waits, or a better place than any of them is planned for it.
func (z *Zone) ineligible(now quantity.Instant, j *home.Job) market.Reason {
	if entryOf(j).rigid.Planned() {
		return market.Reserved
	}
	if why := z.waits(now, j); why != market.Eligible || j.Spec.Kind != job.Rigid || z.cfg.Rigid.Overtake {
		return why
	}
	return market.InLine
}

// keepCaps finds, for every capped queue, the first gang that its cap keeps from running. What comes after it in the queue
// does not take the slices it waits for, or it would wait for ever.
func (z *Zone) keepCaps(now quantity.Instant) {
	if !z.planner.Invalid() {
		return
	}
	kept := z.spareKept[:0]
	for _, j := range z.planner.Gangs() {
		if j.Guest != nil {
			continue // its home's cap counts
		}
		s := rigidOf(j)
		q := s.Queue()
		if q.Cap == 0 || s.Width() > q.Cap || len(s.Claims()) > 0 || s.Asking() > 0 || s.Held || s.RestsUntil() > now || s.Ending().Stopping() {
			continue
		}
		if i := slices.IndexFunc(kept, func(k *home.Job) bool { return k.Queue() == q }); i < 0 {
			kept = append(kept, s)
		} else if older(s, kept[i]) < 0 {
			kept[i] = s
		}
	}
	for _, k := range z.keeping {
		if !slices.Contains(kept, k) && z.kept[k.Queue()] == k {
			delete(z.kept, k.Queue())
			z.home.ChangedIn(k.Queue()) // the cap itself may be gone
		}
	}
	for _, k := range kept {
		z.kept[k.Queue()] = k
	}
	z.keeping, z.spareKept = kept, z.keeping
}

// older orders jobs as rigid ones are served: by priority, then age.
func older(a, b *home.Job) int {
	return policy.ByAge(
		&policy.Candidate{Job: a.ID, Priority: a.Spec.Priority, Submitted: a.Submitted},
		&policy.Candidate{Job: b.ID, Priority: b.Spec.Priority, Submitted: b.Submitted},
	)
}
