package fleet

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/workload"
)

// queues there are, of weights 1, 2 and so on.
const queues = 4

func queueName(i int) string { return fmt.Sprint("q", i) }

// stream gives jobs for ever: as many at once as keep every slice busy and some waiting, and from then on as many as end. It
// looks at the fleet each time, so that no rate has to be guessed.
type stream struct {
	fleet   *Fleet
	target  int
	spacing time.Duration
	number  int64
}

// spacing is the time in which about one job ends where all slices are busy.
func (f *Fleet) spacing() time.Duration { return meanWork * 2 / time.Duration(f.slices) }

// meanWork of a job on the reference; the slices are half as fast.
const meanWork = 20 * time.Minute

// Next gives the next job: at once while there are too few, else a little later.
func (s *stream) Next(j *workload.Job) (bool, error) {
	f := s.fleet
	at := quantity.Instant(epoch).Add(time.Second)
	if f.Sim != nil {
		at = max(at, f.Now())
		if f.Live() >= s.target {
			at = at.Add(16 * s.spacing)
		} else if s.number > int64(s.target) {
			at = at.Add(s.spacing / 4)
		}
	}
	*j = shape(s.number, at)
	s.number++
	return true, nil
}

// shape is the job of a number: items and chains of three sizes, two profiles of memory and five lengths, for four queues.
func shape(n int64, at quantity.Instant) workload.Job {
	draw := prng.New(1, uint64(n))
	j := workload.Job{
		Number: n, Queue: queueName(draw.IntN(queues)), Submit: at, Kind: job.Steps, Slices: 1, Units: 1000, Grid: 10, Parallelism: 1,
		Restore: 5 * time.Second, Checkpoint: 3 * time.Second, Theta: 10_000,
		Work: meanWork * time.Duration(6+draw.IntN(5)*2) / 10,
	}
	if draw.IntN(2) == 0 {
		j.Kind, j.Parallelism, j.Restore, j.Checkpoint = job.Items, 1+draw.IntN(2), 0, 0
	}
	j.Units *= int64(1 + draw.IntN(3))
	j.Declared = j.Work
	most := 12 << 30 // some fit on small slices alone at the beginning of their work
	if draw.IntN(3) == 0 {
		most = 24 << 30
	}
	for i := range int64(4) {
		mean := quantity.Amount(most) * quantity.Amount(5+i) / 8
		j.Profile.Phases = append(j.Profile.Phases, trp.Phase{UpTo: j.Units * (i + 1) / 4, Mean: mean, SD: mean / 50})
	}
	j.Profile.Form = trp.Phases
	j.Memory = workload.Memory{Seed: uint64(n), Phases: j.Profile.Phases}
	return j
}
