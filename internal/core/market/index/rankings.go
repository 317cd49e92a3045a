package index

import (
	"cmp"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// atOnce is from how many jobs on they enter lists together: all of them after a recovery, or when slices of a new kind come.
const atOnce = 32

// rankings are the ranked jobs in the policy's order, by group and class. Invariant: a job is in the list of each class that it can use, by
// the key that its entry has there.
type rankings struct {
	policy policy.Policy
	// byQueue: each queue has a group of its own. groups are all, queues the same by name.
	byQueue bool
	groups  []*Group
	queues  map[string]*Group
	// orders are by class the policy's.
	orders []ranking.Order[*Job]
	// pair is what two jobs are compared by: room that is not allocated.
	pair [2]policy.Candidate
}

// cover adds one more class.
func (r *rankings) cover(class int) {
	r.orders = append(r.orders, ranking.Order[*Job]{
		Compare: func(a, b *Job) int {
			return r.compare(&a.entry, &b.entry, class)
		},
		Key: func(j *Job) ranking.Key {
			j.entry.keyOn(class, &r.pair[0])
			return r.policy.Key(&r.pair[0])
		},
	})
}

// compare is the policy's order of two entries on a class.
func (r *rankings) compare(a, b *Entry, class int) int {
	a.keyOn(class, &r.pair[0])
	b.keyOn(class, &r.pair[1])
	return r.policy.Compare(&r.pair[0], &r.pair[1])
}

// of is the group of a job.
func (r *rankings) of(j *Job) *Group {
	queue := ""
	if r.byQueue {
		queue, _ = j.Queue()
	}
	g := r.queues[queue]
	if g == nil {
		g = &Group{}
		r.queues[queue] = g
		r.groups = append(r.groups, g)
	}
	return g
}

// same says whether the policy gives a job the same places by another entry with the same needs.
func (r *rankings) same(a, b *Entry) bool {
	for class := range r.orders {
		if a.can(class) && r.compare(a, b, class) != 0 {
			return false
		}
	}
	return true
}

// insert puts a job into the rankings of its group.
func (r *rankings) insert(j *Job) {
	j.entry.ranked = true
	for class := range j.entry.answers {
		if j.entry.can(class) {
			j.group.lists[class].Insert(r.orders[class], j.entry.answers[class].need, j)
		}
	}
}

// remove takes a job out of them.
func (r *rankings) remove(j *Job) {
	for class := range j.entry.answers {
		if j.entry.can(class) {
			j.group.lists[class].Remove(r.orders[class], j)
		}
	}
	j.entry.ranked = false
}

// insertAll gives jobs their places in the rankings of the classes from one on.
func (r *rankings) insertAll(jobs []*Job, from int) {
	put := (*ranking.List[*Job]).Insert
	if len(jobs) >= atOnce {
		put = (*ranking.List[*Job]).Gather
	}
	for _, j := range jobs {
		for class := from; class < len(j.entry.answers); class++ {
			if j.entry.can(class) {
				put(&j.group.lists[class], r.orders[class], j.entry.answers[class].need, j)
			}
		}
	}
	if len(jobs) < atOnce {
		return
	}
	for _, g := range r.groups {
		for class := range g.lists {
			g.lists[class].Settle(r.orders[class])
		}
	}
}

// line is jobs in one order of instants, by class. Invariant: a job that is in it is in the list of each class that it can use.
type line struct {
	lists []ranking.List[*Job]
	order ranking.Order[*Job]
}

// newLine is an empty one, by an instant of each job, then name.
func newLine(at func(*Job) quantity.Instant) line {
	return line{order: ranking.Order[*Job]{
		Compare: func(a, b *Job) int {
			if c := cmp.Compare(at(a), at(b)); c != 0 {
				return c
			}
			return ByName(a, b)
		},
		Key: func(j *Job) ranking.Key { return ranking.Key{int64(at(j))} },
	}}
}

func (l *line) cover() { l.lists = append(l.lists, ranking.List[*Job]{}) }

func (l *line) insert(j *Job) {
	for class := range j.entry.answers {
		if j.entry.can(class) {
			l.lists[class].Insert(l.order, j.entry.answers[class].need, j)
		}
	}
}

func (l *line) remove(j *Job) {
	for class := range j.entry.answers {
		if j.entry.can(class) {
			l.lists[class].Remove(l.order, j)
		}
	}
}

// seniority is the ranked jobs by how long they have waited. Invariant: each is in line by when its wait began, or among those ahead, which
// have been served before their time.
type seniority struct {
	line  line
	ahead []*Job
}

// enter finds the key by which a job enters the line: when its wait began. The few that were served ahead of time are kept apart until they
// change; until that time comes they wait as little as a new job.
func (s *seniority) enter(now quantity.Instant, j *Job) {
	j.waits = j.Since()
	if j.waits > now {
		s.ahead = append(s.ahead, j)
		j.ahead = len(s.ahead)
	}
}

// leave takes a job out again.
func (s *seniority) leave(j *Job) {
	if j.ahead == 0 {
		s.line.remove(j)
		return
	}
	last := s.ahead[len(s.ahead)-1]
	s.ahead[j.ahead-1], last.ahead = last, j.ahead
	s.ahead[len(s.ahead)-1] = nil
	s.ahead = s.ahead[:len(s.ahead)-1]
	j.ahead = 0
}

// insertAll puts jobs in line for the classes from one on.
func (s *seniority) insertAll(jobs []*Job, from int) {
	put := (*ranking.List[*Job]).Insert
	if len(jobs) >= atOnce {
		put = (*ranking.List[*Job]).Gather
	}
	for _, j := range jobs {
		if j.ahead != 0 {
			continue
		}
		for class := from; class < len(j.entry.answers); class++ {
			if j.entry.can(class) {
				put(&s.line.lists[class], s.line.order, j.entry.answers[class].need, j)
			}
		}
	}
	if len(jobs) < atOnce {
		return
	}
	for i := range s.line.lists {
		s.line.lists[i].Settle(s.line.order)
	}
}

// lateness is the ranked jobs that are late, earliest due first. Invariant: between two passes these are all that are due.
type lateness struct {
	line line
	dues alarm.Heap[*Job]
}

// enter puts a ranked job that is known to be late in line, leave takes it out.
func (l *lateness) enter(j *Job) {
	if j.entry.ranked && !j.inLate && j.active > 0 && j.knownLate() {
		j.inLate = true
		l.line.insert(j)
	}
}

func (l *lateness) leave(j *Job) {
	if j.inLate {
		j.inLate = false
		l.line.remove(j)
	}
}

// ripen adds the jobs that have become late.
func (l *lateness) ripen(now quantity.Instant) {
	for j := range l.dues.Past(now) {
		l.enter(j)
	}
}
