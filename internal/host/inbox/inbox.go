// Package inbox is the queue in front of the loop: messages to the actors, and queries of their state. Senders never block, and each kind
// of sender has a bound of its own, so that none fills the queue for the others.
package inbox

import (
	"context"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Lane is the queue of one kind of sender, with a bound of its own.
type Lane uint8

const (
	// People wait for an answer: a call that finds the lane full is refused, and asks again.
	People Lane = iota
	// Bidders are the agents of external jobs. Their answers are refused like calls of people; messages that one has come or gone are
	// dropped, as the next call says it again, or its absence shows at the next round.
	Bidders
	// Peers are the gate, the zone, the node and the archive: their messages are repeated from their state until answered, so the newest is
	// dropped when the lane is full.
	Peers
	// Reports of progress are dropped when the lane is full: the next one says more.
	Reports
	// World is the executor and the inventory, which say most things once. Nothing of theirs is dropped; the subjobs alive and the
	// slices bound it.
	World
	// Lanes is how many there are.
	Lanes
)

// Room is how many messages of a lane wait at most; 0: it is bounded by what sends to it.
func (l Lane) Room() int {
	return [Lanes]int{People: 4096, Bidders: 2048, Peers: 16384, Reports: 8192}[l]
}

// laneNames are the senders of each lane in metrics and the log.
var laneNames = [Lanes]string{"people", "agents", "actors", "reports", "executor"}

func (l Lane) String() string { return laneNames[l] }

// laneOf returns the lane of a message.
func laneOf(m *protocol.Message) Lane {
	switch {
	case m.From.Role == protocol.Person:
		return People
	case m.From.Role == protocol.Bidder:
		return Bidders
	case m.Kind == protocol.Report && (m.From.Role == protocol.Executor || m.From.Role == protocol.Node):
		return Reports
	case m.From.Role == protocol.Executor:
		return World
	}
	return Peers
}

// maxQueries is how many queries wait at most; more are refused.
const maxQueries = 4096

// Query reads the state of the actors from within the loop.
type Query func(now quantity.Instant)

// Inbox is the queue in front of the loop, in order of arrival. Senders never block.
type Inbox struct {
	mu       sync.Mutex
	messages ring[protocol.Message]
	waiting  [Lanes]int
	dropped  [Lanes]uint64
	queries  ring[Query]
	closed   bool
	ping     chan struct{} // capacity 1: something is there
	done     chan struct{} // closed with the inbox
	// full is called when a lane drops messages, with how many it has dropped so far, at most once in fullEvery; said is when it was last
	// called.
	full func(l Lane, dropped uint64)
	said [Lanes]time.Time
}

// fullEvery is the least time between two lines of the log about one lane.
const fullEvery = time.Minute

// New returns an empty inbox. full is called when a lane drops messages.
func New(full func(l Lane, dropped uint64)) *Inbox {
	return &Inbox{ping: make(chan struct{}, 1), done: make(chan struct{}), full: full}
}

// Ping gets a signal when something is there, which stays until it is read.
func (b *Inbox) Ping() <-chan struct{} { return b.ping }

// Done is closed when nothing is answered any more.
func (b *Inbox) Done() <-chan struct{} { return b.done }

func (b *Inbox) wake() {
	select {
	case b.ping <- struct{}{}:
	default:
	}
}

// Put takes a message of an actor, an agent or the executor, or drops it if its lane is full. After close all are dropped, as a
// message may be.
func (b *Inbox) Put(m protocol.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := laneOf(&m)
	switch {
	case b.closed:
		b.dropped[l]++
	case l.Room() > 0 && b.waiting[l] >= l.Room():
		b.dropped[l]++
		if now := time.Now(); now.Sub(b.said[l]) >= fullEvery {
			b.said[l] = now
			b.full(l, b.dropped[l])
		}
	default:
		b.push(m)
	}
}

// Call takes the message of somebody who waits for an answer, a person or an agent, or refuses it.
func (b *Inbox) Call(m protocol.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := laneOf(&m)
	if err := b.room(b.waiting[l], l.Room()); err != nil {
		return err
	}
	b.push(m)
	return nil
}

func (b *Inbox) push(m protocol.Message) {
	b.messages.push(m)
	b.waiting[laneOf(&m)]++
	b.wake()
}

// Ask runs f within the loop, between batches, where what the actors know is durable, and hands its result out. What f returns must not
// share memory that an actor will change.
func Ask[T any](ctx context.Context, b *Inbox, f func(now quantity.Instant) T) (T, error) {
	var zero T
	ch := make(chan T, 1)
	if err := b.ask(func(now quantity.Instant) { ch <- f(now) }); err != nil {
		return zero, err
	}
	select {
	case v := <-ch:
		return v, nil
	case <-ctx.Done():
		return zero, errkind.Errorf(errkind.Unavailable, "the daemon did not answer in time: %w", ctx.Err())
	case <-b.done:
		return zero, ErrStopping()
	}
}

func (b *Inbox) ask(q Query) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(b.queries.n, maxQueries); err != nil {
		return err
	}
	b.queries.push(q)
	b.wake()
	return nil
}

func (b *Inbox) room(waiting, most int) error {
	switch {
	case b.closed:
		return ErrStopping()
	case waiting >= most:
		return errkind.Errorf(errkind.Exhausted, "the daemon has %d calls waiting, which is its limit: ask again in a moment", waiting)
	}
	return nil
}

// Take moves messages and queries into the given slices until these have n and m.
func (b *Inbox) Take(n, m int, messages []protocol.Message, queries []Query) ([]protocol.Message, []Query) {
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

// Load returns how many messages wait, and how many were dropped so far, by lane.
func (b *Inbox) Load() (waiting [Lanes]int, dropped [Lanes]uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting, b.dropped
}

// Close refuses calls from now on, and releases those that wait. It may be called once.
func (b *Inbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.messages, b.queries, b.waiting = ring[protocol.Message]{}, ring[Query]{}, [Lanes]int{}
	close(b.done)
}

// ErrStopping is the answer of a daemon that stops.
func ErrStopping() error {
	return errkind.Errorf(errkind.Unavailable, "the daemon is stopping: ask again when it is back, with the same request id")
}
