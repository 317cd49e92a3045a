// Package fleet is a large cluster in the simulator that is busy for ever: n nodes of four slices under one zone, and an
// endless stream of divisible jobs of several shapes and queues, more than the slices can do. It measures what the whole
// protocol costs at a size (docs/benchmarks.md). It knows nothing of how the numbers are shown.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// Options of a fleet.
type Options struct {
	// Nodes of Slices each. Both at least 1.
	Nodes int
	// Negotiates runs mechanism jasda; otherwise sja under fair.
	Negotiates bool
	Seed       uint64
}

// Slices of every node: two small and two large ones, so that there are classes to choose between.
const Slices = 4

// horizon bounds a window where no end is known, and so a subjob: some minutes, so that many come and go.
const horizon = 10 * time.Minute

// Fleet is one such cluster. It is not safe for concurrent use.
type Fleet struct {
	*sim.Sim
	Metrics *measure.Collector

	counts    Counts
	slices    int
	wanted    int64 // subjobs after which Go stops
	cancelled context.CancelCauseFunc
}

// Counts of what has happened so far.
type Counts struct {
	// Sold is how many subjobs were claimed, Done how many have come to their end, Finished how many jobs.
	Sold, Done, Finished int64
	// Facts of all actors, and Steps that they took.
	Facts int64
	Steps uint64
}

// Busy is how many subjobs hold a slice, one each.
func (c Counts) Busy() int64 { return c.Sold - c.Done }

// New boots a fleet. Nothing has been submitted yet.
func New(o Options) (*Fleet, error) {
	if o.Nodes < 1 {
		return nil, fmt.Errorf("fleet: %d nodes; want at least 1", o.Nodes)
	}
	f := &Fleet{slices: o.Nodes * Slices}
	zc := zone.Config{ID: "zone", Policy: fair.Policy{}, Horizon: horizon}
	if o.Negotiates {
		zc.Market = &auction.Config{}
	}
	g, err1 := gate.New(gate.Config{Zones: gate.Alone(zc.ID), Horizon: horizon, Retain: time.Second, MaxJobs: 1 << 30,
		External: o.Negotiates})
	z, err2 := zone.New(zc)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var specs workload.Specs
	so := sim.Options{
		Start: quantity.Instant(epoch), Gates: actor.OneGate(g), Zones: []actor.ZoneAt{{ID: zc.ID, Zone: z}}, Seed: o.Seed,
		Spec: func(j *workload.Job) (*job.Spec, error) { return specs.Spec(j, j.Name()) },
		Fact: f.hear,
	}
	for i := range o.Nodes {
		id := job.NodeID(fmt.Sprintf("n%05d", i))
		n := sim.Node{ID: id, Actor: node.New(node.Config{ID: id, Zone: zc.ID, Number: i, Horizon: horizon})}
		for j := range Slices {
			n.Slices = append(n.Slices, slice(id, j))
		}
		so.Nodes = append(so.Nodes, n)
	}
	so.Source = &stream{fleet: f, target: f.slices * 5 / 4, spacing: f.spacing()} // one for every four slices waits
	classes := sim.Classes(so.Nodes)
	var err error
	if f.Metrics, err = measure.New(measure.Config{Classes: classes,
		Usable: func(*workload.Job) uint64 { return 1<<len(classes) - 1 }}); err != nil {
		return nil, err
	}
	so.Observer = f.Metrics
	if f.Sim, err = sim.New(so); err != nil {
		return nil, err
	}
	person := protocol.Address{Role: protocol.Person, ID: "fleet"}
	for i := range queues {
		name := queueName(i)
		f.At(0, protocol.Message{
			Kind: protocol.SetQueue, From: person, To: protocol.Address{Role: protocol.Gate},
			Body: &protocol.QueueSetting{Request: "queue " + name,
				Queue: &protocol.Queue{Name: name, Weight: int64(1 + i)}},
		})
	}
	return f, nil
}

// epoch is when a fleet boots: an instant of 0 stands for none.
const epoch = time.Hour

// slice is one of a node's.
func slice(n job.NodeID, i int) protocol.Slice {
	s := protocol.Slice{ID: job.SliceID(fmt.Sprintf("%s/%d", n, i)), Profile: "3g.20gb", Speed: 430, Capacity: trp.Vector{20 << 30}}
	if i >= Slices/2 {
		s.Profile, s.Speed, s.Capacity = "4g.40gb", 570, trp.Vector{40 << 30}
	}
	return s
}

func (f *Fleet) hear(_ quantity.Instant, x *protocol.Fact) {
	f.counts.Facts++
	switch x.Kind {
	case protocol.Claimed:
		f.counts.Sold++
	case protocol.Committed, protocol.Released:
		if f.counts.Done++; f.counts.Done == f.wanted {
			f.cancelled(errEnough)
		}
	case protocol.Ended:
		f.counts.Finished++
	}
}

// errEnough ends a run that has seen as many subjobs as it was to.
var errEnough = errors.New("enough")

// Counts so far.
func (f *Fleet) Counts() Counts {
	c := f.counts
	c.Steps = f.Steps()
	return c
}

// Fill runs until all slices have been busy for a window's length, so that subjobs end as they do from then on: not all at
// once.
func (f *Fleet) Fill(ctx context.Context) error {
	if err := f.Run(ctx, f.Now().Add(3*horizon)); err != nil {
		return err
	}
	return f.check()
}

// Go runs until about n more subjobs have ended: the simulation looks up only every few thousand rounds.
func (f *Fleet) Go(ctx context.Context, n int64) error {
	ctx, f.cancelled = context.WithCancelCause(ctx)
	defer f.cancelled(nil)
	f.wanted = f.counts.Done + n
	err := f.Run(ctx, quantity.Never)
	if errors.Is(context.Cause(ctx), errEnough) {
		return f.check()
	}
	return err
}

// check: a fleet that is not busy measures something else.
func (f *Fleet) check() error {
	if busy := f.Counts().Busy(); busy < int64(f.slices)*9/10 {
		return fmt.Errorf("fleet: only %d of %d slices are busy at %v; the stream is too thin", busy, f.slices, f.Now().Time())
	}
	return nil
}
