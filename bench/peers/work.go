package main

import (
	"fmt"
	"syscall"
	"time"

	"sluice.dev/sluice/bench/placement"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/prng"
)

// scheduler is a peer with its nodes, to which asks are given in batches.
type scheduler interface {
	// place asks for one slice for each of a batch, and returns those that have got one. What finds none is given up.
	place(batch []task) (placed []task, err error)
	// end frees the slices of tasks.
	end(tasks []task) error
	// tidy does what the peer does now and then; it is not counted.
	tidy() error
	// waited is how long the peer was idle while others waited for what finds no place; it is not counted.
	waited() time.Duration
	// inner is the time of the decision alone, where it can be told apart.
	inner() time.Duration
	close()
}

// task is one ask, and then what has a slice.
type task struct {
	number int
	class  flow.Class
	// id and node are the peer's own.
	id, node string
}

// result is what one run of one contestant has measured: placements, with the ends of as many.
type result struct {
	Placed, Failed   int
	Wall, CPU, Inner time.Duration
}

// load of all slices.
const load = .9

// churn fills a peer to the load, which is its warm-up, and then ends and places a batch by turns, until enough time is over: the load is
// reached at the end of each batch.
func churn(s scheduler, work placement.Work, nodes, batch int) (r result, err error) {
	source, number := prng.New(8), 0
	slots := int(load * float64(nodes*placement.Slices))
	asks := func(n int) []task {
		list := make([]task, n)
		for i := range list {
			number++
			list[i] = task{number: number, class: work.Ask(&source)}
		}
		return list
	}
	var running []task
	for len(running) < slots {
		placed, err := s.place(asks(min(batch, slots-len(running))))
		if err != nil {
			return r, err
		}
		if len(placed) == 0 {
			return r, fmt.Errorf("nothing is placed with %d of %d running", len(running), slots)
		}
		running = append(running, placed...)
	}
	for round := 0; r.CPU < enough; round++ {
		over := make([]task, 0, batch)
		for range batch {
			i, last := source.IntN(len(running)), len(running)-1
			over = append(over, running[i])
			running[i] = running[last]
			running = running[:last]
		}
		list := asks(slots - len(running))
		wall, cpu, waited, inner := time.Now(), processor(), s.waited(), s.inner()
		if err = s.end(over); err != nil {
			return r, err
		}
		placed, err := s.place(list)
		if err != nil {
			return r, err
		}
		if round > 0 {
			r.Wall += time.Since(wall) - (s.waited() - waited)
			r.CPU += processor() - cpu
			r.Inner += s.inner() - inner
			r.Placed += len(placed)
			r.Failed += len(list) - len(placed)
		}
		running = append(running, placed...)
		if err = s.tidy(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// enough is how much processor time is measured in a run.
const enough = 2 * time.Second

// processor is the time that the process has had of processors.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
