package scenario

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/workload/compose"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

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
		"arrivals", "queue", "agent", "jobs", "load", "cap", "multi", "atomizable", "grain", "restore", "checkpoint", "saves", "startup",
		"templates", "resident",
		"memoryRisk|theta", "noise", "timeError", "memoryError", "deadlines",
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
	c.Templates = int(o.Get("templates").Integer(1, 1000, 0))
	c.Resident = o.Get("resident").Boolean(false)
	c.Theta = o.Get("memoryRisk").Fraction(1_000_000, 1, 500_000, 0)
	c.Noise = o.Get("noise").Fraction(1000, 1, 500, 20)
	c.TimeError, c.MemoryError = errorOf(o.Get("timeError"), s.Model.TimeError), errorOf(o.Get("memoryError"), s.Model.MemoryError)
	c.Deadlines = deadlines(o.Get("deadlines"))
	if generated {
		t.Generator = generator(o)
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
