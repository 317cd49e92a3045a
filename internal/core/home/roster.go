package home

import (
	"cmp"
	"iter"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// roster is the jobs of one queue in one state, in the order of status.JobKey. It answers "the newest before this key" and "how
// many stand before it" by looking at O(log n) jobs, and its length is the count that people see. It follows from the durable
// state: once enlist has begun them, every job is in the one roster of its queue and state.
type roster struct {
	// chunks are in order and never empty; one that is full is split, at its end if it is the last: jobs mostly come in order.
	chunks [][]enrolled
	n      int
}

// enrolled is a job in a roster, beside its instant of submission, so that a search looks at few jobs themselves.
type enrolled struct {
	submitted quantity.Instant
	job       *Job
}

// rosterChunk is the most jobs of one chunk: a change moves half a chunk, and a count adds up n/rosterChunk numbers.
const rosterChunk = 512

// jobStates is how many states there are.
const jobStates = int(job.Impossible) + 1

// rosters are the jobs of one queue, by state.
type rosters [jobStates]roster

func (e enrolled) compare(k status.JobKey) int {
	if c := cmp.Compare(e.submitted, k.Submitted); c != 0 {
		return c
	}
	return cmp.Compare(e.job.ID, k.Name)
}

// ListKey is its place in lists of jobs.
func (j *Job) ListKey() status.JobKey { return status.JobKey{Submitted: j.Submitted, Name: j.ID} }

// insert puts a job in its place.
func (r *roster) insert(j *Job) {
	e := enrolled{j.Submitted, j}
	r.n++
	if len(r.chunks) == 0 {
		r.chunks = append(r.chunks, []enrolled{e})
		return
	}
	c, i := r.seek(j.ListKey())
	if c == len(r.chunks) {
		c--
		i = len(r.chunks[c])
	}
	switch full := len(r.chunks[c]) == rosterChunk; {
	case full && c == len(r.chunks)-1 && i == rosterChunk:
		r.chunks = append(r.chunks, append(make([]enrolled, 0, rosterChunk), e))
		return
	case full:
		half := append(make([]enrolled, 0, rosterChunk), r.chunks[c][rosterChunk/2:]...)
		clear(r.chunks[c][rosterChunk/2:])
		r.chunks[c] = r.chunks[c][:rosterChunk/2]
		r.chunks = slices.Insert(r.chunks, c+1, half)
		if i > rosterChunk/2 {
			c, i = c+1, i-rosterChunk/2
		}
	}
	r.chunks[c] = slices.Insert(r.chunks[c], i, e)
}

// remove takes out a job, which must be there.
func (r *roster) remove(j *Job) {
	c, i := r.seek(j.ListKey())
	r.n--
	if r.chunks[c] = slices.Delete(r.chunks[c], i, i+1); len(r.chunks[c]) == 0 {
		r.chunks = slices.Delete(r.chunks, c, c+1)
	}
}

// seek finds the first job that does not stand before k: the chunk, and the place in it; len(chunks) and 0 if there is none.
func (r *roster) seek(k status.JobKey) (c, i int) {
	c, found := slices.BinarySearchFunc(r.chunks, k, func(c []enrolled, k status.JobKey) int { return c[0].compare(k) })
	if found || c == 0 {
		return c, 0
	}
	c--
	if i, _ = slices.BinarySearchFunc(r.chunks[c], k, enrolled.compare); i == len(r.chunks[c]) {
		return c + 1, 0
	}
	return c, i
}

// rank is how many jobs stand before a place that seek found.
func (r *roster) rank(c, i int) int {
	for j := range r.chunks[:c] {
		i += len(r.chunks[j])
	}
	return i
}

// enlist begins the rosters with the jobs that there are: sorted once, since a search for the place of each of a million takes longer.
// Until then, while the ledger is recovered or where a snapshot is proven, none are kept.
func (h *Ledger) enlist() {
	if h.enlisted {
		return
	}
	h.enlisted = true
	type place struct {
		submitted quantity.Instant
		of        int32 // of jobs; no pointer, so that sorting is nothing that the collector minds
	}
	jobs, order := make([]*Job, 0, h.records.Len()), make([]place, 0, h.records.Len())
	for j := range h.records.All() {
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
		j.enrolledIn.append(j)
	}
	h.listAll(jobs)
}

// append puts a job behind all others.
func (r *roster) append(j *Job) {
	r.n++
	last := len(r.chunks) - 1
	switch {
	case last < 0:
		r.chunks, last = append(r.chunks, nil), 0
	case len(r.chunks[last]) == rosterChunk:
		r.chunks, last = append(r.chunks, make([]enrolled, 0, rosterChunk)), last+1
	}
	r.chunks[last] = append(r.chunks[last], enrolled{j.Submitted, j})
}

// enroll puts a job into the roster of its queue and its present state, and takes it out of the one that it was in.
func (h *Ledger) enroll(j *Job) {
	if !h.enlisted {
		return
	}
	r := &j.q.rosters[j.Phase()]
	if r == j.enrolledIn || planted.In(planted.ForgetPhase) && j.Held {
		return
	}
	h.strike(j)
	r.insert(j)
	j.enrolledIn = r
}

// strike takes a job out of its roster.
func (h *Ledger) strike(j *Job) {
	if j.enrolledIn != nil {
		j.enrolledIn.remove(j)
		j.enrolledIn = nil
	}
}

// cursor is a place in a roster, from which the jobs before it are read.
type cursor struct {
	*roster
	c, i int
}

// last is the job before the cursor.
func (c *cursor) last() enrolled {
	if c.i > 0 {
		return c.chunks[c.c][c.i-1]
	}
	before := c.chunks[c.c-1]
	return before[len(before)-1]
}

// back moves to before the last job, and says whether one is left.
func (c *cursor) back() bool {
	if c.i == 0 {
		c.c--
		c.i = len(c.chunks[c.c])
	}
	c.i--
	return c.c > 0 || c.i > 0
}

// Newest are the newest jobs that match a query, the oldest of them first, and how many more do.
func (h *Ledger) Newest(q status.JobQuery) (found []*Job, older int) {
	var heap []cursor // the newest job on top
	newer := func(i, j int) bool {
		a, b := heap[i].last(), heap[j].last()
		return a.compare(b.job.ListKey()) > 0
	}
	down := func(i int) {
		for {
			top := i
			for c := 2*i + 1; c <= 2*i+2 && c < len(heap); c++ {
				if newer(c, top) {
					top = c
				}
			}
			if top == i {
				return
			}
			heap[i], heap[top] = heap[top], heap[i]
			i = top
		}
	}
	if planted.In(planted.SkipTie) {
		q.Before.Name = ""
	}
	for _, of := range h.rostersOf(q) {
		c := cursor{of, len(of.chunks), 0}
		if q.Before != (status.JobKey{}) {
			c.c, c.i = of.seek(q.Before)
		}
		if n := of.rank(c.c, c.i); n > 0 {
			heap, older = append(heap, c), older+n
		}
	}
	for i := len(heap) / 2; i >= 0; i-- {
		down(i)
	}
	n := older
	if q.Limit > 0 {
		n = min(n, q.Limit)
	}
	found = make([]*Job, n)
	for i := n - 1; i >= 0; i-- {
		top := &heap[0]
		found[i] = top.last().job
		if !top.back() {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		down(0)
	}
	return found, older - n
}

// rostersOf are the rosters in which jobs may match a query.
func (h *Ledger) rostersOf(q status.JobQuery) (out []*roster) {
	h.enlist()
	for _, name := range h.queueNames() {
		if q.Queue != "" && q.Queue != name {
			continue
		}
		of := &h.queues[name].rosters
		for state := range of {
			if of[state].n > 0 && q.States.Has(job.State(state)) {
				out = append(out, &of[state])
			}
		}
	}
	return out
}

// Queues are all queues, by name, with their jobs counted.
func (h *Ledger) Queues() []*Queue {
	h.enlist()
	all := make([]*Queue, 0, len(h.queues))
	for _, name := range h.queueNames() {
		all = append(all, h.queues[name])
	}
	return all
}

// Count is how many jobs of a queue are in a state, once they are counted.
func (q *Queue) Count(s job.State) int { return q.rosters[s].n }

// Jobs are all jobs, in no order that means anything.
func (h *Ledger) Jobs() iter.Seq[*Job] { return h.records.All() }
