package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
)

// Link is what happens to messages on one kind of way. The zero value delivers each at once, in order.
type Link struct {
	// Delay of every message, and the mean of an exponential one on top, which also reorders them.
	Delay, Jitter time.Duration
	// Loss and Double are the chances, in parts per million, that a message never arrives and that it arrives twice.
	Loss, Double int64
}

// Network is what lies between the actors. What a node says to the gate takes the way of ZoneNode; ZoneBidder is the way to
// and from the agents of external jobs.
type Network struct {
	GateZone, ZoneNode, ZoneBidder Link
}

// Which stream of random numbers is for what. Every draw has its own stream, keyed by ids, so that no draw moves another.
const (
	forMessage uint64 = iota + 1
	forFault
	forClock
)

// network carries messages.
type network struct {
	Network
	seed uint64
	// sent counts the messages of each way, from one party to another, which numbers them.
	sent map[[2]int]uint64
}

func (n *network) link(from, to protocol.Role) *Link {
	if from != protocol.Node && to != protocol.Node {
		return &n.GateZone
	}
	return &n.ZoneNode
}

// send puts an actor's message under way: lost, once or twice, each with its delay.
func (s *Sim) send(from, to int, m *protocol.Message) {
	s.told++
	if s.parties[from].cut[outbound] > 0 || s.parties[to].cut[inbound] > 0 {
		return
	}
	l := s.network.link(m.From.Role, m.To.Role)
	if *l == (Link{}) {
		s.queue = append(s.queue, s.mail.post(m))
		return
	}
	way := [2]int{from, to}
	s.network.sent[way]++
	s.carry(l, prng.New(s.network.seed, forMessage, s.parties[from].key, s.parties[to].key, s.network.sent[way]), 0, m)
}

// carry lets a message arrive as often and as late as the draw says. Without a link and at once it is there.
func (s *Sim) carry(l *Link, draw prng.Stream, later time.Duration, m *protocol.Message) {
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

// hit draws something that has a chance in parts per million.
func hit(draw *prng.Stream, ppm int64) bool {
	return int64(draw.IntN(1_000_000)) < ppm
}
