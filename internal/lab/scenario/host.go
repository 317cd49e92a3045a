package scenario

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/workload"
)

// Host is a scheduler that owns the slices. The work offered to the mechanisms are fillers: they have what the host leaves, and give
// it back when the host wants it.
type Host struct {
	// Planner is its name, Notice how long ahead the host says that it takes a slice which no plan of its has foretold.
	Planner string
	Notice  time.Duration
	// Walltimes says whether its planner knows how long jobs may run. Without, it foretells nothing but by the calendar.
	Walltimes bool
	// Least is the shortest walltime that time-min asks for.
	Least time.Duration
	// Streams are its work, which is never cut. It lies on the slices that no reservation names; those are held by the calendar.
	Streams []Stream
}

// host reads the host of a scenario, if it has one.
func (s *Scenario) host(v strict.Value) {
	if !v.Given() {
		return
	}
	o := v.Object("planner", "notice", "walltimes", "timeMin", "synthetic", "compose")
	h := &Host{
		Planner: o.Get("planner").Text("a planner such as easy", "easy"),
		Notice:  o.Get("notice").Duration(0, time.Hour, 30*time.Second),
		Least:   o.Get("timeMin").Duration(time.Second, MaxSpan, 10*time.Minute),
	}
	h.Walltimes = o.Get("walltimes").Choice("declared", "none") == 0
	h.Streams = s.streams(o)
	for i := range h.Streams {
		h.Streams[i].Options.Atomizable = 0
	}
	if w := s.Window; w.Until == quantity.Never || w.Limit == quantity.Never {
		v.Wrong("needs a window with until and limit: the backlog of its fillers is never empty")
	}
	for i := range s.Reservations {
		r := &s.Reservations[i]
		r.Truncate = true // the host owns its slices
		if r.Start < r.At.Add(h.Notice) {
			v.Wrong("has a notice of %s, and the reservation of %s from %s on is announced at %s; announce it earlier", h.Notice, r.Slice, time.Duration(r.Start), time.Duration(r.At))
			break
		}
	}
	s.Host = h
}

// hostLog plays the host's own work once, for all mechanisms.
func (s *Scenario) hostLog(ctx context.Context, w *world, seed uint64, data *Traces, kind *planner.Kind) (hostwork.Log, error) {
	log := make(hostwork.Log, s.slices())
	number, site := 0, hostwork.Site{Notice: s.Host.Notice, Until: s.Window.Limit}
	machines := planner.Cluster{Classes: w.machines.Classes}
	for i := range s.Nodes {
		n := planner.Node{Name: string(s.Nodes[i].ID)}
		for j := range s.Nodes[i].Slices {
			if hours := s.hours(s.Nodes[i].Slices[j].ID); hours != nil {
				log[number] = hostwork.Calendar(hours, s.Window.Limit)
			} else {
				n.Devices = append(n.Devices, w.machines.Nodes[i].Devices[j])
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
	tasks := tasks{judge{classes: w.classes}, false, s.Queues}
	site.Task = func(j *workload.Job, t *cluster.Task) error {
		if !s.Host.Walltimes {
			j.Declared = 0
		}
		return tasks.task(j, t)
	}
	from, err := s.offerOf(ctx, s.Host.Streams, s.hostClasses(machines), seed^hostApart, data)
	if err != nil {
		return nil, err
	}
	return log, log.Place(ctx, site, from)
}

// hostApart keeps the draws of the host's work apart from those of the fillers.
const hostApart = 1 << 48

// hours are the reservations of a slice; nil if there are none.
func (s *Scenario) hours(id job.SliceID) (out []hostwork.Hours) {
	for i := range s.Reservations {
		if r := &s.Reservations[i]; r.Slice == id {
			out = append(out, hostwork.Hours{At: r.At, From: r.Start, To: r.End, Every: r.Every})
		}
	}
	return out
}

// leftover is the observer of what is made of the host's gaps.
func (s *Scenario) leftover(w *world) *measure.Leftover {
	var weights []int64
	for i := range s.Nodes {
		for j := range s.Nodes[i].Slices {
			weights = append(weights, w.classes[w.machines.Nodes[i].Devices[j]].Speed)
		}
	}
	window := w.window(s)
	return measure.NewLeftover(window, weights, w.host.Gaps(window.From, window.To), w.host.Starts(), w.least)
}

// cost is the least that one of the fillers spends on starting, restoring and leaving a checkpoint.
func cost(j *workload.Job) time.Duration { return j.Startup + j.Restore + j.Checkpoint }

// hostOf finds the planner of the scenario's host; nil where it has none.
func (t Table) hostOf(s *Scenario) (*planner.Kind, error) {
	if s.Host == nil {
		return nil, nil
	}
	var names []string
	for i := range t.Planners {
		k := &t.Planners[i]
		if k.Name == s.Host.Planner && !k.Preempts {
			return k, nil
		}
		if !k.Preempts {
			names = append(names, k.Name)
		}
	}
	return nil, errkind.Errorf(errkind.Invalid, "host: there is no planner %q that stops nothing; %s", s.Host.Planner, strict.Hint(s.Host.Planner, names))
}
