package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/bench/daemon"
	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/internal/core/quantity"
)

// liveGPUs are the slices of every daemon here. The large one, which every job could use, is drained; the small ones are offered
// all the time, and no job fits on them. So all jobs are accepted and wait, and the market looks at each of them.
const (
	liveGPUs  = "sim:custom,mem=1Gi+1Gi+512Mi+24Gi"
	liveLarge = "24Gi"
	liveSlots = 4
)

// plant is a data directory with jobs in it, and what daemons on it have in common.
type plant struct {
	s     *settings
	dir   string
	seeds seeds
	// batches counts the submissions, so that every name is new.
	batches atomic.Int64
}

// plant makes a data directory with so many jobs: a daemon begins it, and drains the large slice; the jobs are then written to
// its journal.
func (s *settings) plant(ctx context.Context, name string, waiting, finished int) (*plant, error) {
	p := &plant{s: s, dir: filepath.Join(s.temp, name), seeds: seeds{set: "s", waiting: waiting, finished: finished}}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.config(), []byte(queueFile()), 0o644); err != nil {
		return nil, err
	}
	d, err := p.start()
	if err != nil {
		return nil, err
	}
	if err = d.AwaitSlices(ctx, liveSlots); err != nil {
		return nil, err
	}
	err = p.drain(ctx, d)
	if err = errors.Join(err, d.Stop()); err != nil {
		return nil, err
	}
	return p, p.seed(ctx)
}

// seed writes the plant's seeds.
func (p *plant) seed(ctx context.Context) error {
	begin := time.Now()
	p.seeds.now = quantity.At(begin)
	if err := p.seeds.write(ctx, daemon.Data(p.dir)); err != nil {
		return err
	}
	syscall.Sync() // else the first who syncs anything waits for all of it
	p.s.say("seeded %s waiting and %s finished jobs in %s", size(p.seeds.waiting), size(p.seeds.finished), round(time.Since(begin)))
	return nil
}

// with is a copy of a plant on which no daemon runs, with so many jobs more that wait.
func (p *plant) with(ctx context.Context, name string, waiting int) (*plant, error) {
	c := &plant{s: p.s, dir: filepath.Join(p.s.temp, name), seeds: seeds{set: "s", waiting: waiting}}
	if out, err := exec.CommandContext(ctx, "cp", "-a", p.dir, c.dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy a data directory: %w: %s", err, out)
	}
	syscall.Sync()
	if waiting == 0 {
		c.seeds = p.seeds
		return c, nil
	}
	return c, c.seed(ctx)
}

func (p *plant) config() string { return filepath.Join(p.dir, "queues.yml") }

// start starts a daemon on the plant. Its log is read for snapshots, so more is logged than usual.
func (p *plant) start(flags ...string) (*daemon.Daemon, error) {
	return daemon.Start(daemon.Options{
		Bin: p.s.bin, Dir: p.dir, GPUs: liveGPUs, Patience: p.s.limit, Memory: p.s.memory,
		Flags: append([]string{"--config", p.config(), "--log", "info"}, flags...),
	})
}

func (p *plant) drain(ctx context.Context, d *daemon.Daemon) error {
	list, err := d.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
	if err != nil {
		return err
	}
	for _, s := range list.Msg.Slices {
		if strings.Contains(s.Id, liveLarge) {
			_, err := d.Drain(ctx, s.Id)
			return err
		}
	}
	return fmt.Errorf("no slice of %s is among the %d of %s", liveLarge, len(list.Msg.Slices), liveGPUs)
}

// files are n job files of perCall jobs each, under names that nobody has had.
func (p *plant) files(n, perCall int) []string {
	batch := p.batches.Add(1)
	out := make([]string, n)
	for i := range out {
		var docs []string
		for k := range perCall {
			j := i*perCall + k
			docs = append(docs, jobFile(j+int(batch)*7, jobName(fmt.Sprintf("b%d", batch), j)))
		}
		out[i] = strings.Join(docs, "---\n")
	}
	return out
}

// burst submits from so many clients until all files are sent or time is up. It returns what each call took in milliseconds, in
// order, and how long all of it was.
func burst(ctx context.Context, d *daemon.Daemon, clients int, pause time.Duration, files []string) (took []float64, all time.Duration,
	err error) {
	var next atomic.Int64
	errs := make([]error, clients)
	times := make([][]float64, clients)
	var done sync.WaitGroup
	begin := time.Now()
	for c := range clients {
		done.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return
				}
				at := time.Now()
				if err := d.Send(ctx, files[i]); err != nil {
					if ctx.Err() == nil {
						errs[c] = err
					}
					return
				}
				times[c] = append(times[c], sample.Milliseconds(time.Since(at)))
				if pause > 0 {
					time.Sleep(pause)
				}
			}
		})
	}
	done.Wait()
	all = time.Since(begin)
	for _, t := range times {
		took = append(took, t...)
	}
	return sample.Ordered(took), all, errors.Join(errs...)
}
