package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/meter"
	leanworld "sluice.dev/sluice/internal/lab/swarm/world"
)

const (
	// maxLeanZones and maxLeanNodes in each bound a world of lean nodes: what fits into 4 GB.
	maxLeanZones, maxLeanNodes = 2_000, 1_000
	// leastLeanNodes have a slice of every class.
	leastLeanNodes = 4
)

// swarm reads a world of lean nodes, which stands instead of a cluster and its work.
func (s *Scenario) swarm(v strict.Value) {
	o := v.Object("zones", "nodes", "gates", "digest", "decision", "rigid", "tasks", "network", "stragglers", "faults")
	w := leanworld.Usual(int(o.Need("zones", "10").Integer(1, maxLeanZones, 10)), swarm.Kind{}, 0)
	w.Cluster.PerZone = int(o.Get("nodes").Integer(leastLeanNodes, maxLeanNodes, 100))
	w.Gates = int(o.Get("gates").Integer(1, 64, int64(w.Gates)))
	w.Period = o.Get("digest").Duration(time.Millisecond, time.Minute, w.Period)
	w.Decision = o.Get("decision").Duration(0, time.Minute, w.Decision)

	r := o.Get("rigid").Object("share", "width", "mean")
	w.Rigid.Share = r.Get("share").Fraction(leanworld.Million, 0, 900_000, w.Rigid.Share)
	w.Rigid.Width = int(r.Get("width").Integer(1, leanworld.MaxWidth, int64(w.Rigid.Width)))
	w.Rigid.Mean = r.Get("mean").Duration(time.Millisecond, time.Hour, w.Rigid.Mean)

	f, t := &w.Flow, o.Get("tasks").Object("load", "mean", "long", "longMean", "patience", "longPatience", "batch", "arrivals")
	f.Load = t.Get("load").Fraction(leanworld.Million, 1, 10*leanworld.Million, 900_000)
	f.Mean = t.Get("mean").Duration(time.Millisecond, time.Hour, f.Mean)
	f.LongShare = t.Get("long").Fraction(leanworld.Million, 0, leanworld.Million, f.LongShare)
	f.LongMean = t.Get("longMean").Duration(time.Millisecond, time.Hour, f.LongMean)
	f.Patience = t.Get("patience").Duration(time.Millisecond, time.Hour, f.Patience)
	f.LongPatience = t.Get("longPatience").Duration(time.Millisecond, time.Hour, f.LongPatience)
	f.Batch = int(t.Get("batch").Integer(1, 10_000, 1))

	s.leanArrivals(t, f)

	n := o.Get("network").Object("delay", "jitter", "loss")
	w.Network.Delay = n.Get("delay").Duration(0, time.Minute, w.Network.Delay)
	w.Network.Jitter = n.Get("jitter").Duration(0, time.Minute, 0)
	w.Network.Loss = n.Get("loss").Fraction(leanworld.Million, 0, 900_000, 0)

	x := o.Get("stragglers").Object("share", "slow")
	w.Faults.Stragglers = x.Get("share").Fraction(leanworld.Million, 0, leanworld.Million, 0)
	w.Faults.Slow = 1000 * x.Get("slow").Integer(1, 1000, 5)

	for _, e := range o.Get("faults").List("a list of faults such as [{at: 30s, zone: 0, for: 10s}]", 10_000) {
		o := e.Object("at", "zone", "for", "cut")
		w.Faults.Zones = append(w.Faults.Zones, leanworld.ZoneFault{
			At: moment(o.Need("at", "30s"), 0), Zone: int32(o.Need("zone", "0").Integer(0, int64(w.Cluster.Zones)-1, 0)),
			For: o.Need("for", "10s").Duration(time.Millisecond, MaxSpan, time.Second), Cut: o.Get("cut").Boolean(false),
		})
	}
	s.Swarm = &w
}

// readLean reads what a scenario of lean nodes has beside them.
func (s *Scenario) readLean(o strict.Object) {
	for _, key := range []string{"cluster", "host", "queues", "market", "flow", "workload", "model", "memory", "faults"} {
		if x := o.Get(key); x.Given() {
			x.Wrong("is of scenarios with a cluster; one with lean nodes (swarm) says all of that there")
		}
	}
	s.Settings.Use = used(o.Get("mechanism").Object("use").Get("use"), "laminar")
	window := o.Need("window", "{warmup: 60s, until: 2m}")
	s.window(window)
	s.seeds(o.Get("seeds"))
	s.swarm(o.Get("swarm"))
	s.expect(o.Get("expect"))
	if window.Given() && s.Window.Until == quantity.Never {
		window.Wrong("says no end, and tasks arrive until then; write for example {warmup: 60s, until: 2m}")
	}
	s.Swarm.From, s.Swarm.Until = s.Window.Warmup, s.Window.Until
}

