package executor

import (
	"sync"

	"sluice.dev/sluice/internal/core/protocol"
)

// Outbox hands an executor's answers over one at a time and in order, from a goroutine of its own that lives only while
// there are any: whoever posts never waits for whoever listens. Make it with NewOutbox; it is safe for concurrent use.
type Outbox struct {
	deliver func(protocol.Message)

	mu           sync.Mutex
	queue        []protocol.Message
	busy, closed bool
}

// NewOutbox makes an empty outbox.
func NewOutbox(deliver func(protocol.Message)) *Outbox { return &Outbox{deliver: deliver} }

// Post queues a message; after Close it drops it.
func (b *Outbox) Post(m protocol.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.queue = append(b.queue, m)
	if !b.busy {
		b.busy = true
		go b.drain()
	}
}

func (b *Outbox) drain() {
	for {
		b.mu.Lock()
		if b.closed || len(b.queue) == 0 {
			b.busy = false
			b.mu.Unlock()
			return
		}
		m := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		b.deliver(m)
	}
}

// Close drops what was not delivered. A delivery that has begun goes on.
func (b *Outbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.queue = true, nil
}
