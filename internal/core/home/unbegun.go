package home

import (
	"cmp"
	"iter"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/ranking"
)

// unbegun are the jobs of one queue and one template that have not begun, in the order in which most policies ask them: those whose bounds
// what the template learns may still change. It follows from the durable
// state, and is kept from when the rosters are.
type unbegun struct {
	ranking.List[*Job]
	n int
}

// byAge is that order: priority, then submission, then the name.
func byAge(a, b *Job) int {
	if c := cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Submitted, b.Submitted)); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// inTurn ranks them so.
var inTurn = ranking.Order[*Job]{ //nolint:gochecknoglobals // read-only by use; Go has no constant structs
	Compare: byAge, Key: func(j *Job) ranking.Key { return ranking.Key{policy.Age(j.Spec.Priority, j.Submitted)} },
}

// behind yields those behind a job, or behind where it stood; all if it is nil.
func (u *unbegun) behind(j *Job) iter.Seq[*Job] {
	switch {
	case u == nil:
		return func(func(*Job) bool) {}
	case j == nil:
		return u.All()
	}
	return u.Behind(inTurn, j)
}

// begins says whether a job of a template is still to begin.
func (j *Job) begins() bool {
	w := j.work()
	return j.Spec.Template != "" && j.alive > 0 && w.started == 0 && len(w.claims) == 0 && len(w.committed) == 0
}

// joins is the list that a job joins.
func (j *Job) joins() *unbegun {
	u := j.q.unbegun[j.Spec.Template]
	if u == nil {
		u = &unbegun{}
		j.q.unbegun[j.Spec.Template] = u
	}
	u.n++
	j.unbegun = true
	return u
}

// listAll begins the lists with the jobs that there are, when the rosters are begun.
func (h *Ledger) listAll(jobs []*Job) {
	for _, j := range jobs {
		if j.begins() {
			j.joins().Gather(inTurn, 0, j)
		}
	}
	for _, q := range h.queues { //sluice:sorted each list for itself
		for _, u := range q.unbegun { //sluice:sorted each list for itself
			u.Settle(inTurn)
		}
	}
}

// list keeps a job in the list of those that have not begun for as long as it is one.
func (h *Ledger) list(j *Job) {
	switch begins := h.enlisted && j.begins(); {
	case begins == j.unbegun:
	case begins:
		j.joins().Insert(inTurn, 0, j)
	default:
		h.unlist(j)
	}
}

// unlist takes a job out of it.
func (h *Ledger) unlist(j *Job) {
	if !j.unbegun {
		return
	}
	j.unbegun = false
	u := j.q.unbegun[j.Spec.Template]
	u.Remove(inTurn, j)
	if u.n--; u.n == 0 {
		delete(j.q.unbegun, j.Spec.Template)
	}
}
