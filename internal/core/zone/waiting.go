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
func (s *state) view() atomizer.View {
	v := atomizer.View{
		Spec: s.Spec, Committed: s.work().committed, Claimed: s.work().claimed, Running: len(s.work().claims), Learned: s.learned(), Resume: s.work().resume,
		Skipped: s.work().skipped.Len(),
	}
	if planted.In(planted.SellTwice) {
		v.Claimed = nil
		return v
	}
	if len(s.work().asked) > 0 {
		v.Claimed = nil
		for _, r := range s.work().claimed {
			v.Claimed = v.Claimed.Add(r)
		}
		for _, r := range s.work().asked {
			v.Claimed = v.Claimed.Add(r)
		}
		v.Running += s.work().asking
	}
	return v
}

// waits says why a job is not asked at all.
func (z *Zone) waits(now quantity.Instant, s *state) market.Reason {
	q := s.q
	switch {
	case s.fate().dropping.State != job.Waiting:
		return market.Ending
	case s.Held:
		return market.Held
	case s.met().notBefore > now:
		return market.Resting
	case q.Cap > 0 && q.held+q.asking+s.width() > q.Cap:
		return market.QueueCap
	case q.kept != nil && q.kept != s && older(q.kept, s) < 0 && q.held+q.asking+s.width()+q.kept.width() > q.Cap:
		return market.QueueCap
	}
	return market.Eligible
}

// ineligible says why a job does not answer windows: it waits, or a better place than any of them is planned for it.
func (z *Zone) ineligible(now quantity.Instant, s *state) market.Reason {
	if s.rigid.Planned() {
		return market.Reserved
	}
	if s.Spec.External && z.cfg.Market == nil {
		return market.Unattended // it was accepted where agents were asked
	}
	if why := z.waits(now, s); why != market.Eligible || s.Spec.Kind != job.Rigid || z.cfg.Rigid.Overtake {
		return why
	}
	return market.InLine
}

// width is how many slices one subjob of the job holds.
func (s *state) width() int { return max(1, s.Spec.Slices) }

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
		if i := slices.IndexFunc(kept, func(k *state) bool { return k.q == q }); i < 0 {
			kept = append(kept, s)
		} else if older(s, kept[i]) < 0 {
			kept[i] = s
		}
	}
	for _, k := range z.keeping {
		if !slices.Contains(kept, k) && k.q.kept == k {
			k.q.kept = nil
			z.changedIn(k.q) // the cap itself may be gone
		}
	}
	for _, k := range kept {
		k.q.kept = k
	}
	z.keeping, z.spareKept = kept, z.keeping
}

// older orders jobs as rigid ones are served: by priority, then age.
func older(a, b *state) int {
	return policy.ByAge(
		&policy.Candidate{Job: a.Job, Priority: a.Spec.Priority, Submitted: a.Submitted},
		&policy.Candidate{Job: b.Job, Priority: b.Spec.Priority, Submitted: b.Submitted},
	)
}
