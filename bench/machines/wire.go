package main

import (
	"context"
	"errors"
	"fmt"

	"net"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/bench/slurm"
)

// wire is a network between machines and their head: what they send arrives after a delay, and is counted.
type wire struct {
	net.Listener
	to    string
	delay time.Duration
	bytes atomic.Int64
	all   sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// newWire listens for connections, and hands them on to an address.
func newWire(to string, delay time.Duration) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{Listener: l, to: to, delay: delay}
	w.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { w.connect(c) })
		}
	})
	return w, nil
}

// connect carries one connection until either side ends it.
func (w *wire) connect(c net.Conn) {
	defer c.Close()
	d, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer d.Close()
	if !w.keep(c, d) {
		return
	}
	back := make(chan struct{})
	go func() {
		w.carry(c, d)
		close(back)
	}()
	w.carry(d, c)
	<-back
}

// keep has both ends of a connection closed with the network; false: it is.
func (w *wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, ends...)
	return !w.closed
}

// piece is what was read at once, and when it is to arrive.
type piece struct {
	at   time.Time
	data []byte
}

// carry copies one direction until its source ends, or its target.
func (w *wire) carry(to, from net.Conn) {
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			buf := make([]byte, 64<<10)
			n, err := from.Read(buf)
			if n > 0 {
				w.bytes.Add(int64(n))
				pieces <- piece{time.Now().Add(w.delay), buf[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_ = to.Close() // its reader ends
	_ = from.Close()
	for range pieces { // what is still under way gets lost
	}
}

// Close cuts all connections, and takes no more.
func (w *wire) Close() error {
	err := w.Listener.Close()
	w.mu.Lock()
	w.closed = true
	for _, c := range w.conns {
		_ = c.Close() // it may have ended
	}
	w.mu.Unlock()
	w.all.Wait()
	return err
}

// awards are jobs one after another over a network with a delay: from the award, when their lease begins, to the start of their process.
func awards(ctx context.Context, s *settings) (rows []row, err error) {
	w, err := s.newWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	net, err := newWire(w.address, s.delay)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	if err = w.join(ctx, s, net.Addr().String()); err != nil {
		return nil, err
	}
	var start, whole []float64
	for i := range s.singles {
		name := fmt.Sprintf("single-%d", i)
		begin := time.Now()
		if err = w.head.Send(ctx, slurm.NoOps(name, 1)); err != nil {
			return nil, err
		}
		if err = w.head.Completed(ctx, i+1); err != nil {
			return nil, err
		}
		whole = append(whole, sample.Milliseconds(time.Since(begin)))
		r, err := w.head.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name + "-0"}))
		if err != nil {
			return nil, err
		}
		if len(r.Msg.Job.History) != 1 {
			return nil, fmt.Errorf("job %s has %d subjobs, want 1", name, len(r.Msg.Job.History))
		}
		h := r.Msg.Job.History[0]
		start = append(start, sample.Milliseconds(h.Start.AsTime().Sub(h.PlannedStart.AsTime())))
	}
	start, whole = sample.Ordered(start), sample.Ordered(whole)
	text := func(v []float64) string {
		return fmt.Sprintf("p50 %.3g ms, p95 %.3g ms", sample.Median(v), sample.Quantile(v, 95))
	}
	over := fmt.Sprintf(", %v in each direction, %d jobs one after another", s.delay, s.singles)
	return []row{{"award to start" + over, "p50 25 ms", text(start)}, {"submission to commit" + over, "", text(whole)}}, nil
}

// idleTime is how long the links are listened to while nothing runs.
const idleTime = 5 * time.Second

// wires are the bytes that a subjob costs of the network between real daemons, TLS and all: the start of a process, its logs, its output
// (none) and its result.
func wires(ctx context.Context, s *settings) (rows []row, err error) {
	w, err := s.newWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	net, err := newWire(w.address, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	if err = w.join(ctx, s, net.Addr().String()); err != nil {
		return nil, err
	}
	n := net.bytes.Load()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(idleTime):
	}
	idle := float64(net.bytes.Load()-n) / idleTime.Seconds()
	n = net.bytes.Load()
	if err = w.head.Send(ctx, slurm.NoOps("noop", s.jobs)); err != nil {
		return nil, err
	}
	if err = w.head.Completed(ctx, s.jobs); err != nil {
		return nil, err
	}
	each := float64(net.bytes.Load()-n) / float64(s.jobs)
	return []row{
		{fmt.Sprintf("bytes over the wire for each of %d no-op jobs, %d machines", s.jobs, s.machines), "6 KB", fmt.Sprintf("%.3g KB",
			each/1000)},
		{fmt.Sprintf("bytes a second of a machine on which nothing runs, %d slices", s.slices), "", fmt.Sprintf("%.0f",
			idle/float64(s.machines))},
	}, nil
}
