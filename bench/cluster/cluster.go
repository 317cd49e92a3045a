package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/bolt"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/host"
)

// cluster is a host with its subjobs, which outlive it.
type cluster struct {
	settings
	dir              string
	gate, zone, node watch

	host   *host.Host
	subs   *fake.Executor
	ctx    context.Context //nolint:containedctx // of the host that runs, so that down can end it
	cancel context.CancelFunc
	ended  chan error

	started, exited atomic.Int64
	// toldStarted is how many had started when that was last told.
	toldStarted int64
}

// shapes of jobs: many short units, chains of checkpoints, blocks. The slices have speed 143, so what is declared takes seven times as
// long.
var shapes = []string{ //nolint:gochecknoglobals // read-only by use
	"items: {total: 500, perItem: 4s, parallelism: 8}",
	"steps: {total: 500, perStep: 4s, every: 3}",
	"rigid: {walltime: 20s}",
}

func (c *cluster) spec(i int) (*job.Spec, error) {
	s, _, err := config.ParseJob("job", []byte(fmt.Sprintf(
		"apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: job-%d}\nspec:\n  %s\n  memory: 8Gi\n  command: [train, --part, "+
			"%q]\n", i, shapes[i%len(shapes)], fmt.Sprint(i))))
	return s, err
}

// up opens the host over what is there, and has it run.
func (c *cluster) up(ctx context.Context) error {
	slices, err := newMachines(c.machines)
	if err != nil {
		return err
	}
	policy, err := policies.ByName("fair")
	if err != nil {
		return err
	}
	choice, err := arrangement.Choice{Policy: policy, Mechanism: c.mechanism, Horizon: 24 * time.Hour, Node: "cluster",
		Archive: &filing.Config{}}.Config()
	if err != nil {
		return err
	}
	actors, err := choice.Build()
	if err != nil {
		return err
	}
	c.gate.name, c.zone.name, c.node.name = "gate", "zone", "node"
	c.host, err = host.Open(ctx, host.Options{
		DataDir: filepath.Join(c.dir, "data"), Machine: "cluster", Inventory: slices, NoTape: true,
		About:    status.About{Mechanism: c.mechanism, Policy: "fair"},
		Actors:   func() actor.Set { return c.timed(actors()) },
		Journal:  func(dir string) (journal.Journal, error) { return local.Open(dir, local.Options{}) },
		Archive:  func(dir string, known bool) (archive.Archive, error) { return bolt.Open(dir, known) },
		Executor: c.executor,
	})
	if err != nil {
		return err
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.ended = make(chan error, 1)
	go func(h *host.Host, ctx context.Context) { c.ended <- h.Run(ctx) }(c.host, c.ctx)
	return nil
}

// executor has the subjobs of before go on, and counts what starts and ends.
func (c *cluster) executor(e host.Env) (executor.Executor, host.Files, error) {
	heard := func(m protocol.Message) {
		switch m.Kind {
		case protocol.Started:
			c.started.Add(1)
		case protocol.Exited:
			c.exited.Add(1)
		default: // not counted
		}
		e.Deliver(m)
	}
	if c.subs == nil {
		c.subs = fake.New(heard, fake.Planned)
	} else {
		c.subs = c.subs.Reopen(heard)
	}
	return c.subs, nil, nil
}

func (c *cluster) running() int64 { return c.started.Load() - c.exited.Load() }

// down ends the host as a signal does. Subjobs go on.
func (c *cluster) down() error {
	c.cancel()
	return errors.Join(<-c.ended, c.host.Close())
}

// submit hands in all jobs, a hundred in a call, as kubectl apply of a folder would.
func (c *cluster) submit(ctx context.Context) error {
	if err := c.host.SetQueue(ctx, "queue", protocol.Queue{Name: "default", Weight: 1, MaxWindow: 4 * time.Minute}); err != nil {
		return err
	}
	const together = 100
	for from := 0; from < c.jobs; from += together {
		var list []host.Submission
		for i := from; i < min(from+together, c.jobs); i++ {
			s, err := c.spec(i)
			if err != nil {
				return err
			}
			list = append(list, host.Submission{Request: string(s.Name), Spec: s})
		}
		for _, o := range c.host.SubmitAll(ctx, list, nil) {
			if o.Err != nil {
				return o.Err
			}
		}
	}
	return nil
}

// answers asks for the slices and a page of jobs: the host is there when it answers.
func (c *cluster) answers(ctx context.Context) error {
	if _, err := c.host.Slices(ctx); err != nil {
		return err
	}
	_, err := c.host.Jobs(ctx, status.JobQuery{Limit: 100})
	return err
}

func (c *cluster) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case err := <-c.ended:
		c.ended <- err
	case <-time.After(d):
	}
}

// tell prints what was measured since it was last told, which took so long.
func (c *cluster) tell(took time.Duration) {
	peak, live := memory()
	started := c.started.Load()
	fmt.Printf("after %s: %d subjobs run, %d started (%.0f a second); %.0f MiB at most, %.0f live\n", took.Round(time.Millisecond),
		c.running(), started-c.toldStarted,
		float64(started-c.toldStarted)/took.Seconds(), peak, live)
	c.toldStarted = started
	for _, w := range []*watch{&c.gate, &c.zone, &c.node} {
		w.tell()
	}
}
