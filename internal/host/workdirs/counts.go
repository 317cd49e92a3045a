package workdirs

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// counts tracks which jobs need stored work directories: each job in memory, since what it needs must be known when it goes; for archived
// ones the archive is asked. Jobs without a work directory are not in it.
type counts struct {
	of    map[job.ID]workdir
	needs map[string]int // jobs by work directory
	live  map[string]int // those of them that are not over
}

type workdir struct {
	id   string
	over bool
}

func newCounts() counts {
	return counts{of: map[job.ID]workdir{}, needs: map[string]int{}, live: map[string]int{}}
}

// fact notes which stored work directory a job needs, and that it needs none any more.
func (w *counts) fact(f *protocol.Fact) {
	accepted, _ := f.Body.(*protocol.Acceptance)
	switch {
	case accepted != nil && accepted.Spec != nil:
		w.set(f.Job, workdir{id: accepted.Spec.Launch.Workdir})
	case f.Kind == protocol.JobRequeued: // of the same work directory
		w.set(f.Job, workdir{id: w.of[f.Job].id})
	case f.Kind == protocol.JobClosed:
		w.set(f.Job, workdir{id: w.of[f.Job].id, over: true})
	case f.Kind == protocol.JobForgotten, f.Kind == protocol.JobArchived: // a job that replaces it in the same step is accepted after it
		w.set(f.Job, workdir{})
	}
}

func (w *counts) set(name job.ID, to workdir) {
	w.count(w.of[name], -1)
	w.count(to, 1)
	if to.id == "" {
		delete(w.of, name)
	} else {
		w.of[name] = to
	}
}

func (w *counts) count(d workdir, n int) {
	if d.id == "" {
		return
	}
	add(w.needs, d.id, n)
	if !d.over {
		add(w.live, d.id, n)
	}
}

func add(of map[string]int, id string, n int) {
	if of[id] += n; of[id] == 0 {
		delete(of, id)
	}
}
