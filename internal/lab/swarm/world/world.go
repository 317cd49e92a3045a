package world

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/agenda"
	"sluice.dev/sluice/internal/lab/swarm"
)

// World is one run. It is not safe for concurrent use.
type World struct {
	o Options
	c *swarm.Cluster
	m swarm.Mechanism
	// teller is m if it adds to digests.
	teller swarm.Teller

	now    quantity.Instant
	events agenda.Heap[event]
	// here is the place of the call that the mechanism is in, nowhere outside of one.
	here swarm.Place

	nodes
	tasks []task
	spare []uint32 // slots of tasks that are over
	// waiting tasks that have neither started nor expired; expiring by their two patiences.
	waiting            int64
	expiring, longOnes deadlines
	arrivals           arrivals
	rigids             rigids
	zones              []zone
	digests            digests
	messages           uint64 // numbers them, for their draws
	counts             Counts
	measured           bool // within the window
}

const nowhere = swarm.Place(-1)

// event is what the heap holds. message is of messages, timers and reports.
type event struct {
	kind  eventKind
	epoch uint32 // of a timer's zone: those of an earlier life are void
	index int32
	swarm.Message
}

type eventKind uint8

const (
	arrives  eventKind = iota // message
	wakes                     // message to its own place
	reports                   // A is the node, B its free slices
	digested                  // index of the digest under way, To the gate
	ends                      // Task
	ticks                     // index of the zone: its nodes report
	tocks                     // index of the zone: it sends its digest
	rigidIn                   // index of the zone
	rigidOut                  // index of the rigid job
	strikes                   // index of the fault
	passes                    // index of the fault
	opens                     // the window
	closes                    // the window
)

// New makes a world at time 0. An error is of kind Invalid and lists what is wrong.
func New(o Options) (*World, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &World{o: o, here: nowhere}
	w.c = &w.o.Cluster
	w.nodes = newNodes(w.c)
	w.zones = make([]zone, w.c.Zones)
	for z := range w.zones {
		w.zones[z].leftover = w.slotsOf(int32(z))
	}
	var err error
	w.m, err = o.Kind.New(swarm.Setup{
		Seed: keyed(o.Seed, forMechanism), Cluster: w.c, Gates: o.Gates, Period: o.Period, Delay: o.Network.Delay + o.Network.Jitter,
		Decision: o.Decision, Patience: o.Flow.Patience,
	}, w)
	if err != nil {
		return nil, err
	}
	w.teller, _ = w.m.(swarm.Teller)
	w.measured = o.From == 0 // what is said while the world begins counts too
	w.events.Put(o.From, event{kind: opens})
	w.events.Put(o.Until, event{kind: closes})
	w.beginRigid()
	w.beginFlow()
	w.beginRunning()
	w.beginFaults()
	w.beginTelling()
	return w, nil
}

func keyed(keys ...uint64) uint64 {
	s := prng.New(keys...)
	return s.Uint64()
}

// Now is the virtual time.
func (w *World) Now() quantity.Instant { return w.now }

// Done: the window is over and no task waits.
func (w *World) Done() bool { return w.now >= w.o.Until && w.waiting == 0 }

// Run lets everything happen up to an instant, that included, or until Done.
func (w *World) Run(until quantity.Instant) {
	for !w.Done() {
		at := w.Next()
		if at > until {
			w.now = max(w.now, until)
			return
		}
		w.Step()
	}
}

// Next is when the next thing happens.
func (w *World) Next() quantity.Instant {
	return min(w.events.Next(), w.arrivals.at, w.due(&w.expiring), w.due(&w.longOnes))
}

// Step lets one thing happen. At one instant, what was put into the heap comes first, then deadlines, then arrivals.
func (w *World) Step() {
	at := w.Next()
	w.now = at
	switch at {
	case w.events.Next():
		w.happen(w.events.Take())
	case w.due(&w.expiring):
		w.expire(w.expiring.Take())
	case w.due(&w.longOnes):
		w.expire(w.longOnes.Take())
	default:
		w.arrive()
	}
	w.here = nowhere
}

func (w *World) happen(e event) {
	switch e.kind {
	case arrives:
		if w.enter(e.To) {
			w.m.Hear(w.now, e.Message)
		}
	case wakes:
		if z := w.zoneOf(e.To); z < 0 || w.zones[z].epoch == e.epoch && !w.zones[z].dead {
			w.here = e.To
			w.m.Wake(w.now, e.Message)
		}
	case reports:
		w.reported(e.A, uint8(e.B))
	case digested:
		w.deliver(e.index, e.To)
	case ends:
		w.end(e.Task)
	case ticks:
		w.tick(e.index)
	case tocks:
		w.tock(e.index)
	case rigidIn:
		w.rigidArrives(e.index)
	case rigidOut:
		w.rigidLeaves(e.index)
	case strikes:
		w.strike(&w.o.Faults.Zones[e.index])
	case passes:
		w.pass(&w.o.Faults.Zones[e.index])
	case opens:
		w.open()
	case closes:
		w.close()
	}
}

// enter makes a place that is alive the one where the mechanism is.
func (w *World) enter(p swarm.Place) bool {
	if z := w.zoneOf(p); z >= 0 && w.zones[z].dead {
		return false
	}
	w.here = p
	return true
}

// zoneOf is the zone that a place lies in, -1 for gates and the center.
func (w *World) zoneOf(p swarm.Place) int32 {
	switch role, i := w.c.Whose(p); role {
	case swarm.Node:
		return w.c.Zone(i)
	case swarm.Zone:
		return i
	default:
		return -1
	}
}

// must stops the run: a mechanism has done what its contract forbids. It is apart so that what is checked at every event costs
// nothing but the check.
func (w *World) must(format string, args ...any) {
	invariant.Check(false, "mechanism %s at %d ns: "+format, append([]any{w.o.Kind.Name, int64(w.now)}, args...)...)
}
