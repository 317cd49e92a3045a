package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/fabric/stream"
	inventories "sluice.dev/sluice/internal/edge/inventory/all"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/host"
)

const (
	// longest is how long a subjob may take as it is planned, so that each has longest/plannedUnit units; they take unitTime each.
	longest, plannedUnit, unitTime = time.Second, 50 * time.Millisecond, 20 * time.Millisecond
	// A job has so many units, and runs so many subjobs at once.
	unitsOfAJob, atOnce = 320, 16
	// inACall is how many jobs one submission has.
	inACall = 50
	// look is how often the fleet looks whether enough jobs wait.
	look = 50 * time.Millisecond
)

// brisk is a model of subjobs that need less time than was planned for them.
func brisk(protocol.Message) fake.Behaviour { return fake.Behaviour{PerUnit: unitTime} }

// counted is a fabric that counts its messages, in both directions.
type counted struct {
	fabric.Fabric
	messages *atomic.Int64
}

// Send counts a message that is sent.
func (c counted) Send(m protocol.Message) {
	c.messages.Add(1)
	c.Fabric.Send(m)
}

// Attach counts the messages that arrive.
func (c counted) Attach(addr protocol.Address, deliver fabric.Deliver) error {
	return c.Fabric.Attach(addr, func(m protocol.Message) {
		c.messages.Add(1)
		deliver(m)
	})
}

// fleet is many machines in this process. Their nodes, journals and links are real, on a file system in memory; their subjobs are models.
type fleet struct {
	messages atomic.Int64
	members  []*host.Member
	ended    sync.WaitGroup
	cancel   context.CancelFunc
	failed   atomic.Pointer[error]
}

// add has one machine join, and runs it.
func (f *fleet) add(ctx context.Context, s *settings, w *world, i int) error {
	name := job.NodeID(fmt.Sprintf("f%d", i))
	token, err := w.token(ctx, string(name))
	if err != nil {
		return err
	}
	dir := filepath.Join(s.memory, string(name))
	m, err := membership.Join(ctx, membership.Options{Dir: dir},
		membership.Invited{Head: w.address, Token: token, Name: name})
	if err != nil {
		return err
	}
	set, err := m.Settings(ctx)
	if err != nil {
		return err
	}
	actors, err := arrangement.Joined(node.Config{ID: name, Number: m.Number(), Zone: job.ZoneID(set.Zone), Horizon: set.Horizon})
	if err != nil {
		return err
	}
	inv, _, err := inventories.Detect(ctx, "sim:custom,mem=256Mi"+strings.Repeat("+256Mi", s.fleetSlices-1))
	if err != nil {
		return err
	}
	link := stream.Join(stream.MemberOptions{Machine: name, Head: w.address, TLS: m.TLS, Start: m.Start})
	h, err := host.OpenMember(ctx, host.Options{
		DataDir: filepath.Join(dir, "data"), Machine: name, Actors: actors, Fabric: counted{link, &f.messages}, Inventory: inv,
		Journal: func(dir string) (journal.Journal, error) { return local.Open(dir, local.Options{}) },
		Executor: func(e host.Env) (executor.Executor, host.Files, error) {
			return fake.New(e.Deliver, brisk), nil, nil
		},
	})
	if err != nil {
		return err
	}
	f.members = append(f.members, h)
	f.ended.Go(func() {
		if err := h.Run(ctx); err != nil {
			f.failed.Store(&err)
		}
	})
	return nil
}

// newFleet has machines join and waits until it has their slices.
func newFleet(ctx context.Context, s *settings, w *world, machines int) (f *fleet, err error) {
	f = &fleet{}
	running, cancel := context.WithCancel(ctx)
	f.cancel = cancel
	begin := time.Now()
	for i := range machines {
		if err = f.add(running, s, w, i); err != nil {
			return nil, errors.Join(fmt.Errorf("machine %d: %w", i, err), f.close())
		}
	}
	if err = w.ready(ctx, machines, s.fleetSlices); err != nil {
		return nil, errors.Join(err, f.close())
	}
	fmt.Printf("# %d machines of %d slices have joined in %v\n", machines, s.fleetSlices, time.Since(begin).Round(time.Millisecond))
	return f, nil
}

