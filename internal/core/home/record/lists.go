package record

import (
	"cmp"
	"iter"
	"slices"

	"sluice.dev/sluice/internal/core/home/list"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// jobStates is how many states there are.
const jobStates = int(job.Impossible) + 1

// rosters are the jobs of one queue, by state.
type rosters [jobStates]list.Roster[*Job]

// waiting are the jobs of one queue and one template that have not begun, in the order in which most policies ask them: those whose bounds
// what the template learns may still change.
type waiting struct {
	ranking.List[*Job]
	n int
}

// byAge ranks jobs by priority, then submission, then the name.
var byAge = ranking.Order[*Job]{ //nolint:gochecknoglobals // read-only by use; Go has no constant structs
	Compare: func(a, b *Job) int {
		if c := cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Submitted, b.Submitted)); c != 0 {
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	},
	Key: func(j *Job) ranking.Key { return ranking.Key{policy.Age(j.Spec.Priority, j.Submitted)} },
}

// Waiting yields the jobs of a template that have not begun, behind one, or behind where it stood; all if it is nil.
func (q *Queue) Waiting(template string, behind *Job) iter.Seq[*Job] {
	switch w := q.waiting[template]; {
	case w == nil:
		return func(func(*Job) bool) {}
	case behind == nil:
		return w.All()
	default:
		return w.Behind(byAge, behind)
	}
}

// lists maintains each queue's job lists. Invariant once kept: each job is in the one roster of its queue and state, with an owner also in
// that of its queue, owner and state, and, with a template, in its waiting list iff it has not begun. Derived: none are kept until first
// asked for, during recovery, or where a snapshot is verified.
type lists struct{ kept bool }

// begin lists the jobs that there are: sorted once, since a search for the place of each of a million takes longer.
func (l *lists) begin(of iter.Seq[*Job], n int, queues map[string]*Queue) {
	if l.kept {
		return
	}
	l.kept = true
	type place struct {
		submitted quantity.Instant
		of        int32 // of jobs; no pointer, so that sorting is nothing that the collector minds
	}
	jobs, order := make([]*Job, 0, n), make([]place, 0, n)
	for j := range of {
		order = append(order, place{j.Submitted, int32(len(jobs))}) //nolint:gosec // memory ends long before 2^31 jobs
		jobs = append(jobs, j)
	}
	slices.SortFunc(order, func(a, b place) int {
		if c := cmp.Compare(a.submitted, b.submitted); c != 0 {
			return c
		}
		return cmp.Compare(jobs[a.of].ID, jobs[b.of].ID)
	})
	for _, p := range order {
		j := jobs[p.of]
		j.enrolledIn = &j.q.rosters[j.Phase()]
		j.enrolledIn.Append(j)
		if j.ownedIn = j.q.owned(j.Spec.Owner, j.Phase()); j.ownedIn != nil {
			j.ownedIn.Append(j)
		}
	}
	for _, j := range jobs {
		if j.begins() {
			l.among(j).Gather(byAge, 0, j)
		}
	}
	for _, q := range queues { //sluice:sorted each list for itself
		for _, w := range q.waiting { //sluice:sorted each list for itself
			w.Settle(byAge)
		}
	}
}

// update puts a job into the lists of its present state, and takes it out of those that it was in.
func (l *lists) update(j *Job) {
	if !l.kept {
		return
	}
	if r := &j.q.rosters[j.Phase()]; r != j.enrolledIn {
		l.strike(j)
		r.Insert(j)
		j.enrolledIn = r
		if j.ownedIn = j.q.owned(j.Spec.Owner, j.Phase()); j.ownedIn != nil {
			j.ownedIn.Insert(j)
		}
	}
	switch begins := j.begins(); {
	case begins == j.waits:
	case begins:
		l.among(j).Insert(byAge, 0, j)
	default:
		l.begun(j)
	}
}

// strike takes a job out of its rosters.
func (l *lists) strike(j *Job) {
	if j.enrolledIn != nil {
		j.enrolledIn.Remove(j)
		j.enrolledIn = nil
	}
	if j.ownedIn != nil {
		j.ownedIn.Remove(j)
		j.ownedIn = nil
	}
}

// owned is the roster of an owner's jobs in a state, nil of nobody's. It is kept when it is empty: who has submitted once does so again.
func (q *Queue) owned(by string, state job.State) *list.Roster[*Job] {
	if by == "" {
		return nil
	}
	r := q.owners[by]
	if r == nil {
		if q.owners == nil {
			q.owners = map[string]*rosters{}
		}
		r = new(rosters)
		q.owners[by] = r
	}
	return &r[state]
}

// among is the list that a job joins.
func (l *lists) among(j *Job) *waiting {
	w := j.q.waiting[j.Spec.Template]
	if w == nil {
		w = &waiting{}
		j.q.waiting[j.Spec.Template] = w
	}
	w.n++
	j.waits = true
	return w
}

// begun takes a job out of those that have not begun.
func (l *lists) begun(j *Job) {
	if !j.waits {
		return
	}
	j.waits = false
	w := j.q.waiting[j.Spec.Template]
	w.Remove(byAge, j)
	if w.n--; w.n == 0 {
		delete(j.q.waiting, j.Spec.Template)
	}
}
