package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/workload"
)

// The cluster and the work. Ten owners, each with a queue of its own and jobs of the same kind, offer a little more than the
// cluster can do, so that there is something to compete for; then all is worked off.
const (
	owners   = 10
	begins   = quantity.Instant(1000 * time.Second)
	arrivals = 3 * time.Hour
	// load is the work that is offered over what the cluster can do, without the least time of every task: with it, it is 1.2.
	load  = 1.1
	least = time.Minute
	// limit is when a run is cut off: what has not ended by then counts as if it ended then.
	limit = 24 * time.Hour
	gib   = quantity.Amount(1 << 30)
)

// cluster is one node with four small slices and two large ones.
func cluster() (list []protocol.Slice) {
	for i := range 6 {
		s := protocol.Slice{ID: job.SliceID(fmt.Sprint("s", i)), Profile: "small", Capacity: trp.Vector{10 * gib}, Speed: 1000}
		if i >= 4 {
			s.Profile, s.Capacity = "large", trp.Vector{20 * gib}
		}
		list = append(list, s)
	}
	return list
}

// task is what an owner wants done: it is done when all jobs are that it was submitted as.
type task struct {
	owner int
	work  time.Duration
	begin quantity.Instant
}

// offer draws the tasks of a seed, and the jobs that they are submitted as: one each but where a move splits them. The same
// seed has the same tasks whatever the moves.
func offer(seed uint64, moves []move) (tasks []task, jobs []workload.Job, of []int) {
	median, sigma := 8*time.Minute, .9
	mean := median.Seconds() * math.Exp(sigma*sigma/2)
	gap := mean / (load * float64(len(cluster()))) * owners
	for o := range owners {
		draw := prng.New(seed, prng.Name("owner"), uint64(o))
		m := moves[o]
		for at := draw.Exp() * gap; at < arrivals.Seconds(); at += draw.Exp() * gap {
			t := task{o, time.Duration(median.Seconds()*math.Exp(sigma*draw.Normal())*1e9) + least, begins.Add(time.Duration(at * 1e9))}
			memory := []quantity.Amount{3, 6, 9, 9, 16}[draw.IntN(5)] * gib
			chain, peaks := draw.IntN(2) == 0, draw.Uint64()
			tasks = append(tasks, t)
			n := 1
			if !chain {
				n = min(max(1, m.split), int(t.work/(30*time.Second)))
			}
			for range n {
				jobs = append(jobs, part(t, n, memory, chain, peaks, m))
				of = append(of, len(tasks)-1)
			}
		}
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Submit, jobs[b].Submit) })
	sorted, owned := make([]workload.Job, len(jobs)), make([]int, len(jobs))
	for i, k := range order {
		sorted[i], owned[i] = jobs[k], of[k]
		sorted[i].Number = int64(i)
	}
	return tasks, sorted, owned
}

// part is the nth part of a task as a job.
func part(t task, n int, memory quantity.Amount, chain bool, peaks uint64, m move) workload.Job {
	work := t.work / time.Duration(n)
	units := max(1, int64(work/(10*time.Second)))
	declared := memory
	if m.memory > 0 {
		declared = quantity.Amount(quantity.MulDiv(int64(memory), m.memory, 1000))
	}
	phases := func(mean quantity.Amount) []trp.Phase { return []trp.Phase{{UpTo: units, Mean: mean, SD: mean / 50}} }
	j := workload.Job{
		Queue: fmt.Sprint("q", t.owner), Submit: t.begin, Kind: job.Items, Slices: 1, Units: units, Grid: 1, Parallelism: 8,
		Work: work, Declared: work, Startup: 2 * time.Second, Theta: 10_000, External: true,
		Profile: trp.Profile{Form: trp.Phases, Phases: phases(declared)}, Memory: workload.Memory{Seed: peaks, Phases: phases(memory)},
	}
	if chain {
		j.Kind, j.Parallelism, j.Restore, j.Checkpoint = job.Steps, 1, 10*time.Second, 5*time.Second
	}
	return j
}

// list is a workload.Source of jobs that are known.
type list struct {
	jobs []workload.Job
	next int
}

// Next implements workload.Source.
func (l *list) Next(j *workload.Job) (bool, error) {
	if l.next == len(l.jobs) {
		return false, nil
	}
	*j = l.jobs[l.next]
	l.next++
	return true, nil
}
