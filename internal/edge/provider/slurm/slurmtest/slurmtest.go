// Package slurmtest is a Slurm that only answers, for tests: sbatch, squeue, scontrol, scancel and slurmrestd over one file of state. They
// do what Slurm 22.05 was seen to do (docs/slurm.md), and what happens in the cluster happens by a call. Nothing runs.
//
// The programs are the test's own binary under other names: its TestMain calls Main first.
package slurmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// Grace is how long a job runs on after it was preempted.
const Grace = 30 * time.Second

// Host is a cluster.
type Host struct {
	tb testing.TB
	// Bin is where its programs are.
	Bin string
}

// New makes a cluster with a partition preempt of at most four hours, and one idle node n0 in it of 4 processors, 1000 MiB and two
// gpu:1g.10gb.
func New(tb testing.TB) *Host {
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	h := &Host{tb, tb.TempDir()}
	for _, name := range programs {
		if err := os.Symlink(self, filepath.Join(h.Bin, name)); err != nil {
			tb.Fatal(err)
		}
	}
	h.Update(func(s *State) {
		s.Next = 1
		s.Partitions = []Partition{{"preempt", "04:00:00"}}
		s.Nodes = []Node{{Name: "n0", Partitions: "normal,preempt", State: "IDLE", Gres: "gpu:1g.10gb:2",
			GresUsed: "gpu:1g.10gb:0(IDX:N/A)", Features: "(null)", CPUs: 4, Memory: 1000}}
	})
	return h
}

// Update changes the cluster.
func (h *Host) Update(f func(*State)) {
	h.tb.Helper()
	if err := update(h.Bin, f); err != nil {
		h.tb.Fatal(err)
	}
}

// State is that of now.
func (h *Host) State() (s State) {
	h.Update(func(now *State) { s = *now })
	return s
}

// Start begins to run the waiting copies of a pilot.
func (h *Host) Start(name string) {
	h.Update(func(s *State) {
		for _, j := range s.pilots(name) {
			if j.State == "PENDING" {
				j.State, j.Reason, j.Start, j.Saved, j.Hosts, j.Meant = "RUNNING", "None", now(), true, "n0", ""
				j.End = j.Start.Add(time.Duration(j.Minutes) * time.Minute)
			}
		}
	})
}

// End ends what runs of a pilot.
func (h *Host) End(name string, failed bool) {
	h.Update(func(s *State) {
		for _, j := range s.pilots(name) {
			switch {
			case j.over():
				continue
			case j.Told:
				j.State = "CANCELLED"
			case !j.Preempted.IsZero():
				j.State = "PREEMPTED"
			case failed:
				j.State, j.Reason = "FAILED", "NonZeroExitCode"
			default:
				j.State = "COMPLETED"
			}
			j.End = now()
		}
	})
}

// Preempt takes a running pilot back: its end moves, and nothing else shows it but PreemptTime.
func (h *Host) Preempt(name string) {
	h.Update(func(s *State) {
		for _, j := range s.pilots(name) {
			if j.State == "RUNNING" {
				j.Preempted, j.End = now(), now().Add(Grace)
			}
		}
	})
}

// Crash kills slurmctld and starts it again.
func (h *Host) Crash() {
	h.Update(func(s *State) {
		s.Jobs = slices.DeleteFunc(s.Jobs, func(j *Job) bool { return !j.Saved && j.State == "PENDING" })
		s.Next = 1
		for _, j := range s.Jobs {
			if j.Killed {
				j.Killed, j.State, j.Reason, j.Start, j.End = false, "PENDING", "Priority", time.Time{}, time.Time{}
			}
			s.Next = max(s.Next, j.ID+1)
		}
	})
}

// Save writes down all jobs.
func (h *Host) Save() {
	h.Update(func(s *State) {
		for _, j := range s.Jobs {
			j.Saved = true
		}
	})
}

// Double makes a second copy of a pilot.
func (h *Host) Double(name string) {
	h.Update(func(s *State) {
		twin := *s.pilots(name)[0]
		twin.ID, s.Next = s.Next, s.Next+1
		s.Jobs = append(s.Jobs, &twin)
	})
}

// Forget drops jobs that are over, as Slurm does after MinJobAge.
func (h *Host) Forget() {
	h.Update(func(s *State) {
		s.Jobs = slices.DeleteFunc(s.Jobs, func(j *Job) bool { return j.over() && !j.Killed })
	})
}

// Silence takes slurmctld away, or brings it back.
func (h *Host) Silence(on bool) { h.Update(func(s *State) { s.Silent = on }) }

// Hang has no command end, or all again.
func (h *Host) Hang(on bool) { h.Update(func(s *State) { s.Hang = on }) }

// Deafen has answers of sbatch and scancel lost.
func (h *Host) Deafen(on bool) { h.Update(func(s *State) { s.Deaf = on }) }

// Refuse has sbatch refuse each job in Slurm's words for a kind of error; nil: it takes them again.
func (h *Host) Refuse(err error) {
	text := ""
	if err != nil {
		text = map[errkind.Kind]string{
			errkind.Invalid:     "Invalid account or account/partition combination specified",
			errkind.Exhausted:   "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
			errkind.Denied:      "Access/permission denied",
			errkind.Unavailable: "Unable to contact slurm controller (connect failure)",
		}[errkind.Of(err)]
		if text == "" {
			h.tb.Fatalf("slurmtest: Slurm has no words for %v", err)
		}
	}
	h.Update(func(s *State) { s.Refusal = text })
}

// Say has a command print what it is told and do nothing, until Said{}.
func (h *Host) Say(command string, what Said) {
	h.Update(func(s *State) {
		if s.Says == nil {
			s.Says = map[string]Said{}
		}
		if s.Says[command] = what; what == (Said{}) {
			delete(s.Says, command)
		}
	})
}

// String names it for failures.
func (h *Host) String() string { return fmt.Sprintf("a Slurm in %s", h.Bin) }
