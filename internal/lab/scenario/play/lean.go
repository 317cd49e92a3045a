package play

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/meter"
	leanworld "sluice.dev/sluice/internal/lab/swarm/world"
	"sluice.dev/sluice/internal/lab/trace"
)

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
func playLean(ctx context.Context, s *scenario.Scenario, m *Mechanism, seed uint64, data *Traces, clock func() int64,
	progress func(quantity.Instant, int)) (*outcome.Result, error) {
	o := *s.Swarm
	o.Seed = seed
	if err := logInto(&o.Flow, s.SwarmLog, data.Dir); err != nil {
		return nil, notBegun(ctx, err)
	}
	if clock == nil {
		o.Kind = *m.Swarm
		out, _, err := playLeanOnce(ctx, s, m.Name, o, progress)
		return out, err
	}
	const runs = 3
	stop := meter.New(clock, s.Swarm.From, s.Swarm.Until)
	var out *outcome.Result
	var placed int64
	for i := 0; i < runs && (out == nil || !out.Partial); i++ {
		var err error
		o.Kind = stop.Wrap(*m.Swarm)
		if out, placed, err = playLeanOnce(ctx, s, m.Name, o, progress); err != nil {
			return nil, err
		}
	}
	out.Metrics.Set(measure.CPUNanosPerTask, float64(stop.Nanos())/float64(placed))
	return out, nil
}

// playLeanOnce also says how many tasks were placed within the window.
func playLeanOnce(ctx context.Context, s *scenario.Scenario, name string, o leanworld.Options, progress func(quantity.Instant, int)) (
	*outcome.Result, int64, error) {
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
	out := &outcome.Result{
		Run:      measure.Run{Scenario: s.Name, Mechanism: name, Seed: o.Seed},
		Finished: c.Placed - c.Fates[leanworld.Lost], Live: w.Waiting(), Partial: !w.Done(), At: w.Now(),
	}
	seen.flow.Set(&out.Metrics, &c, o.Kind.Messages)
	if n := c.Refused[swarm.Elsewhere]; n > 0 {
		out.Broken = append(out.Broken, fmt.Sprintf("%d times a task was to start that had been started elsewhere", n))
	}
	return out, c.Starts, nil
}

// logInto makes a flow of the log. A nil log leaves it as it is.
func logInto(f *leanworld.Flow, l *scenario.SwarmLog, dir string) error {
	if l == nil {
		return nil
	}
	path := filepath.FromSlash(l.File)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	var log []leanworld.Request
	var last, sum time.Duration
	_, err := trace.Read(l.Format, path, func(r *trace.Record) error {
		q := leanworld.Request{Length: time.Duration(r.Request.Input)*l.Prompt + time.Duration(r.Request.Output)*l.Output}
		if q.Length <= 0 {
			return nil
		}
		if len(log) > 0 {
			q.Gap = max(0, r.At-last)
		}
		log, last, sum = append(log, q), r.At, sum+q.Length
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("arrivals: %w", err)
	case len(log) < 2:
		return errkind.Errorf(errkind.Invalid, "%s has %d requests that take some time; want two", path, len(log))
	}
	f.Log, f.Mean = log, sum/time.Duration(len(log))
	return nil
}
