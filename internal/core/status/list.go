package status

import (
	"cmp"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// JobKey is a job's place in every list: by submission, then name. No two jobs share one, so a page that goes on at a key
// leaves nobody out.
type JobKey struct {
	Submitted quantity.Instant
	Name      job.ID
}

// Compare orders keys, the oldest first.
func (k JobKey) Compare(o JobKey) int {
	return cmp.Or(cmp.Compare(k.Submitted, o.Submitted), cmp.Compare(k.Name, o.Name))
}

// Key is the job's place in every list.
func (j *Job) Key() JobKey { return JobKey{j.Submitted, j.Name} }

// Owner is who has submitted it; empty: not known.
func (j *Job) Owner() string {
	if j.Spec == nil {
		return ""
	}
	return j.Spec.Owner
}

// JobStates is a set of states. The empty set stands for all of them.
type JobStates uint16

// With adds a state.
func (s JobStates) With(state job.State) JobStates { return s | 1<<state }

// Has says whether a state is selected.
func (s JobStates) Has(state job.State) bool { return s == 0 || s&(1<<state) != 0 }

// Over says whether a state is selected that a job is over in.
func (s JobStates) Over() bool { return s == 0 || s>>job.Finished != 0 }

// JobQuery asks for one page of the list of jobs: the newest before a key.
type JobQuery struct {
	// Before is the key that the page ends before; the zero key: it ends with the newest job.
	Before JobKey
	// Limit is the most jobs of the page; 0: as many as there are.
	Limit int
	// Queue, Owner and States select; empty: all.
	Queue  string
	Owner  string
	States JobStates
}

// JobPage is one page of the list of jobs.
type JobPage struct {
	// Jobs without their histories in order of JobKey, the newest last.
	Jobs []Job
	// Older is how many more jobs match the query and stand before the page; Next, the key of the page before this one, is zero if there
	// are none. With an archive Older is a little too large while jobs are leaving for it: until the actor forgets a job, at most 256 at
	// once, it is counted in both places.
	Older int
	Next  JobKey
	// Warnings say which jobs would be on the page and can't be shown, each with what to do about it.
	Warnings []string
}
