package slurmtest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// State is all of a cluster. Times are of whole seconds, and zero where there is none.
type State struct {
	Next         int
	Jobs         []*Job
	Partitions   []Partition
	Nodes        []Node
	Reservations []Reservation

	// Silent: slurmctld is not there. Hang: no command ends. Deaf: jobs are taken and
	// ended, and the answer is lost.
	Silent, Hang, Deaf bool
	// Refusal is what sbatch says to each job; empty: it takes them.
	Refusal string
	// Says are answers of commands that are given instead of any other, by name.
	Says map[string]Said
	// Calls are how often each command was called, by its name and its first words.
	Calls map[string]int
}

// Said is what a command prints, and ends with.
type Said struct {
	Out, Err string
	Code     int
}

// Job is one.
type Job struct {
	ID                             int
	Name, Partition, State, Reason string
	User                           int
	Submit, Start, End, Preempted  time.Time
	Minutes                        int
	Hosts, Meant, Gres, Memory     string
	CPUs                           int
	Script                         string
	Args, Env                      []string
	// Saved: a crash does not lose it. Killed: it was cancelled while it waited, which a crash forgets. Told: it was cancelled while it
	// ran.
	Saved, Killed, Told bool
}

// Partition is one; MaxTime as scontrol shows it.
type Partition struct{ Name, MaxTime string }

// Node is one; GRES as scontrol shows it.
type Node struct {
	Name, Partitions, State, Gres, GresUsed, Features string
	CPUs, CPUAlloc, Memory, AllocMem                  int
}

// Reservation is one.
type Reservation struct {
	Name, Nodes string
	Start, End  time.Time
}

// update changes the state of the cluster whose programs are in a folder. One at a time does.
func update(dir string, f func(*State)) (err error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // and so unlocked
	if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	path := filepath.Join(dir, "state.json")
	s := State{Calls: map[string]int{}}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	f(&s)
	if text, err = json.Marshal(s); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// now is of whole seconds, as Slurm's.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// pilots are the jobs of a pilot, by the end of their names, or all.
func (s *State) pilots(name string) (list []*Job) {
	for _, j := range s.Jobs {
		if name == "" || strings.HasSuffix(j.Name, "."+name) {
			list = append(list, j)
		}
	}
	return list
}

func (j *Job) over() bool {
	return slices.Contains([]string{"COMPLETED", "CANCELLED", "FAILED", "PREEMPTED", "TIMEOUT", "NODE_FAIL"}, j.State)
}
