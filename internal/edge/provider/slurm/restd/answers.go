package restd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Job is one of a queue. Sizes of memory are in MiB, times in seconds, limits in minutes.
type Job struct {
	ID          Number `json:"job_id"`
	Name        string `json:"name"`
	UserName    string `json:"user_name"`
	States      Words  `json:"job_state"`
	Reason      string `json:"state_reason"`
	Partition   string `json:"partition"`
	Start       Number `json:"start_time"`
	End         Number `json:"end_time"`
	PreemptTime Number `json:"preempt_time"`
	Limit       Number `json:"time_limit"`
	// Nodes it is or was on. Scheduled are those that it is to begin on; nil: the version does not tell.
	Nodes         string  `json:"nodes"`
	Scheduled     *string `json:"scheduled_nodes"`
	CPUs          Number  `json:"cpus"`
	MemoryPerNode Number  `json:"memory_per_node"`
	TRESPerNode   string  `json:"tres_per_node"`
}

// stateFlagNames are states that stand beside another and say more than it, the first that is there most: so squeue chooses its one word.
var stateFlagNames = []string{"COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
	"SPECIAL_EXIT", "STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING"}

// State is the one word that squeue has for a job's states.
func (j *Job) State() string {
	states := j.States.Upper()
	for _, flag := range stateFlagNames {
		if slices.Contains(states, flag) {
			return flag
		}
	}
	return states[0] // check has seen to it that there is one
}

// Node is one of a cluster. Memory is in MiB.
type Node struct {
	Name       string `json:"name"`
	States     Words  `json:"state"`
	Flags      Words  `json:"state_flags"`
	Partitions Words  `json:"partitions"`
	Features   Words  `json:"active_features"`
	CPUs       Number `json:"cpus"`
	// Effective are the processors that jobs may have. Kept is the memory that they may not. Not every version has these.
	Effective   Number `json:"effective_cpus"`
	Kept        Number `json:"specialized_memory"`
	AllocCPUs   Number `json:"alloc_cpus"`
	RealMemory  Number `json:"real_memory"`
	AllocMemory Number `json:"alloc_memory"`
	Gres        string `json:"gres"`
	GresUsed    string `json:"gres_used"`
}

// Reservation is one of a cluster.
type Reservation struct {
	Name  string `json:"name"`
	Start Number `json:"start_time"`
	End   Number `json:"end_time"`
	Nodes string `json:"node_list"`
}

// Partition is one of a cluster.
type Partition struct {
	Name    string `json:"name"`
	MaxTime Number `json:"max_time_limit"` // of v0.0.38
	Maximum struct {
		Time Number `json:"time"`
	} `json:"maximums"`
}

// Longest is the longest of a job there, in minutes.
func (p *Partition) Longest() Number {
	if p.Maximum.Time.Given {
		return p.Maximum.Time
	}
	return p.MaxTime
}

// answer is what every call is answered with; of lists the one that was asked for is there.
type answer struct {
	Errors       []fault        `json:"errors"`
	Jobs         *[]Job         `json:"jobs"`
	Nodes        *[]Node        `json:"nodes"`
	Reservations *[]Reservation `json:"reservations"`
	Partitions   *[]Partition   `json:"partitions"`
	JobID        Number         `json:"job_id"`
}

// fault is one of Slurm's errors. Its number has three names in v0.0.38.
type fault struct {
	Error       string `json:"error"`
	Description string `json:"description"`
	Number      Number `json:"error_number"`
	Code        Number `json:"error_code"`
	Errno       Number `json:"errno"`
}

// Refusal is what Slurm says that does not do what was asked.
type Refusal struct {
	Status int
	// Code is Slurm's own number; 0: it gave none.
	Code int64
	Text string
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Text, r.Status) }

// noJob is Slurm's number for an id that no job has.
const noJob = 2017

// Gone reports whether an error of a call about a job says that there is none, or that it is over.
func Gone(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && (r.Status == http.StatusNotFound || r.Code == noJob || strings.Contains(r.Text, "Invalid job id") ||
		strings.Contains(r.Text, "already completing or completed"))
}

// refusal is what a list of errors says, nil: nothing.
func refusal(status int, list []fault) error {
	r := &Refusal{Status: status}
	var words []string
	for _, f := range list {
		for _, s := range []string{f.Description, f.Error} {
			if s != "" && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, s) }) {
				words = append(words, s)
			}
		}
		for _, n := range []Number{f.Number, f.Code, f.Errno} {
			if r.Code == 0 {
				r.Code = n.N
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	if r.Text = clip(strings.Join(words, ": ")); r.Text == "" {
		r.Text = fmt.Sprintf("error %d", r.Code)
	}
	return r
}

// parse reads an answer. Errors: it is none.
func parse(text []byte) (a answer, err error) {
	if err = json.Unmarshal(text, &a); err != nil {
		return answer{}, err
	}
	if err = a.check(); err != nil {
		return answer{}, err
	}
	return a, nil
}

// check refuses lists of what has no name: they are of a form that is not known.
func (a *answer) check() error {
	if a.Jobs != nil {
		for i := range *a.Jobs {
			if j := &(*a.Jobs)[i]; !j.ID.Set || j.ID.N <= 0 || len(j.States) == 0 || !j.Limit.Given || !j.End.Given {
				return fmt.Errorf("job %d %q lacks an id, a state, a limit or an end", j.ID.N, clip(j.Name))
			}
		}
	}
	if a.Nodes != nil {
		for i := range *a.Nodes {
			if n := &(*a.Nodes)[i]; n.Name == "" || len(n.States) == 0 || !n.CPUs.Set || !n.RealMemory.Set || !n.AllocCPUs.Given ||
				!n.AllocMemory.Given {
				return fmt.Errorf("node %q lacks a name, a state, processors or memory", clip(n.Name))
			}
		}
	}
	if a.Reservations != nil {
		for _, r := range *a.Reservations {
			if r.Name == "" || !r.Start.Given || !r.End.Given {
				return fmt.Errorf("reservation %q lacks a name, a start or an end", clip(r.Name))
			}
		}
	}
	if a.Partitions != nil {
		for i := range *a.Partitions {
			if p := &(*a.Partitions)[i]; p.Name == "" || !p.Longest().Given {
				return fmt.Errorf("partition %q lacks a name or what it takes", clip(p.Name))
			}
		}
	}
	return nil
}

// errNothing is what an answer is that has not what was asked for.
var errNothing = errors.New("it has not what was asked for")
