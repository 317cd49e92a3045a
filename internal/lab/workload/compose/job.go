package compose

import (
	"fmt"
	"math"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/workload"
)

// composer makes jobs of arrivals. What it draws for one is keyed by the seed, what the draw is for and the job.
type composer struct {
	in      Inputs
	o       Options
	classes []bound.Class
	speeds  [][]job.SpeedOn // by program, shared by its jobs
}

func newComposer(in Inputs, o Options) *composer {
	c := &composer{in: in, o: o}
	for _, class := range o.Classes {
		c.classes = append(c.classes, class.Class)
	}
	for i := range in.Programs {
		var on []job.SpeedOn
		for _, class := range o.Classes {
			if class.Compute > 0 {
				on = append(on, job.SpeedOn{Profile: class.Name, Permille: in.Programs[i].Speeds[class.Compute]})
			}
		}
		c.speeds = append(c.speeds, on)
	}
	return c
}

// job composes the copy-th job of an arrival; it leaves Number and Submit alone.
func (c *composer) job(a *workload.Arrival, copy uint64, j *workload.Job) {
	draw := func(what string) prng.Stream { return prng.New(c.o.Seed, prng.Name(what), a.Key, copy) }
	s := draw("program")
	program := s.IntN(len(c.in.Programs))
	s = draw("shape")
	shape := &c.in.Shapes[s.IntN(len(c.in.Shapes))]

	work := a.Duration
	if c.o.Cap > 0 {
		work = min(work, c.o.Cap)
	}
	units := max(1, int64((work+c.o.Grain-1)/c.o.Grain))
	*j = workload.Job{
		Number: j.Number, Submit: j.Submit, Queue: a.Queue, Kind: job.Rigid, Slices: 1, Units: units, Grid: 1, Parallelism: 1,
		Work: work, Restore: c.o.Restore, Checkpoint: c.o.Checkpoint, Startup: c.o.Startup,
		Speeds: c.speeds[program], Theta: c.o.Theta,
	}
	if c.o.Multi == Gang {
		j.Slices = a.GPUs
	}
	if s = draw("kind"); s.Float64() < c.o.Atomizable && j.Slices == 1 {
		j.Kind = job.Steps
	}

	if j.Kind == job.Steps && c.o.Saves > 0 {
		j.Process.Saves = max(1, (int64(c.o.Saves)+int64(c.o.Grain)-1)/int64(c.o.Grain))
	}

	if c.o.Templates > 0 {
		s = draw("template")
		j.Template = fmt.Sprintf("t%d", 1+s.IntN(c.o.Templates))
	}
	j.Process.Resident = c.o.Resident && j.Kind == job.Steps

	s = draw("burst")
	noise := float64(c.o.Noise) / 1000
	peak := c.in.Programs[program].Peak
	if a.Memory > 0 {
		peak = a.Memory
	}
	j.Memory.Phases = phases(shape, units, peak, noise, s.Float64())
	s = draw("memory")
	j.Memory.Seed = s.Uint64()
	j.Profile = trp.Profile{Form: trp.Phases, Phases: j.Memory.Phases}
	if e := c.o.MemoryError; e != (Error{}) {
		f, sd := e.factor(draw("memory error")), math.Hypot(noise, e.Sigma)
		j.Profile.Phases = make([]trp.Phase, len(j.Memory.Phases))
		for i, p := range j.Memory.Phases {
			mean := math.Min(float64(p.Mean)*f, float64(trp.MaxAmount))
			j.Profile.Phases[i] = trp.Phase{UpTo: p.UpTo, Mean: quantity.Amount(mean),
				SD: quantity.Amount(min(mean*sd, float64(trp.MaxAmount)))}
		}
	}

	declared := float64(work) * c.o.TimeError.factor(draw("time error"))
	if a.Walltime > 0 && j.Kind == job.Rigid {
		declared = float64(a.Walltime)
		if c.o.Cap > 0 {
			declared = min(declared, float64(c.o.Cap))
		}
	}
	j.Declared = max(1, time.Duration(min(declared, float64(longest))))
	if j.Kind == job.Rigid {
		j.Declared = max(j.Declared, work) + c.o.Startup
	}
}

// due is how long after its submission a job has its deadline; 0 without one.
func (c *composer) due(a *workload.Arrival, copy uint64, j *workload.Job) time.Duration {
	d := c.o.Deadlines
	s := prng.New(c.o.Seed, prng.Name("deadline"), a.Key, copy)
	if s.Float64() >= d.Share {
		return 0
	}
	return max(1, time.Duration(min((d.Least+(d.Most-d.Least)*s.Float64())*float64(j.Work), float64(longest))))
}

// longest time that is declared: 50 years.
const longest = 50 * 365 * 24 * time.Hour

func (e Error) factor(s prng.Stream) float64 {
	if e == (Error{}) {
		return 1
	}
	return math.Exp(e.Bias + e.Sigma*s.Normal())
}

// phases lays a shape over so many units: it warms up, is steady, bursts for at least one unit at a place between the end of
// the warm-up and the end of the job that u, from [0, 1), picks, and is steady again. Parts shorter than half a unit are left
// out, but the burst is always there.
func phases(shape *workload.Shape, units int64, peak quantity.Amount, noise, u float64) []trp.Phase {
	share := func(permille int64) int64 { return (units*permille + 500) / 1000 }
	burst := max(1, share(shape.BurstShare))
	warm := min(share(shape.WarmShare), units-burst)
	start := warm + int64(u*float64(units-burst-warm+1))
	level := func(permille int64) quantity.Amount { return quantity.Amount(int64(peak) / 1000 * permille) }
	list := make([]trp.Phase, 0, 4)
	for _, p := range [...]struct {
		upTo, permille int64
	}{{warm, shape.Warm}, {start, shape.Steady}, {start + burst, 1000}, {units, shape.Steady}} {
		last := int64(0)
		if len(list) > 0 {
			last = list[len(list)-1].UpTo
		}
		if p.upTo > last {
			mean := level(p.permille)
			list = append(list, trp.Phase{UpTo: p.upTo, Mean: mean, SD: quantity.Amount(float64(mean) * noise)})
		}
	}
	return list
}

// often is the quantile of a normal distribution that 99% of the runs stay below, in deviations.
const often = 2.3263

// offered is the job as the capacity of the cluster is reckoned with: cut at will, each phase wherever its true memory fits
// in 99% of the runs. fits is false if there is no place for all of it.
func (c *composer) offered(j *workload.Job) (b bound.Job, fits bool) {
	b = bound.Job{Submit: j.Submit, Width: j.Slices}
	from := int64(0)
	for _, p := range j.Memory.Phases {
		need := p.Mean + quantity.Amount(often*float64(p.SD))
		part := bound.Part{Work: time.Duration(quantity.MulDiv(int64(j.Work)*int64(j.Slices), p.UpTo-from, j.Units))}
		room := 0
		for i, class := range c.classes {
			if need > class.Memory {
				continue
			}
			part.Speeds[i] = class.Speed
			for _, on := range j.Speeds {
				if on.Profile == class.Name {
					part.Speeds[i] = on.Permille
				}
			}
			if part.Speeds[i] > 0 {
				room += class.Count
			}
		}
		if room < j.Slices {
			return b, false
		}
		b.Parts = append(b.Parts, part)
		from = p.UpTo
	}
	return b, true
}
