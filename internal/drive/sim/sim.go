// Package sim is the simulated driver of the core: the same actors and the same protocol as in the live shell, on an
// event heap with virtual time, messages without delay and a model of the machine. A day passes in the time its steps
// take. It takes no scheduling decision and must not import the parts that do.
package sim

import (
	"container/heap"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/drive"
)

// Options of a simulation.
type Options struct {
	// Start is the first instant; the actors are recovered and told the inventory then.
	Start  quantity.Instant
	ZoneID job.ZoneID
	NodeID job.NodeID
	Actors drive.Actors
	Slices []protocol.Slice
	// Model says how a subjob really goes; nil: exactly as planned.
	Model Model
	// Fact is told every fact in order; Stepped is called after every step. Both may be nil.
	Fact    func(now quantity.Instant, f *protocol.Fact)
	Stepped func(now quantity.Instant, p drive.Party)
	// Reply is told every answer to a person; nil if nobody listens.
	Reply func(now quantity.Instant, m *protocol.Message)
}

// Sim is one simulation. It is not safe for concurrent use.
type Sim struct {
	o       Options
	parties []drive.Party
	index   map[protocol.Address]int
	wakes   []quantity.Instant
	now     quantity.Instant
	queue   []protocol.Message // to be stepped at now
	batch   []protocol.Message
	events  events
	number  uint64
	out     protocol.Out
	machine machine
	steps   uint64
}

// maxBatch is how many inputs share a round, as in the live shell.
const maxBatch = 256

// maxRounds at one instant: actors that go on beyond it would never come to rest.
const maxRounds = 100_000

// New makes a simulation whose actors have been recovered at Start. Facts of an earlier life are to be applied before.
func New(o Options) *Sim {
	if o.Model == nil {
		o.Model = Planned
	}
	s := &Sim{o: o, now: o.Start, index: map[protocol.Address]int{}, parties: o.Actors.Parties(o.ZoneID, o.NodeID)}
	s.machine = machine{sim: s, runs: map[job.Token]*run{}}
	for i, p := range s.parties {
		s.index[p.Address] = i
		s.wakes = append(s.wakes, quantity.Never)
	}
	for i := range s.parties {
		p := s.parties[i]
		from := [2]int{len(s.out.Facts), len(s.out.Effects)}
		p.Actor.Recover(s.now, &s.out)
		s.stepped(p, from)
	}
	first := protocol.Message{
		Kind: protocol.Inventory, From: s.executor(), To: protocol.Address{Role: protocol.Node, ID: string(o.NodeID)}, Slices: o.Slices,
	}
	s.queue = append(s.queue, first)
	s.dispatch()
	return s
}

// Now is the present virtual time.
func (s *Sim) Now() quantity.Instant { return s.now }

// Steps is how many inputs were taken so far.
func (s *Sim) Steps() uint64 { return s.steps }

// At makes m arrive at t, or now if t has passed. Inputs for the same instant arrive in the order of the calls.
func (s *Sim) At(t quantity.Instant, m protocol.Message) {
	s.schedule(event{at: max(t, s.now), message: m})
}

// Run goes on until nothing is left to happen before until; the time is then until. An error of kind Unknown means that
// the actors never come to rest at one instant, which is a bug of theirs.
func (s *Sim) Run(until quantity.Instant) error {
	for rounds := 0; ; rounds++ {
		if s.round() {
			if rounds > maxRounds {
				return errkind.Errorf(errkind.Unknown, "at %v the actors do not come to rest: %d rounds and still something to do", s.now.Time(), rounds)
			}
			continue
		}
		rounds = 0
		next := s.next()
		if next > until || next == quantity.Never {
			s.now = max(s.now, until)
			return nil
		}
		s.now = max(s.now, next)
		for len(s.events) > 0 && s.events[0].at <= s.now {
			e := heap.Pop(&s.events).(event)
			if e.ends == nil {
				s.queue = append(s.queue, e.message)
			} else {
				s.machine.due(e.ends, e.version)
			}
		}
	}
}

// round is one turn of the live loop: inputs, ticks, then effects. It says whether there was anything to do.
func (s *Sim) round() bool {
	n := min(maxBatch, len(s.queue))
	s.batch = append(s.batch[:0], s.queue[:n]...)
	s.queue = append(s.queue[:0], s.queue[n:]...)
	for i := range s.batch {
		if p, ok := s.index[s.batch[i].To]; ok {
			s.step(p, s.batch[i])
		}
	}
	for i, w := range s.wakes {
		if w <= s.now {
			s.wakes[i] = quantity.Never
			s.step(i, drive.Tick(s.parties[i].Address))
			n++
		}
	}
	s.dispatch()
	return n > 0
}

func (s *Sim) step(i int, m protocol.Message) {
	p := s.parties[i]
	from := [2]int{len(s.out.Facts), len(s.out.Effects)}
	p.Actor.Step(s.now, m, &s.out)
	s.steps++
	s.stepped(p, from)
}

func (s *Sim) stepped(p drive.Party, from [2]int) {
	for i := from[0]; i < len(s.out.Facts); i++ {
		s.out.Facts[i].Actor = p.Address
		if s.o.Fact != nil {
			s.o.Fact(s.now, &s.out.Facts[i])
		}
	}
	for i := from[1]; i < len(s.out.Effects); i++ {
		s.out.Effects[i].From = p.Address
	}
	if s.o.Stepped != nil {
		s.o.Stepped(s.now, p)
	}
}

func (s *Sim) dispatch() {
	for i := range s.out.Effects {
		m := &s.out.Effects[i]
		switch m.To.Role {
		case protocol.Gate, protocol.Zone, protocol.Node:
			s.queue = append(s.queue, *m)
		case protocol.Executor:
			s.machine.do(m)
		case protocol.Timer:
			p := s.index[m.From]
			s.wakes[p] = min(s.wakes[p], m.At)
		case protocol.Person:
			if s.o.Reply != nil {
				s.o.Reply(s.now, m)
			}
		}
	}
	clear(s.out.Effects)
	clear(s.out.Facts)
	s.out.Reset()
}

// next is when something happens next.
func (s *Sim) next() quantity.Instant {
	next := quantity.Never
	if len(s.events) > 0 {
		next = s.events[0].at
	}
	for _, w := range s.wakes {
		next = min(next, w)
	}
	return next
}

func (s *Sim) executor() protocol.Address {
	return protocol.Address{Role: protocol.Executor, ID: string(s.o.NodeID)}
}

func (s *Sim) schedule(e event) {
	s.number++
	e.number = s.number
	heap.Push(&s.events, e)
}

// event is a message that arrives, or a subjob that ends unless its course has changed since.
type event struct {
	at      quantity.Instant
	number  uint64 // ties end on it
	message protocol.Message
	ends    *run
	version int
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return x
}
