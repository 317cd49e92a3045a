package zone

import (
	"cmp"
	"iter"

	"sluice.dev/sluice/internal/core/ranking"
)

// unbegun are the jobs of one queue and one template that have not begun, in the order in which most policies ask them: those whose bounds
// what the template learns may still change. It follows from the durable
// state, and is kept from when the rosters are.
type unbegun struct {
	ranking.List[*state]
	n int
}

// byAge is that order: priority, then submission, then the name.
func byAge(a, b *state) int {
	if c := cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Submitted, b.Submitted)); c != 0 {
		return c
	}
	return cmp.Compare(a.Job, b.Job)
}

// behind yields those behind a job, or behind where it stood; all if it is nil.
func (u *unbegun) behind(s *state) iter.Seq[*state] {
	switch {
	case u == nil:
		return func(func(*state) bool) {}
	case s == nil:
		return u.All()
	}
	return u.Behind(byAge, s)
}

// begins says whether a job of a template is still to begin.
func (s *state) begins() bool {
	w := s.work()
	return s.Spec.Template != "" && s.alive > 0 && w.started == 0 && len(w.claims) == 0 && len(w.committed) == 0
}

// joins is the list that a job joins.
func (s *state) joins() *unbegun {
	u := s.q.unbegun[s.Spec.Template]
	if u == nil {
		u = &unbegun{}
		s.q.unbegun[s.Spec.Template] = u
	}
	u.n++
	s.unbegun = true
	return u
}

// listAll begins the lists with the jobs that there are, when the rosters are begun.
func (z *Zone) listAll(jobs []*state) {
	for _, s := range jobs {
		if s.begins() {
			s.joins().Gather(0, s)
		}
	}
	for _, q := range z.queues { //sluice:sorted each list for itself
		for _, u := range q.unbegun { //sluice:sorted each list for itself
			u.Settle(byAge)
		}
	}
}

// list keeps a job in the list of those that have not begun for as long as it is one.
func (z *Zone) list(s *state) {
	switch begins := z.enlisted && s.begins(); {
	case begins == s.unbegun:
	case begins:
		s.joins().Insert(byAge, 0, s)
	default:
		z.unlist(s)
	}
}

// unlist takes a job out of it.
func (z *Zone) unlist(s *state) {
	if !s.unbegun {
		return
	}
	s.unbegun = false
	u := s.q.unbegun[s.Spec.Template]
	u.Remove(byAge, s)
	if u.n--; u.n == 0 {
		delete(s.q.unbegun, s.Spec.Template)
	}
}
