package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/bench/daemon"
)

// readyTime is how long machines may take until the head has their slices.
const readyTime = time.Minute

// tooSmall is the memory of the head's own slice, which no job fits in: all of them run on machines that joined.
const tooSmall = "1Mi"

// headName is the name of the head among the machines.
const headName = "head"

// world is a head, and the machines that have joined it as daemons. Either may be empty.
type world struct {
	head     *daemon.Daemon
	nodes    sluicev1alpha1connect.NodeServiceClient
	machines []*daemon.Daemon
	// address is where the head listens for machines.
	address string
}

// newWorld starts a head, with its data in a directory of its own.
func (s *settings) newWorld() (*world, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &world{address: l.Addr().String()}
	if err = l.Close(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.temp, "head-")
	if err != nil {
		return nil, err
	}
	w.head, err = daemon.Start(daemon.Options{Bin: s.bin, Dir: dir, GPUs: "sim:custom,mem=" + tooSmall,
		Flags: []string{"--name", headName, "--cluster", w.address}})
	if err != nil {
		return nil, err
	}
	w.nodes = sluicev1alpha1connect.NewNodeServiceClient(w.head.HTTP, w.head.Base)
	return w, nil
}

// token for one machine.
func (w *world) token(ctx context.Context, name string) (string, error) {
	r, err := w.nodes.CreateToken(ctx, connect.NewRequest(&pb.CreateTokenRequest{Name: name}))
	if err != nil {
		return "", err
	}
	return r.Msg.Token, nil
}

// join starts the machines as daemons that call the head at an address, and waits until it has their slices.
func (w *world) join(ctx context.Context, s *settings, address string) error {
	for i := range s.machines {
		name := fmt.Sprintf("m%d", i)
		token, err := w.token(ctx, name)
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp(s.temp, name+"-")
		if err != nil {
			return err
		}
		m, err := daemon.Start(daemon.Options{Bin: s.bin, Dir: dir, Join: address, Token: token, Flags: []string{"--name", name},
			GPUs: "sim:custom,mem=256Mi" + strings.Repeat("+256Mi", s.slices-1)})
		if err != nil {
			return err
		}
		w.machines = append(w.machines, m)
	}
	return w.ready(ctx, s.machines, s.slices)
}

// ready waits until so many machines are up with so many usable slices each.
func (w *world) ready(ctx context.Context, machines, slices int) error {
	for until := time.Now().Add(readyTime); ; time.Sleep(20 * time.Millisecond) {
		r, err := w.nodes.ListNodes(ctx, connect.NewRequest(&pb.ListNodesRequest{}))
		if err != nil {
			return err
		}
		n := 0
		for _, m := range r.Msg.Nodes {
			if m.Name != headName && m.Up && int(m.Usable) == slices {
				n++
			}
		}
		if n == machines {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("after %v %d of %d machines are ready; the head's log: %s", readyTime, n, machines, w.head.Said())
		}
	}
}

// close ends all of them.
func (w *world) close() error {
	var errs []error
	for _, m := range w.machines {
		errs = append(errs, m.Stop())
	}
	return errors.Join(append(errs, w.head.Stop())...)
}

// used of processors: by the head, by its machines, and by all that these have started.
type used struct{ head, machines, started time.Duration }

// used is what was used since the daemons were started.
func (w *world) used() (u used, err error) {
	if u.head, _, err = w.head.Processor(); err != nil {
		return used{}, err
	}
	for _, d := range w.machines {
		own, started, err := d.Processor()
		if err != nil {
			return used{}, err
		}
		u.machines += own
		u.started += started
	}
	return u, nil
}
