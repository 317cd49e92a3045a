// Package synthetic makes workloads without a download: arrivals, durations, programs and memory that have the statistics
// which papers and traces publish. Every default says whose numbers it has. A distribution is a value; what it draws is a
// function of the stream it is given.
package synthetic

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// Jobs is a generator of arrivals; the zero value of a field has the default that is named there.
type Jobs struct {
	Seed uint64
	// Process of arrivals; default Philly().
	Process Process
	// Diurnal is the rate at the busiest hour over that at the calmest; up to 1 is a flat day, the default. 9 is Venus, one
	// of the Helios clusters: .9 GPU jobs in ten minutes at 6 h, 8.3 at 16 to 17 h (SC'21).
	Diurnal float64
	// Durations on whole GPUs; default PhillySingles(), for jobs of more GPUs have their own (see GPUs).
	Durations Duration
	// GPUs of a job; default one. PhillyGPUs is the alternative with published shares.
	GPUs []Weight
	// Queues are named vc0, vc1, ...; a job is of one of them with equal chance. Default 1.
	Queues int
	// Count of jobs; 0 is without end.
	Count int64
}

// Weight of a number of GPUs. If Scale is above 0 the duration of such a job is drawn from it instead.
type Weight struct {
	GPUs   int
	Weight float64
	Scale  Duration
}

// PhillyGPUs is the mix of sizes of the Philly trace, September and October 2017: 50,188, 904, 945, 713 and 99 jobs of
// 1, 2, 4, 8 and 16 or more GPUs. Large jobs run longer: the published medians are 17,430, 23,680 and 52,550 s for 4, 8 and
// 16; the deviation of the logarithm is that of all jobs, 2.02. (The published median of 2 GPUs, 21 s, is an anomaly; they
// are drawn as those with one.)
func PhillyGPUs() []Weight {
	long := func(median time.Duration) Duration { return LogNormal{Median: median, Sigma: 2.02} }
	return []Weight{
		{1, 50188, nil}, {2, 904, nil}, {4, 945, long(17430 * time.Second)},
		{8, 713, long(23680 * time.Second)}, {16, 99, long(52550 * time.Second)},
	}
}

// Open starts the stream from its beginning.
func (g Jobs) Open() workload.Arrivals {
	if g.Process == nil {
		g.Process = Philly()
	}
	if g.Durations == nil {
		g.Durations = PhillySingles()
	}
	if len(g.GPUs) == 0 {
		g.GPUs = []Weight{{GPUs: 1, Weight: 1}}
	}
	if g.Queues < 1 {
		g.Queues = 1
	}
	o := &opened{g: g, clock: g.Process.Start(prng.New(g.Seed, prng.Name("arrivals"))), day: newDay(g.Diurnal)}
	for i := range g.Queues {
		o.queues = append(o.queues, queueName(i))
	}
	return o
}

type opened struct {
	g      Jobs
	clock  Clock
	day    day
	queues []string
	n      int64
	flat   float64 // seconds before the day is bent
}

// Next draws the next job. What is drawn for one is keyed by its number, so that a change of one distribution does not
// change what the others give.
func (o *opened) Next(a *workload.Arrival) (bool, error) {
	if o.g.Count > 0 && o.n == o.g.Count {
		return false, nil
	}
	o.flat += o.clock.Gap()
	s := prng.New(o.g.Seed, prng.Name("job"), uint64(o.n))
	*a = workload.Arrival{Key: uint64(o.n), Submit: quantity.Instant(o.day.bend(o.flat) * 1e9)}
	w := pick(o.g.GPUs, s.Float64())
	a.GPUs = w.GPUs
	a.Queue = o.queues[s.IntN(len(o.queues))]
	d := o.g.Durations
	if w.Scale != nil {
		d = w.Scale
	}
	a.Duration = max(d.Draw(&s), time.Millisecond)
	o.n++
	return true, nil
}

// pick is the weight that u, uniform over [0, 1), falls on.
func pick(list []Weight, u float64) Weight {
	sum := 0.
	for _, w := range list {
		sum += w.Weight
	}
	u *= sum
	for _, w := range list[:len(list)-1] {
		if u < w.Weight {
			return w
		}
		u -= w.Weight
	}
	return list[len(list)-1]
}