func (f *fleet) close() error {
	f.cancel()
	f.ended.Wait()
	var errs []error
	for _, m := range f.members {
		errs = append(errs, m.Close())
	}
	if p := f.failed.Load(); p != nil {
		errs = append(errs, *p)
	}
	return errors.Join(errs...)
}

// work is what a head has done in a stretch of time.
type work struct {
	subjobs, messages float64
	took, processor   time.Duration
	mib, most         float64
}

// drive submits jobs so that more wait than all slices take, for s.length, and says what the head did of them once all slices were busy.
func (f *fleet) drive(ctx context.Context, s *settings, w *world) (done work, err error) {
	settled := func() (float64, error) {
		all, failed := w.head.Metrics(ctx, "sluice_claims_settled_total")
		return all["committed"], failed
	}
	ended := func() (n int, failed error) {
		all, failed := w.head.Metrics(ctx, "sluice_jobs_ended_total")
		for state, count := range all {
			if n += int(count); !strings.EqualFold(state, "completed") && count > 0 {
				failed = errors.Join(failed, fmt.Errorf("%v jobs are %s", count, state))
			}
		}
		return n, failed
	}
	sent := 0
	// fill submits until twice as many subjobs are ahead as there are slices.
	fill := func() error {
		n, failed := 0, error(nil)
		if sent > 0 {
			n, failed = ended()
		}
		for failed == nil && sent-n < 2*s.fleet*s.fleetSlices/atOnce+inACall {
			files := make([]string, inACall)
			for i := range files {
				files[i] = fleetJob(sent + i)
			}
			_, failed = w.head.Submit(ctx, connect.NewRequest(&pb.SubmitRequest{Job: strings.Join(files, "---\n"), FileName: "bench"}))
			sent += inACall
		}
		return failed
	}
	if _, err = w.head.SetQueue(ctx, connect.NewRequest(&pb.SetQueueRequest{Queue: &pb.QueueSettings{Name: "default", Weight: 1,
		MaxWindow: durationpb.New(longest)}})); err != nil {
		return work{}, err
	}
	var from work
	begin := time.Now()
	for warm := false; ; {
		if err = fill(); err != nil {
			return work{}, err
		}
		if p := f.failed.Load(); p != nil {
			return work{}, *p
		}
		now := work{messages: float64(f.messages.Load()), took: time.Since(begin)}
		if now.subjobs, err = settled(); err != nil && sent == 0 {
			return work{}, err
		}
		if now.processor, _, err = w.head.Processor(); err != nil {
			return work{}, err
		}
		if now.mib, now.most, err = w.head.Resident(); err != nil {
			return work{}, err
		}
		switch {
		case !warm && now.took > s.length/3:
			warm, from = true, now
		case warm && now.took-from.took >= s.length:
			now.subjobs -= from.subjobs
			now.messages -= from.messages
			now.took -= from.took
			now.processor -= from.processor
			return now, nil
		}
		select {
		case <-ctx.Done():
			return work{}, ctx.Err()
		case <-time.After(look):
		}
	}
}

// fleetJob is a job of many short units, several subjobs at once.
func fleetJob(i int) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: fleet-%d}
spec:
  items: {total: %d, perItem: %v, parallelism: %d}
  memory: 16Mi
  tauMin: 200ms
  startup: 10ms
  command: [work]
  grace: 100ms
`, i, unitsOfAJob, plannedUnit, atOnce)
}

// fleets are a head of many machines that are always busy.
func fleets(ctx context.Context, s *settings) (rows []row, err error) {
	w, err := s.newWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	f, err := newFleet(ctx, s, w, s.fleet)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	done, err := f.drive(ctx, s, w)
	if err != nil {
		return nil, err
	}
	of := fmt.Sprintf("%d machines of %d slices whose subjobs are models, %v", s.fleet, s.fleetSlices, s.length)
	return []row{
		{"subjobs a second, " + of, "3,000", fmt.Sprintf("%.0f", done.subjobs/done.took.Seconds())},
		{"the same by a second of the head's processor time", "", fmt.Sprintf("%.0f", done.subjobs/done.processor.Seconds())},
		{"the head's memory then, at most", "512 MiB", fmt.Sprintf("%.0f MiB", done.most)},
		{"messages for each of these subjobs", "20", fmt.Sprintf("%.1f", done.messages/done.subjobs)},
	}, nil
}
