package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/agenda"
	"sluice.dev/sluice/internal/lab/sim/skew"
)

// ground is what all parts of a simulation stand on: the parties, the time, what is to happen, and messages under way. Invariant: queue
// holds what is to be stepped now, to parties that are up when it comes there.
type ground struct {
	o       *Options
	parties []party // the gates, the zones, then the nodes from node on, then the berths of pilots
	node    int
	gates   protocol.Gates
	index   map[protocol.Address]int
	wakes   agenda.Wakes

	now     quantity.Instant
	events  agenda.Heap[event]
	mail    mail
	queue   line
	told    int // messages between actors since the observer heard of any
	network network
	// bidder hears what arrives for agents.
	bidder func(*protocol.Message)
}

// line is the numbers of the messages to be stepped at now, from head on.
type line struct {
	list []int32
	head int
}

// put adds the number of one.
func (q *line) put(i int32) { q.list = append(q.list, i) }

// next takes the first.
func (q *line) next() (i int32) {
	i = q.list[q.head]
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return i
}

// party is one actor with what the driver knows of it.
type party struct {
	actor.Party
	key   uint64 // names it in random draws
	clock skew.Clock
	trouble
}

// trouble is what is wrong with a party at present.
type trouble struct {
	down bool
	up   quantity.Instant // when it comes back, if it is down
	cut  [2]int           // how many partitions keep its messages from it, and from the others
}

const (
	inbound = iota
	outbound
)

// event is what the heap holds: a message that arrives, a run that ends unless its course has changed since, an arrival, or
// a fault that begins or is over.
type event struct {
	kind    eventKind
	index   int32 // of the message, party or fault
	version int32
	run     *run
}

type eventKind uint8

const (
	arrives eventKind = iota + 1
	ends
	submits
	strikes
	passes
	attends
	beats
	visits
	lends
	turns
	parts
)

// none is the slot of jobs that are not the source's.
const none = int32(-1)

// arrive queues a message that has come, unless nobody is there to take it.
func (s *ground) arrive(i int32) {
	m := &s.mail.messages[i]
	if m.To.Role == protocol.Bidder {
		heard := *m
		s.mail.drop(i)
		s.bidder(&heard)
		return
	}
	p, known := s.index[m.To]
	if known && s.parties[p].down {
		if m.From.Role == protocol.Person {
			s.events.Put(s.parties[p].up, event{kind: arrives, index: i})
			return
		}
		known = false
	}
	if !known {
		s.mail.drop(i)
		return
	}
	s.queue.put(i)
}

// berth is the first party that is a berth.
func (s *ground) berth() int { return s.node + len(s.o.Nodes) }

// local is the time by a party's own clock.
func (s *ground) local(p int) quantity.Instant { return s.parties[p].clock.Shows(s.now) }

func (s *ground) enqueue(m *protocol.Message) { s.queue.put(s.mail.post(m)) }

// send puts an actor's message under way: lost, once or twice, each with its delay.
func (s *ground) send(from, to int, m *protocol.Message) {
	s.told++
	if s.o.Mailed != nil {
		s.o.Mailed(m)
	}
	if s.parties[from].cut[outbound] > 0 || s.parties[to].cut[inbound] > 0 {
		return
	}
	l := s.network.link(m.From.Role, m.To.Role)
	if *l == (Link{}) {
		s.queue.put(s.mail.post(m))
		return
	}
	way := [2]int{from, to}
	s.network.sent[way]++
	s.carry(l, prng.New(s.network.seed, forMessage, s.parties[from].key, s.parties[to].key, s.network.sent[way]), 0, m)
}

// carry lets a message arrive as often and as late as the draw says. Without a link and at once it is there.
func (s *ground) carry(l *Link, draw prng.Stream, later time.Duration, m *protocol.Message) {
	if *l == (Link{}) && later == 0 {
		s.arrive(s.mail.post(m))
		return
	}
	copies := 1
	if hit(&draw, l.Loss) {
		copies = 0
	} else if hit(&draw, l.Double) {
		copies = 2
	}
	for range copies {
		late := later + l.Delay + time.Duration(draw.Exp()*float64(l.Jitter))
		s.events.Put(s.now.Add(late), event{kind: arrives, index: s.mail.post(m)})
	}
}
