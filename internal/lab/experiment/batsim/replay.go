// Package batsim checks the backfilling planners against the Batsim simulator: the same 801 jobs on 32 hosts, start by
// start. The reference is the example medium_late of the evalys project, runs of Batsim's EASY and conservative schedulers.
package batsim

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/planner"
)

// Job is one job of the reference. Times are since the zero of its run.
type Job struct {
	ID string
	// Submitted and Started as published; Requested is what the scheduler saw, Execution what the job really took.
	Submitted, Started, Requested, Execution time.Duration
	Hosts                                    int32
}

// Machine is what the jobs run on.
type Machine uint8

const (
	// Loose hosts: a job takes any that are free, and a planner may count them.
	Loose Machine = iota
	// Named hosts: they are the devices of one node whose processors are counted too, which makes planners keep their plans
	// host by host. Every job asks for less than there is, so that nothing else differs.
	Named
)

// Replay runs the jobs on a number of hosts under one kind of planner and returns when each starts, by position. A job that
// is never started has -1. Jobs are submitted in the order of their instants, and of equal instants as listed.
func Replay(jobs []Job, hosts int, on Machine, kind planner.Kind) ([]time.Duration, error) {
	machines := cluster.Machines{Classes: []planner.Class{{Name: "host", Weight: planner.Whole}}}
	switch on {
	case Loose:
		machines.Nodes = slices.Repeat([]planner.Node{{Devices: []uint8{0}}}, hosts)
	case Named:
		machines.Nodes = []planner.Node{{CPU: int64(hosts), Devices: make([]uint8, hosts)}}
	}
	p, err := kind.New(planner.Options{Cluster: machines})
	if err != nil {
		return nil, err
	}
	r := replay{jobs: jobs, on: on, cluster: cluster.New(machines, p), started: make([]time.Duration, len(jobs))}
	for i := range jobs {
		r.started[i] = -1
		r.due = append(r.due, due{quantity.Instant(jobs[i].Submitted), i, false})
	}
	r.run()
	return r.started, nil
}

// replay is a list of what is due, sorted anew by insertion: some hundred jobs need no heap.
type replay struct {
	jobs    []Job
	on      Machine
	cluster *cluster.Cluster
	due     []due
	started []time.Duration
}

type due struct {
	at   quantity.Instant
	job  int
	ends bool
}

func (r *replay) run() {
	slices.SortStableFunc(r.due, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	var out cluster.Out
	for len(r.due) > 0 {
		now := r.due[0].at
		for len(r.due) > 0 && r.due[0].at == now {
			r.feed(now, r.due[0], &out)
			r.due = r.due[1:]
		}
		r.cluster.Step(now, cluster.Tick(), &out)
		for _, e := range out.Effects {
			if e.Verb == cluster.Start {
				r.started[e.Task] = time.Duration(now)
				r.push(due{now.Add(r.jobs[e.Task].Execution), int(e.Task), true})
			}
		}
		out.Reset()
	}
}

func (r *replay) feed(now quantity.Instant, d due, out *cluster.Out) {
	if d.ends {
		r.cluster.Step(now, cluster.End(cluster.ID(d.job), cluster.Finished), out)
		return
	}
	j := &r.jobs[d.job]
	run := new([planner.MaxClasses]time.Duration)
	run[0] = j.Requested
	t := cluster.Task{ID: cluster.ID(d.job), Devices: j.Hosts, Share: planner.Whole, Classes: 1, Run: run}
	switch r.on {
	case Loose:
		t.Spread = true
	case Named:
		t.CPU = 1
	}
	r.cluster.Step(now, cluster.Arrive(t), out)
}

// push puts d behind what is due at the same instant or before.
func (r *replay) push(d due) {
	i, _ := slices.BinarySearchFunc(r.due, d.at+1, func(e due, at quantity.Instant) int { return cmp.Compare(e.at, at) })
	r.due = slices.Insert(r.due, i, d)
}
