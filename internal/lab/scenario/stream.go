package scenario

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// Stream is work that is composed of parts: arrivals and durations, programs with their speeds, shapes of memory.
type Stream struct {
	// Generator of arrivals and durations; nil for those of traces: a file, or the published ones where Trace is nil too.
	Generator *synthetic.Jobs
	Trace     *compose.Trace
	// Measured: programs and memory are those of the published traces; otherwise those with their statistics.
	Measured bool
	// Queue that all its jobs go to; empty: as the arrivals say.
	Queue string
	// Agent is the name of the agents of all its divisible jobs; empty: as the shares say.
	Agent string
	// Options but for the classes and the seed.
	Options compose.Options
}

// openStreams opens generated and composed work for these classes of slices. Every stream draws from its own seed.
func (s *Scenario) openStreams(ctx context.Context, streams []Stream, classes []compose.Class, seed uint64, data *Traces) ([]opened, error) {
	out := make([]opened, 0, len(streams))
	for i := range streams {
		t := &streams[i]
		in, err := t.inputs(data)
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

func (t *Stream) inputs(data *Traces) (compose.Inputs, error) {
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
	of *Stream
	// counts of what was found in its file of arrivals.
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
func (s *Scenario) composeClasses() []compose.Class {
	var w world
	w.lay(s)
	out := make([]compose.Class, len(w.classes))
	for i, c := range w.classes {
		out[i] = compose.Class{Class: c, Compute: computeSlices(c)}
	}
	return out
}

// hostClasses are the same with as many slices of each as there are in a host's machines. A class of which there are none stays: it
// is no more than unused.
func (s *Scenario) hostClasses(machines planner.Cluster) []compose.Class {
	out := s.composeClasses()
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

// streams reads the generated and composed work.
func (s *Scenario) streams(o strict.Object) (out []Stream) {
	for _, kind := range []string{"synthetic", "compose"} {
		v := o.Get(kind)
		list := []strict.Value{v}
		if v.Listed() {
			list = v.List("a stream or a list of streams", 100)
		}
		for _, e := range list {
			if e.Given() {
				out = append(out, s.stream(e, kind == "synthetic"))
			}
		}
	}
	return out
}

// streamKeys are what every stream may say; what follows is for generated ones.
func streamKeys(generated bool) []string {
	keys := []string{
		"arrivals", "queue", "agent", "jobs", "load", "cap", "multi", "atomizable", "grain", "restore", "checkpoint", "saves", "startup", "memoryRisk|theta", "noise", "timeError", "memoryError", "deadlines",
	}
	if generated {
		return append(keys, "diurnal", "durations", "gpus", "queues", "seed")
	}
	return append(keys, "programs")
}

func (s *Scenario) stream(e strict.Value, generated bool) Stream {
	o := e.Object(streamKeys(generated)...)
	t := Stream{Agent: s.agentName(o.Get("agent"))}
	if q := o.Get("queue"); q.Text("a queue, or \"\" for those of the arrivals", "") != "" { // a replacement takes the one in the file away
		t.Queue = q.Label("")
	}
	c := &t.Options
	c.Jobs = o.Get("jobs").Integer(1, MaxGenerated, 0)
	if !generated {
		s.parts(o, &t)
	}
	if c.Jobs == 0 && s.Window.Until == quantity.Never && (t.Trace == nil || t.Trace.Resample) {
		e.Wrong("has no end; give jobs: 1000, or the window's until")
	}
	c.Load = float64(o.Get("load").Fraction(1000, 0, 100_000, 0)) / 1000
	c.Cap = o.Get("cap").Duration(time.Second, MaxSpan, 0)
	c.Multi = []compose.Multi{compose.Drop, compose.Split, compose.Gang}[o.Get("multi").Choice("drop", "split", "gang")]
	c.Atomizable = float64(o.Get("atomizable").Fraction(10_000, 0, 10_000, 10_000)) / 10_000
	c.Grain = o.Get("grain").Duration(time.Second, MaxSpan, time.Minute)
	c.Restore = o.Get("restore").Duration(0, time.Hour, 20*time.Second)
	c.Checkpoint = o.Get("checkpoint").Duration(0, time.Hour, 15*time.Second)
	c.Saves = o.Get("saves").Duration(0, MaxSpan, 0)
	c.Startup = o.Get("startup").Duration(0, time.Hour, config.DefaultStartup)
	c.Theta = o.Get("memoryRisk").Fraction(1_000_000, 1, 500_000, 0)
	c.Noise = o.Get("noise").Fraction(1000, 1, 500, 20)
	c.TimeError, c.MemoryError = errorOf(o.Get("timeError"), s.Model.TimeError), errorOf(o.Get("memoryError"), s.Model.MemoryError)
	c.Deadlines = deadlines(o.Get("deadlines"))
	if generated {
		t.Generator = s.generator(o)
		alone := func(w synthetic.Weight) bool { return w.GPUs == 1 }
		if g := t.Generator.GPUs; c.Multi == compose.Drop && len(g) > 0 && !slices.ContainsFunc(g, alone) {
			e.Wrong("has only jobs with several GPUs, and these are dropped; write multi: gang or split, or give weight to 1 GPU")
		}
	}
	return t
}

// deadlines reads {share: 50%, slack: [5, 20]}.
func deadlines(v strict.Value) compose.Deadlines {
	if !v.Given() {
		return compose.Deadlines{}
	}
	o := v.Object("share", "slack")
	d := compose.Deadlines{Share: float64(o.Get("share").Fraction(10_000, 1, 10_000, 10_000)) / 10_000}
	slack := o.Need("slack", "[5, 20]")
	ends := slack.List("two numbers such as [5, 20]", 2)
	if len(ends) != 2 {
		slack.Wrong("has %d numbers; want the least and the most slack such as [5, 20]", len(ends))
		return compose.Deadlines{}
	}
	if d.Least, d.Most = ends[0].Real(0.1, 1e6, 1), ends[1].Real(0.1, 1e6, 1); d.Most < d.Least {
		ends[1].Wrong("is less than the first")
	}
	return d
}

// errorOf reads how declarations are off: a factor exp(bias + sigma z) on the truth.
func errorOf(v strict.Value, or compose.Error) compose.Error {
	if !v.Given() {
		return or
	}
	o := v.Object("bias", "sigma")
	return compose.Error{
		Bias:  o.Get("bias").Real(-5, 5, 0),
		Sigma: float64(o.Get("sigma").Fraction(1000, 0, 5000, 0)) / 1000,
	}
}
