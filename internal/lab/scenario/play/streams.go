package play

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

// openStreams opens generated and composed work for these classes of slices. Every stream draws from its own seed.
func openStreams(ctx context.Context, s *scenario.Scenario, streams []scenario.Stream, classes []compose.Class, seed uint64, data *Traces) (
	[]opened, error) {
	out := make([]opened, 0, len(streams))
	for i := range streams {
		t := &streams[i]
		in, err := inputs(t, data)
		if err != nil {
			return nil, err
		}
		arrivals := in.Arrivals
		in.Arrivals = func(seed uint64) workload.Arrivals { return &stoppable{of: arrivals(seed), stopped: ctx.Err} }
		o := t.Options
		o.Classes, o.Seed = classes, seed+uint64(i)*streamApart
		if o.Theta == 0 {
			o.Theta = s.Settings.Theta
		}
		if o.Jobs == 0 && s.Window.Until != quantity.Never {
			o.Window = time.Duration(s.Window.Until)
		}
		x, err := compose.New(in, o)
		if err != nil {
			return nil, errkind.Errorf(errkind.Of(err), "stream %d of the workload: %w", i+1, err)
		}
		out = append(out, opened{x, t, in.Counts})
	}
	return out, nil
}

// streamApart keeps the seeds of streams apart.
const streamApart = 1 << 32

func inputs(t *scenario.Stream, data *Traces) (compose.Inputs, error) {
	if t.Generator != nil {
		return compose.Generated(*t.Generator), nil
	}
	return data.inputs(t)
}

// stoppable are arrivals that end in an error soon after they are stopped: who looks through them may find no job for ever.
type stoppable struct {
	of      workload.Arrivals
	stopped func() error
	n       int
}

// Next implements workload.Arrivals.
func (w *stoppable) Next(a *workload.Arrival) (bool, error) {
	if w.n++; w.n%4096 == 0 {
		if err := w.stopped(); err != nil {
			return false, errkind.Errorf(errkind.Unavailable, "stopped after %d arrivals: %w", w.n, err)
		}
	}
	return w.of.Next(a)
}

// opened is a stream under one seed. Its jobs go to the stream's queue and have its kind of agent, where it names one.
type opened struct {
	*compose.Source
	of *scenario.Stream
	// counts of its file of arrivals.
	counts []compose.Count
}

// Next implements workload.Source.
func (x opened) Next(j *workload.Job) (bool, error) {
	more, err := x.Source.Next(j)
	if x.of.Queue != "" {
		j.Queue = x.of.Queue
	} else if j.Queue != "" && !job.ValidName(j.Queue) {
		j.Queue = queueName(j.Queue)
	}
	j.Group = x.of.Agent
	return more, err
}

// queueName is a name for a queue that a trace calls as it likes: in lower case, and where that is not enough with a digest of
// what it was called, so that no two are one.
func queueName(s string) string {
	if lower := strings.ToLower(s); job.ValidName(lower) {
		return lower
	}
	near := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	return fmt.Sprintf("%s-%08x", strings.Trim("q"+near[:min(len(near), 50)], "-"), uint32(digest.Key(s)))
}

// composeClasses are the classes of the cluster with how much of a GPU each is.
func composeClasses(s *scenario.Scenario) []compose.Class {
	classes := layOut(s).classes
	out := make([]compose.Class, len(classes))
	for i, c := range classes {
		out[i] = compose.Class{Class: c, Compute: computeSlices(c)}
	}
	return out
}

// hostClasses are the same with as many slices of each as there are in a host's machines. A class of which there are none stays: it
// is no more than unused.
func hostClasses(s *scenario.Scenario, machines planner.Cluster) []compose.Class {
	out := composeClasses(s)
	for i := range out {
		out[i].Count = 0
	}
	for _, n := range machines.Nodes {
		for _, class := range n.Devices {
			out[class].Count++
		}
	}
	return out
}

// computeSlices of the GPU's seven that a class has, by its profile's name; 0 for made-up slices.
func computeSlices(c bound.Class) int {
	if c.Name == "gpu" {
		return workload.Computes - 1
	}
	text, _, mig := strings.Cut(c.Name, "g.")
	n, err := strconv.Atoi(text)
	if !mig || err != nil || n < 1 || n >= workload.Computes {
		return 0
	}
	return n
}
