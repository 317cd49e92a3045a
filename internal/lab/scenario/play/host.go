package play

import (
	"context"
	"fmt"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
)

// hostLog plays the host's own work once, for all mechanisms.
func hostLog(ctx context.Context, s *scenario.Scenario, l *layout, seed uint64, data *Traces, kind *planner.Kind) (hostwork.Log, error) {
	if s.Host.Log != nil {
		if len(s.Host.Log) != s.Slices() {
			return nil, fmt.Errorf("the host's log is of %d slices and the cluster has %d: give one list of stays for each slice",
				len(s.Host.Log), s.Slices())
		}
		return s.Host.Log, nil
	}
	log := make(hostwork.Log, s.Slices())
	number, site := 0, hostwork.Site{Notice: s.Host.Notice, Until: s.Window.Limit}
	machines := planner.Cluster{Classes: l.machines.Classes}
	for i := range s.Nodes {
		n := planner.Node{Name: string(s.Nodes[i].ID)}
		for j := range s.Nodes[i].Slices {
			if hours := hours(s, s.Nodes[i].Slices[j].ID); hours != nil {
				log[number] = hostwork.Calendar(hours, s.Window.Limit)
			} else if s.Host.Gaps != nil {
				draw := prng.New(seed, hostApart, uint64(number))
				log[number] = hostwork.Drawn(&draw, hostwork.Turns{Gap: s.Host.Gaps, Stay: s.Host.Stays, Notice: s.Host.Notice,
					Untold: !s.Host.Walltimes, Until: s.Window.Limit})
			} else {
				n.Devices = append(n.Devices, l.machines.Nodes[i].Devices[j])
				site.Slices = append(site.Slices, number)
			}
			number++
		}
		machines.Nodes = append(machines.Nodes, n)
	}
	if len(site.Slices) == 0 || len(s.Host.Streams) == 0 {
		return log, nil
	}
	p, err := kind.New(planner.Options{Cluster: machines, Seed: seed})
	if err != nil {
		return nil, fmt.Errorf("the host's planner %s: %w", kind.Name, err)
	}
	site.Actor, site.Machines = cluster.New(machines, p), machines
	tasks := tasks{judge{classes: l.classes}, false, s.Queues}
	site.Task = func(j *workload.Job, t *cluster.Task) error {
		if !s.Host.Walltimes {
			j.Declared = 0
		}
		return tasks.task(j, t)
	}
	from, err := offerOf(ctx, s, s.Host.Streams, hostClasses(s, machines), seed^hostApart, data)
	if err != nil {
		return nil, err
	}
	return log, log.Place(ctx, site, from)
}

// hostApart keeps the draws of the host's work apart from those of the fillers.
const hostApart = 1 << 48

// hours are the reservations of a slice; nil if there are none.
func hours(s *scenario.Scenario, id job.SliceID) (out []hostwork.Hours) {
	for i := range s.Reservations {
		if r := &s.Reservations[i]; r.Slice == id {
			out = append(out, hostwork.Hours{At: r.At, From: r.Start, To: r.End, Every: r.Every})
		}
	}
	return out
}
