package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// view is what the atomizer may know. Ranges that a node was asked for count as claimed.
func (j *Job) view() atomizer.View {
	v := atomizer.View{
		Spec: j.Spec, Committed: j.work().committed, Claimed: j.work().claimed, Running: len(j.work().claims), Learned: j.learned(), Resume: j.work().resume,
		Skipped: j.work().skipped.Len(),
	}
	if planted.In(planted.SellTwice) {
		v.Claimed = nil
		return v
	}
	if len(j.work().asked) > 0 {
		v.Claimed = nil
		for _, r := range j.work().claimed {
			v.Claimed = v.Claimed.Add(r)
		}
		for _, r := range j.work().asked {
			v.Claimed = v.Claimed.Add(r)
		}
		v.Running += j.work().asking
	}
	return v
}

// waits says why a job is not asked at all.
func (z *Zone) waits(now quantity.Instant, j *Job) market.Reason {
	q := j.q
	switch {
	case j.fate().dropping.State != job.Waiting:
		return market.Ending
	case j.Held:
		return market.Held
	case j.met().notBefore > now:
		return market.Resting
	case q.Cap > 0 && q.held+q.asking+j.width() > q.Cap:
		return market.QueueCap
	}
	if k := z.kept[q]; k != nil && k != j && older(k, j) < 0 && q.held+q.asking+j.width()+k.width() > q.Cap {
		return market.QueueCap
	}
	return market.Eligible
}

// ineligible says why a job does not answer windows: it waits, or a better place than any of them is planned for it.
func (z *Zone) ineligible(now quantity.Instant, j *Job) market.Reason {
	if entryOf(j).rigid.Planned() {
		return market.Reserved
	}
	if why := z.waits(now, j); why != market.Eligible || j.Spec.Kind != job.Rigid || z.cfg.Rigid.Overtake {
		return why
	}
	return market.InLine
}

// width is how many slices one subjob of the job holds.
func (j *Job) width() int { return max(1, j.Spec.Slices) }

// keepCaps finds, for every capped queue, the first gang that its cap keeps from running. What comes after it in the queue
// does not take the slices it waits for, or it would wait for ever.
func (z *Zone) keepCaps(now quantity.Instant) {
	if !z.planner.Invalid() {
		return
	}
	kept := z.spareKept[:0]
	for _, j := range z.planner.Gangs() {
		s := rigidOf(j)
		q := s.q
		if q.Cap == 0 || s.width() > q.Cap || len(s.work().claims) > 0 || s.work().asking > 0 || s.Held || s.met().notBefore > now || s.fate().dropping.State != job.Waiting {
			continue
		}
		if i := slices.IndexFunc(kept, func(k *Job) bool { return k.q == q }); i < 0 {
			kept = append(kept, s)
		} else if older(s, kept[i]) < 0 {
			kept[i] = s
		}
	}
	for _, k := range z.keeping {
		if !slices.Contains(kept, k) && z.kept[k.q] == k {
			delete(z.kept, k.q)
			z.changedIn(k.q) // the cap itself may be gone
		}
	}
	for _, k := range kept {
		z.kept[k.q] = k
	}
	z.keeping, z.spareKept = kept, z.keeping
}

// older orders jobs as rigid ones are served: by priority, then age.
func older(a, b *Job) int {
	return policy.ByAge(
		&policy.Candidate{Job: a.ID, Priority: a.Spec.Priority, Submitted: a.Submitted},
		&policy.Candidate{Job: b.ID, Priority: b.Spec.Priority, Submitted: b.Submitted},
	)
}
