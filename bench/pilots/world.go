package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/bench/daemon"
	"sluice.dev/sluice/test/slurm/cluster"
)

const (
	// readyTime is how long pilots may take until the head has their slices.
	readyTime = 2 * time.Minute
	// tooSmall is the memory of the head's own slice, which no job fits in: all of them run on pilots.
	tooSmall = "1Mi"
	// pool is the provider's name.
	pool = "scavenger"
	// pilotIdle, pilotStart and pilotMemory are what the head's file says of pilots: after how much idle time one leaves, what it takes to
	// start, and the memory of a slice.
	pilotIdle, pilotStart = 5 * time.Minute, 5 * time.Second
	pilotMemory           = "256Mi"
)

// lending says what pilots are like.
type lending struct {
	most, slices, cpus int
	lengths            string
}

// world is a head whose machines are pilots of a Slurm.
type world struct {
	*daemon.Daemon
	nodes     sluicev1alpha1connect.NodeServiceClient
	providers sluicev1alpha1connect.ProviderServiceClient
}

// newWorld starts a head beside a Slurm.
func newWorld(s *settings, c *cluster.Cluster, l lending) (*world, error) {
	dir, err := os.MkdirTemp(s.temp, "head-")
	if err != nil {
		return nil, err
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err = at.Close(); err != nil {
		return nil, err
	}
	piece := strings.TrimSuffix(strings.Repeat(pilotMemory+"+", l.slices), "+")
	file := filepath.Join(dir, "head.yaml")
	text := fmt.Sprintf(`providers:
- name: %s
  kind: slurm
  partition: all
  atMost: %d
  lengths: %s
  idle: %v
  start: %v
  every: 1s
  slices: [{memory: %s, count: %d}]
  cpus: %d
  scratch: %s
  sluice: %s
  gpus: "sim:custom,mem=%s"
`, pool, l.most, l.lengths, pilotIdle, pilotStart, pilotMemory, l.slices, l.cpus, s.temp, filepath.Join(s.bin, "sluice"), piece)
	if err = os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	before := os.Getenv("PATH")
	if err = os.Setenv("PATH", c.Bin()+":"+before); err != nil {
		return nil, err
	}
	d, err := daemon.Start(daemon.Options{Bin: s.bin, Dir: dir, GPUs: "sim:custom,mem=" + tooSmall,
		Flags: []string{"--name", "head", "--cluster", at.Addr().String(), "--config", file}})
	if err = errors.Join(err, os.Setenv("PATH", before)); err != nil {
		return nil, err
	}
	return &world{d, sluicev1alpha1connect.NewNodeServiceClient(d.HTTP, d.Base),
		sluicev1alpha1connect.NewProviderServiceClient(d.HTTP, d.Base)}, nil
}

// usable is how many slices of pilots the head can sell.
func (w *world) usable(ctx context.Context) (n int, err error) {
	r, err := w.nodes.ListNodes(ctx, connect.NewRequest(&pb.ListNodesRequest{}))
	if err != nil {
		return 0, err
	}
	for _, m := range r.Msg.Nodes {
		if m.Up && strings.HasPrefix(m.Name, pool+"-") {
			n += int(m.Usable)
		}
	}
	return n, nil
}

// ready waits until there are so many slices of pilots.
func (w *world) ready(ctx context.Context, slices int) error {
	for until := time.Now().Add(readyTime); ; time.Sleep(50 * time.Millisecond) {
		n, err := w.usable(ctx)
		switch {
		case err != nil:
			return err
		case n == slices:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("after %v there are %d of %d slices of pilots; the head's log: %s", readyTime, n, slices, w.Said())
		}
	}
}

// committed is how many units of all jobs are committed.
func (w *world) committed(ctx context.Context) (n int64, err error) {
	r, err := w.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
	if err != nil {
		return 0, err
	}
	for _, j := range r.Msg.Jobs {
		n += j.Progress
	}
	return n, nil
}

// gone waits until no pilot is known.
func (w *world) gone(ctx context.Context) error {
	for until := time.Now().Add(readyTime); ; time.Sleep(200 * time.Millisecond) {
		r, err := w.providers.ListProviders(ctx, connect.NewRequest(&pb.ListProvidersRequest{}))
		switch {
		case err != nil:
			return err
		case len(r.Msg.Providers) == 1 && len(r.Msg.Providers[0].Pilots) == 0:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("after %v there are pilots: %v", readyTime, r.Msg.Providers)
		}
	}
}

// end cancels all pilots, and ends the head.
func (w *world) end(ctx context.Context, c *cluster.Cluster) error {
	err := w.Stop()
	_, failed := c.Run(ctx, "scancel", "-p", "all")
	for until := time.Now().Add(readyTime); failed == nil; time.Sleep(200 * time.Millisecond) {
		var out string
		if out, failed = c.Run(ctx, "squeue", "-h"); strings.TrimSpace(out) == "" {
			break
		}
		if time.Now().After(until) {
			failed = fmt.Errorf("pilots are left: %s", out)
		}
	}
	return errors.Join(err, failed)
}
