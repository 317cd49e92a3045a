package world

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// World is one run. It is not safe for concurrent use.
type World struct {
	stage
	options  Options
	network  *network
	digests  *digests
	rigids   *rigids
	tasks    *tasks
	arrivals *arrivals
}

// New makes a world at time 0. An error is of kind Invalid and lists what is wrong.
func New(o Options) (*World, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &World{options: o}
	w.stage = stage{o: &w.options, c: &w.options.Cluster, here: nowhere}
	w.nodes = newNodes(w.c)
	w.network = &network{stage: &w.stage}
	w.digests, w.rigids = &digests{network: w.network}, &rigids{stage: &w.stage}
	w.tasks = &tasks{stage: &w.stage, rigids: w.rigids}
	w.arrivals = &arrivals{tasks: w.tasks}
	var err error
	w.m, err = o.Kind.New(swarm.Setup{
		Seed: keyed(o.Seed, forMechanism), Cluster: w.c, Gates: o.Gates, Period: o.Period, Delay: o.Network.Delay + o.Network.Jitter,
		Decision: o.Decision, Patience: o.Flow.Patience,
	}, w)
	if err != nil {
		return nil, err
	}
	w.digests.teller, _ = w.m.(swarm.Teller)
	w.measured = o.From == 0 // messages while the world begins count too
	w.events.Put(o.From, event{kind: opens})
	w.events.Put(o.Until, event{kind: closes})
	w.rigids.begin()
	w.arrivals.begin()
	w.arrivals.beginRunning()
	w.beginFaults()
	w.digests.begin()
	return w, nil
}

// Now is the virtual time.
func (w *World) Now() quantity.Instant { return w.now }

// Done: the window is over and no task waits.
func (w *World) Done() bool { return w.now >= w.o.Until && w.tasks.waiting == 0 }

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
	return min(w.events.Next(), w.arrivals.at, w.tasks.due(&w.tasks.expiring), w.tasks.due(&w.tasks.longOnes))
}

// Step lets one thing happen. At one instant, what was put into the heap comes first, then deadlines, then arrivals.
func (w *World) Step() {
	at := w.Next()
	w.now = at
	switch at {
	case w.events.Next():
		w.happen(w.events.Take())
	case w.tasks.due(&w.tasks.expiring):
		w.tasks.expire(w.tasks.expiring.Take())
	case w.tasks.due(&w.tasks.longOnes):
		w.tasks.expire(w.tasks.longOnes.Take())
	default:
		w.arrivals.arrive()
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
		w.digests.reported(e.A, uint8(e.B))
	case digested:
		w.digests.deliver(e.index, e.To)
	case ends:
		w.tasks.end(e.Task)
	case ticks:
		w.digests.tick(e.index)
	case tocks:
		w.digests.tock(e.index)
	case rigidIn:
		w.rigids.arrives(e.index)
	case rigidOut:
		w.rigids.leaves(e.index)
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

// Counts is what was counted up to now; Zones once the window is over.
func (w *World) Counts() Counts { return w.counts }

// Waiting is how many tasks have neither started nor expired.
func (w *World) Waiting() int64 { return w.tasks.waiting }
