package compose

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// entry is a job of a log, with the gap to the one before. A duration of 0 is drawn.
type entry struct {
	gap, duration time.Duration
	gpus          int
	queue         string
	// walltime requested and memory on each slice, 0 where they are not known.
	walltime time.Duration
	memory   quantity.Amount
}

// blockJobs is how many jobs a stretch has: about half a day of Philly, many times the scale of its bursts.
const blockJobs = 500

// stretches gives a log, or stretches of it.
type stretches struct {
	log  []entry
	seed uint64
	n    uint64
	at   int
	time time.Duration
	// run is where durations are drawn from that the log has not, under the seed draws.
	run   synthetic.Duration
	draws uint64
}

// Next implements workload.Arrivals. A job's key is its place in the stream.
func (s *stretches) Next(a *workload.Arrival) (bool, error) {
	switch {
	case s.seed == 0 && s.n == uint64(len(s.log)):
		return false, nil
	case s.seed != 0 && s.n%blockJobs == 0:
		draw := prng.New(s.seed, prng.Name("stretch"), s.n/blockJobs)
		s.at = draw.IntN(len(s.log))
	}
	e := &s.log[s.at]
	if s.n > 0 {
		s.time += e.gap
	}
	*a = workload.Arrival{
		Key: s.n, Submit: quantity.Instant(s.time), Duration: e.duration, GPUs: e.gpus, Queue: e.queue,
		Walltime: e.walltime, Memory: e.memory,
	}
	if e.duration == 0 {
		a.Duration = drawn(s.run, s.draws, s.n)
	}
	s.n++
	s.at = (s.at + 1) % len(s.log)
	return true, nil
}

// arrival is an entry with its instant.
type arrival struct {
	at time.Duration
	entry
}

// gaps of arrivals in order.
func gaps(all []arrival) []entry {
	log := make([]entry, len(all))
	for i, a := range all {
		log[i] = a.entry
		if i > 0 {
			log[i].gap = a.at - all[i-1].at
		}
	}
	// On the circle the first follows the last by a mean gap.
	log[0].gap = (all[len(all)-1].at - all[0].at) / time.Duration(max(1, len(all)-1))
	return log
}

// drawn is the run time of the n-th job where the file has none.
func drawn(of synthetic.Duration, seed, n uint64) time.Duration {
	s := prng.New(seed, prng.Name("run time"), n)
	return max(of.Draw(&s), time.Millisecond)
}
