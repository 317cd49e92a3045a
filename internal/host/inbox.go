package host

import (
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Bounds of the inbox. What people send is refused beyond maxCalls; reports, which may be lost, are dropped beyond
// maxReports. What actors and the executor send is always taken: live leases bound how much that can be.
const (
	maxCalls   = 4096
	maxReports = 8192
)

// query is a look at the actors from within the loop.
type query func(now quantity.Instant)

// inbox is the queue in front of the loop. Senders never block.
type inbox struct {
	mu       sync.Mutex
	messages []protocol.Message
	queries  []query
	dropped  uint64
	closed   bool
	ping     chan struct{} // capacity 1: something is there
}

func newInbox() *inbox { return &inbox{ping: make(chan struct{}, 1)} }

func (b *inbox) wake() {
	select {
	case b.ping <- struct{}{}:
	default:
	}
}

// put takes a message of an actor or the executor. After close it is dropped, as a message may be.
func (b *inbox) put(m protocol.Message) {
	b.mu.Lock()
	if b.closed || m.Kind == protocol.Report && len(b.messages) >= maxReports {
		b.dropped++
	} else {
		b.messages = append(b.messages, m)
	}
	b.mu.Unlock()
	b.wake()
}

// call takes a person's message.
func (b *inbox) call(m protocol.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(len(b.messages), maxCalls); err != nil {
		return err
	}
	b.messages = append(b.messages, m)
	b.wake()
	return nil
}

// answer takes an agent's answer. Agents leave half of the room to people.
func (b *inbox) answer(m protocol.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(len(b.messages), maxCalls/2); err != nil {
		return err
	}
	b.messages = append(b.messages, m)
	b.wake()
	return nil
}

// ask takes a query.
func (b *inbox) ask(q query) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(len(b.queries), maxCalls); err != nil {
		return err
	}
	b.queries = append(b.queries, q)
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

// take moves up to n messages and all queries into the given slices.
func (b *inbox) take(n int, messages []protocol.Message, queries []query) ([]protocol.Message, []query) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.messages))
	messages = append(messages, b.messages[:n]...)
	rest := copy(b.messages, b.messages[n:])
	clear(b.messages[rest:])
	b.messages = b.messages[:rest]
	queries = append(queries, b.queries...)
	clear(b.queries)
	b.queries = b.queries[:0]
	if rest > 0 {
		b.wake()
	}
	return messages, queries
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.messages, b.queries = nil, nil
}

func errStopping() error {
	return errkind.Errorf(errkind.Unavailable, "the daemon is stopping: ask again when it is back, with the same request id")
}
