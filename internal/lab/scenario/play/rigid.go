package play

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/sim/rigid"
	"sluice.dev/sluice/internal/lab/workload"
)

// playable says why a mechanism can't play s, if so. Planners place rigid blocks on slices that are always there, whosever they are.
func playable(s *scenario.Scenario, m *Mechanism) error {
	if s.Pools != nil && (m.Policy == nil || m.Flow != nil) {
		return fmt.Errorf("mechanism %s: it knows nothing of machines that come and go, and scenario %s has pools; run sja or jasda",
			m.Name, s.Name)
	}
	if m.Planner == nil && m.Filler == nil {
		return nil
	}
	for i := range s.Queues {
		if q := &s.Queues[i]; q.Cap+q.MaxJobs > 0 {
			return fmt.Errorf("mechanism %s: planners know no limits of queues, and queue %s has some; run sja alone, or leave out cap "+
				"and maxJobs", m.Name, q.Name)
		}
	}
	if s.Memory != nil {
		return fmt.Errorf("mechanism %s: it knows nothing of its hosts' memory, which scenario %s has run out; run sja, jasda or laminar",
			m.Name, s.Name)
	}
	if s.Host != nil {
		return fillable(s, m)
	}
	if s.Guests != nil {
		return fmt.Errorf("mechanism %s: planners know nothing of guests, and scenario %s has some; run sja alone, or take them out "+
			"with --set cluster.guests=[]", m.Name, s.Name)
	}
	if len(s.Reservations)+len(s.Faults) > 0 {
		return fmt.Errorf("mechanism %s: planners know no reservations and no faults, and scenario %s has some; run sja alone, or take "+
			"them out with --set cluster.reservations=[] --set faults=[]", m.Name, s.Name)
	}
	return nil
}

// playPlanner plays the scenario under a planner, which runs every job as one block. It returns how far it came and whether
// all jobs were over then.
func playPlanner(ctx context.Context, on stage) (quantity.Instant, bool, error) {
	s := on.scenario
	p, err := on.mechanism.Planner.New(planner.Options{
		Cluster: on.world.machines, Seed: on.seed, Typical: on.world.typical,
		Restore: s.Settings.Restore, Checkpoint: s.Settings.Checkpoint,
	})
	if err != nil {
		return 0, false, fmt.Errorf("planner %s: %w", on.mechanism.Name, err)
	}
	source := workload.Source(on.from)
	if s.Settings.StopAll {
		source = charged{on.from, &s.Settings}
	}
	tasks := &tasks{judge{classes: on.world.classes}, s.Settings.StopAll, s.Queues}
	world, err := rigid.New(rigid.Options{
		Actor: cluster.New(on.world.machines, p), Machines: on.world.machines,
		Source: source, Task: tasks.task, Observer: on.to, Progress: on.progress,
	})
	if err != nil {
		return 0, false, err
	}
	over, err := world.Run(ctx, s.Window.Limit)
	if err != nil && ctx.Err() == nil {
		return world.Now(), false, err
	}
	return world.Now(), over, nil
}

// charged has rigid jobs that say nothing of it pay what a preemption costs, where they may be stopped too.
type charged struct {
	workload.Source
	costs *scenario.Settings
}

// Next implements workload.Source.
func (c charged) Next(j *workload.Job) (bool, error) {
	more, err := c.Source.Next(j)
	if more && j.Kind == job.Rigid && j.Restore+j.Checkpoint == 0 {
		j.Restore, j.Checkpoint = c.costs.Restore, c.costs.Checkpoint
	}
	return more, err
}

// tasks turns jobs into what planners see: a block on the slices where its declared profile is safe from beginning to end,
// with the run time that its owner declares for each. What a block starts with counts to it.
type tasks struct {
	judge
	stopAll bool
	queues  []protocol.Queue
}

// weight of a queue: 1 of one that only jobs name.
func (k *tasks) weight(name string) int64 {
	for i := range k.queues {
		if k.queues[i].Name == name {
			return k.queues[i].Weight
		}
	}
	return 1
}

func (k *tasks) task(j *workload.Job, t *cluster.Task) error {
	spec, err := k.Spec(j, "task")
	if err != nil {
		return err
	}
	t.Devices, t.Share, t.Spread = int32(j.Slices), planner.Whole, j.Slices > 1
	t.Weight = k.weight(j.Queue)
	t.Classes, t.Fixed = uint32(k.whole(spec)), j.Kind == job.Rigid && !k.stopAll
	if j.Declared == 0 {
		t.Run = nil // a rigid job without a walltime
		return nil
	}
	for c, class := range k.classes {
		speed := spec.SpeedOn(class.Name, class.Speed)
		if speed == 0 {
			continue
		}
		t.Run[c] = time.Duration(min(quantity.MulDiv(int64(j.Declared), 1000, speed), int64(longest)))
		if j.Kind != job.Rigid {
			t.Run[c] += j.Startup
		}
	}
	return nil
}

// longest planned time: 50 years.
const longest = 50 * 365 * 24 * time.Hour
