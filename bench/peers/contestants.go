package main

import (
	"time"

	"sluice.dev/sluice/bench/placement"
	"sluice.dev/sluice/internal/core/arrangement"
)

// contestant is a scheduler with one kind of work. Batch is how many asks it is given at once, what it is fastest with.
type contestant struct {
	name     string
	ours     bool
	work     func() placement.Work
	workName string
	batch    int
	make     func(placement.Work, int) (scheduler, error)
	// alone runs one that takes asks as they come.
	alone func(placement.Work, int) (result, error)
}

func (c *contestant) run(nodes int) (result, error) {
	work := c.work()
	if c.alone != nil {
		return c.alone(work, nodes)
	}
	s, err := c.make(work, nodes)
	if err != nil {
		return result{}, err
	}
	defer s.close()
	return churn(s, work, nodes, c.batch)
}

// contestants by kind of work. How many asks at once is what each is fastest with.
var contestants = append(of("four size classes", placement.Mixed), of("one size", placement.Alike)...)

func of(name string, work func() placement.Work) []contestant {
	list := []contestant{
		{name: "Sluice's search (core/federation/flow)", ours: true, batch: 1, alone: flowAlone},
		{name: "Sluice, everything (laminar)", ours: true, batch: 1, alone: everything},
		{name: "YuniKorn core 1.8.0", batch: 1000, make: func(w placement.Work, nodes int) (scheduler,
			error) {
			return newYunikorn(w, nodes)
		}},
		{name: "Nomad scheduler 1.10.0", batch: 1000, make: func(w placement.Work, nodes int) (scheduler,
			error) {
			return newNomad(w, nodes)
		}},
	}
	for i := range list {
		list[i].work, list[i].workName = work, name
	}
	return list
}

// flowAlone is core/federation/flow without messages: everything of a task from its draw to its lease, its end and its part of the digests.
func flowAlone(work placement.Work, nodes int) (r result, err error) {
	f, err := placement.NewFlow(work, nodes, load)
	if err != nil {
		return r, err
	}
	f.Warm()
	wall, cpu := time.Now(), processor()
	for processor()-cpu < enough {
		for range 100 {
			f.Tick()
		}
	}
	return result{Placed: f.Placed, Failed: f.Expired, Wall: time.Since(wall), CPU: processor() - cpu}, nil
}

// everything is what gate, zones and nodes do for a job from its submission until it is forgotten, with facts made and applied.
func everything(work placement.Work, nodes int) (r result, err error) {
	a, err := placement.NewActors(work, arrangement.Laminar, nodes, load)
	if err != nil {
		return r, err
	}
	a.Warm()
	wall, cpu := time.Now(), processor()
	for processor()-cpu < enough {
		a.Tick()
	}
	return result{Placed: a.Leased, Failed: a.Submitted - a.Leased, Wall: time.Since(wall), CPU: processor() - cpu}, nil
}