// lean is a mechanism for lean nodes.
func lean(k *swarm.Kind) Mechanism { return Mechanism{Name: k.Name, Summary: k.Summary, Swarm: k} }

// findLean gives the mechanisms of these names for a world of lean nodes; all is every one.
func (t Table) findLean(s *Scenario, names []string) (out []Mechanism, err error) {
	var known []string
	for i := range t.Swarm {
		known = append(known, t.Swarm[i].Name)
	}
	seen := map[string]bool{}
	add := func(i int) {
		if !seen[t.Swarm[i].Name] {
			seen[t.Swarm[i].Name] = true
			out = append(out, lean(&t.Swarm[i]))
		}
	}
	var problems []error
names:
	for _, name := range names {
		for i := range t.Swarm {
			if name == All {
				add(i)
			} else if name == t.Swarm[i].Name {
				add(i)
				continue names
			}
		}
		if name != All {
			problems = append(problems, fmt.Errorf("mechanism %q does not place short tasks on lean nodes, which scenario %s has; %s", name, s.Name, strict.Hint(name, append(known, All))))
		}
	}
	if len(problems) > 0 {
		return nil, errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
	}
	return out, nil
}

// landings hears of tasks that arrived within the window.
type landings struct {
	flow        *measure.Flow
	from, until quantity.Instant
}

// Landed implements world.Observer.
func (l *landings) Landed(now quantity.Instant, t swarm.Task, _ int32, _ int8) {
	if t.Arrived >= l.from && t.Arrived < l.until {
		l.flow.Landed(now.Sub(t.Arrived))
	}
}

// Over implements world.Observer.
func (l *landings) Over(quantity.Instant, swarm.Task, leanworld.Fate) {}

// playLean plays a world of lean nodes to its end, or until ctx ends; with a clock several times.
func (s *Scenario) playLean(ctx context.Context, m *Mechanism, seed uint64, data *Traces, clock func() int64, progress func(quantity.Instant, int)) (*Result, error) {
	o := *s.Swarm
	o.Seed = seed
	if err := s.SwarmLog.into(&o.Flow, data.Dir); err != nil {
		return nil, unbegun(ctx, err)
	}
	if clock == nil {
		o.Kind = *m.Swarm
		out, _, err := s.playLeanOnce(ctx, m.Name, o, progress)
		return out, err
	}
	const runs = 3
	stop := meter.New(clock, s.Swarm.From, s.Swarm.Until)
	var out *Result
	var placed int64
	for i := 0; i < runs && (out == nil || !out.Partial); i++ {
		var err error
		o.Kind = stop.Wrap(*m.Swarm)
		if out, placed, err = s.playLeanOnce(ctx, m.Name, o, progress); err != nil {
			return nil, err
		}
	}
	out.Metrics.Set(measure.CPUNanosPerTask, float64(stop.Nanos())/float64(placed))
	return out, nil
}

// playLeanOnce also says how many tasks were placed within the window.
func (s *Scenario) playLeanOnce(ctx context.Context, name string, o leanworld.Options, progress func(quantity.Instant, int)) (*Result, int64, error) {
	seen := &landings{measure.NewFlow(), o.From, o.Until}
	o.Observer = seen
	w, err := leanworld.New(o)
	if err != nil {
		return nil, 0, err
	}
	for !w.Done() && ctx.Err() == nil {
		w.Run(w.Now().Add(time.Second / 4))
		progress(w.Now(), int(w.Waiting()))
	}
	c := w.Counts()
	out := &Result{
		Run:      measure.Run{Scenario: s.Name, Mechanism: name, Seed: o.Seed},
		Finished: c.Placed - c.Fates[leanworld.Lost], Live: w.Waiting(), Partial: !w.Done(), At: w.Now(),
	}
	seen.flow.Set(&out.Metrics, &c, o.Kind.Messages)
	if n := c.Refused[swarm.Elsewhere]; n > 0 {
		out.Broken = append(out.Broken, fmt.Sprintf("%d times a task was to start that had been started elsewhere", n))
	}
	return out, c.Starts, nil
}
