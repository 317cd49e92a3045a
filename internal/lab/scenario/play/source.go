package play

import (
	"context"
	"fmt"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

// offered is the workload of a scenario under one seed: the explicit jobs and the streams, merged by submission and
// numbered anew. At the same instant explicit jobs come first, then the streams in their order.
type offered struct {
	parts []part
	until quantity.Instant
	next  int64
	// agents bid for jobs, for which by the seed.
	agents []scenario.Agents
	seed   uint64
	// only keeps the jobs of one kind; 0 for all.
	only job.Kind
	// named are the explicit jobs among those given so far, by number.
	named map[int64]string
}

// part is one source with its next job.
type part struct {
	of    workload.Source
	ahead workload.Job
	dry   bool
	names *explicit // where it is the explicit jobs
}

// offer opens the workload for a seed. It ends in an error when ctx does, also where it looks through arrivals without end.
func offer(ctx context.Context, s *scenario.Scenario, seed uint64, data *Traces) (*offered, error) {
	o := &offered{until: s.Window.Until, agents: s.Workload.Agents, seed: seed, named: map[int64]string{}}
	if len(s.Workload.Jobs) > 0 {
		e := &explicit{jobs: s.Workload.Jobs, seed: seed}
		o.parts = append(o.parts, part{of: e, names: e})
	}
	return o, addStreams(ctx, s, o, s.Workload.Streams, composeClasses(s), seed, data)
}

// offerOf opens streams alone, on these classes of slices.
func offerOf(ctx context.Context, s *scenario.Scenario, streams []scenario.Stream, classes []compose.Class, seed uint64, data *Traces) (
	*offered, error) {
	o := &offered{until: s.Window.Until, seed: seed}
	return o, addStreams(ctx, s, o, streams, classes, seed, data)
}

// addStreams opens streams and pulls the first job of every part.
func addStreams(ctx context.Context, s *scenario.Scenario, o *offered, streams []scenario.Stream, classes []compose.Class, seed uint64,
	data *Traces) error {
	list, err := openStreams(ctx, s, streams, classes, seed, data)
	if err != nil {
		return err
	}
	for _, x := range list {
		o.parts = append(o.parts, part{of: x})
	}
	for i := range o.parts {
		if err := o.parts[i].pull(); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) pull() error {
	more, err := p.of.Next(&p.ahead)
	p.dry = !more
	if err != nil {
		return fmt.Errorf("the work offered: %w", err)
	}
	return nil
}

// Next implements workload.Source.
func (o *offered) Next(j *workload.Job) (bool, error) {
	for {
		more, err := o.take(j)
		if !more || err != nil || o.only == 0 || j.Kind == o.only {
			return more, err
		}
	}
}

func (o *offered) take(j *workload.Job) (bool, error) {
	var first *part
	for i := range o.parts {
		if p := &o.parts[i]; !p.dry && (first == nil || p.ahead.Submit < first.ahead.Submit) {
			first = p
		}
	}
	if first == nil || first.ahead.Submit > o.until {
		return false, nil
	}
	*j = first.ahead
	j.Number = o.next
	if first.names != nil {
		o.named[o.next] = first.names.jobs[first.ahead.Number].Name
	}
	o.assign(j)
	o.next++
	return true, first.pull()
}

// explicit gives the jobs that are written out.
type explicit struct {
	jobs []scenario.Job
	seed uint64
	next int
}

// Next implements workload.Source.
func (e *explicit) Next(j *workload.Job) (bool, error) {
	if e.next == len(e.jobs) {
		return false, nil
	}
	*j = e.jobs[e.next].Job
	s := prng.New(e.seed, j.Memory.Seed)
	j.Memory.Seed = s.Uint64()
	e.next++
	return true, nil
}

// assign says who bids for a job: as it says itself in its group, else as the shares have it. The jobs of a smaller share
// are among those of a larger one.
func (o *offered) assign(j *workload.Job) {
	if len(o.agents) == 0 {
		return
	}
	if j.Kind == job.Rigid {
		j.Group = ""
		return
	}
	if j.Group == "" {
		j.Group = scenario.Own
		draw := prng.New(o.seed, prng.Name("agents"), uint64(j.Number))
		at := int64(draw.IntN(scenario.AllShares))
		for i := range o.agents {
			if at -= o.agents[i].Share; at < 0 {
				j.Group = o.agents[i].Name
				break
			}
		}
	}
	j.External = j.Group != scenario.Own
}
