package host

import (
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// lane is a share of the inbox with a bound of its own, so that no kind of sender takes the room of another.
type lane uint8

const (
	// people wait for an answer: whoever finds the lane full is refused, and asks again.
	people lane = iota
	// bidders are the agents of external jobs. Their answers are refused like calls of people; that one has come or gone is dropped,
	// for it says so again with its next call, or is missed at the next round.
	bidders
	// peers are the gate, the zone, the node and the archive: what they say is said again from their state until it is answered, so
	// that the newest is dropped when the lane is full.
	peers
	// reports of progress are dropped when the lane is full: the next one says more.
	reports
	// world is the executor and the inventory, which say most things once. Nothing of theirs is dropped; the subjobs alive and the
	// slices bound it.
	world
	lanes
)

// room is how many messages of a lane wait at most; 0: what bounds it is outside.
func (l lane) room() int {
	return [lanes]int{people: 4096, bidders: 2048, peers: 16384, reports: 8192}[l]
}

// laneNames are the senders of each lane in metrics and the log.
var laneNames = [lanes]string{"people", "agents", "actors", "reports", "executor"}

func (l lane) String() string { return laneNames[l] }

// laneOf says which lane a message takes.
func laneOf(m *protocol.Message) lane {
	switch {
	case m.From.Role == protocol.Person:
		return people
	case m.From.Role == protocol.Bidder:
		return bidders
	case m.Kind == protocol.Report && (m.From.Role == protocol.Executor || m.From.Role == protocol.Node):
		return reports
	case m.From.Role == protocol.Executor:
		return world
	}
	return peers
}

// maxQueries is how many looks at the actors wait at most; more are refused.
const maxQueries = 4096

// query is a look at the actors from within the loop.
type query func(now quantity.Instant)

// inbox is the queue in front of the loop, in order of arrival. Senders never block.
type inbox struct {
	mu       sync.Mutex
	messages ring[protocol.Message]
	waiting  [lanes]int
	dropped  [lanes]uint64
	queries  ring[query]
	closed   bool
	ping     chan struct{} // capacity 1: something is there
	// full says that a lane drops messages, and how many it has so far, at most once in fullEvery; said is when it last did.
	full func(l lane, dropped uint64)
	said [lanes]time.Time
}

// fullEvery is the least time between two lines of the log about one lane.
const fullEvery = time.Minute

func newInbox(full func(l lane, dropped uint64)) *inbox {
	return &inbox{ping: make(chan struct{}, 1), full: full}
}

func (b *inbox) wake() {
	select {
	case b.ping <- struct{}{}:
	default:
	}
}

// put takes a message of an actor, an agent or the executor, or drops it if its lane is full. After close all are dropped, as a
// message may be.
func (b *inbox) put(m protocol.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := laneOf(&m)
	switch {
	case b.closed:
		b.dropped[l]++
	case l.room() > 0 && b.waiting[l] >= l.room():
		b.dropped[l]++
		if now := time.Now(); now.Sub(b.said[l]) >= fullEvery {
			b.said[l] = now
			b.full(l, b.dropped[l])
		}
	default:
		b.push(m)
	}
}

// call takes the message of somebody who waits for an answer, a person or an agent, or refuses it.
func (b *inbox) call(m protocol.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := laneOf(&m)
	if err := b.room(b.waiting[l], l.room()); err != nil {
		return err
	}
	b.push(m)
	return nil
}

func (b *inbox) push(m protocol.Message) {
	b.messages.push(m)
	b.waiting[laneOf(&m)]++
	b.wake()
}

// ask takes a query.
func (b *inbox) ask(q query) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(b.queries.n, maxQueries); err != nil {
		return err
	}
	b.queries.push(q)
	b.wake()
	return nil
}

func (b *inbox) room(waiting, most int) error {
	switch {
	case b.closed:
		return errStopping()
	case waiting >= most:
		return errkind.Errorf(errkind.Exhausted, "the daemon has %d calls waiting, which is its limit: ask again in a moment", waiting)
	}
	return nil
}

// take moves messages and queries into the given slices until these have n and m.
func (b *inbox) take(n, m int, messages []protocol.Message, queries []query) ([]protocol.Message, []query) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.messages.n > 0 && len(messages) < n {
		messages = append(messages, b.messages.pop())
		b.waiting[laneOf(&messages[len(messages)-1])]--
	}
	for b.queries.n > 0 && len(queries) < m {
		queries = append(queries, b.queries.pop())
	}
	if n > 0 && b.messages.n > 0 || b.queries.n > 0 {
		b.wake()
	}
	return messages, queries
}

// load is how many messages wait, and how many were dropped so far, by lane.
func (b *inbox) load() (waiting [lanes]int, dropped [lanes]uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting, b.dropped
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.messages, b.queries, b.waiting = ring[protocol.Message]{}, ring[query]{}, [lanes]int{}
}

func errStopping() error {
	return errkind.Errorf(errkind.Unavailable, "the daemon is stopping: ask again when it is back, with the same request id")
}
