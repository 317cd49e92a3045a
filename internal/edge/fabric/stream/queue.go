package stream

import (
	"sync"

	"sluice.dev/sluice/internal/core/protocol"
)

// room is how many messages wait for a link at most. Beyond it the newest are dropped, as every fabric may: the other side is slower than
// what is said to it, and old messages are no better than the new ones that would take their place.
const room = 16384

// queue holds the messages that wait for one link.
type queue struct {
	mu      sync.Mutex
	list    []protocol.Message
	dropped uint64
	ready   chan struct{} // capacity 1: something is there
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// put reports whether there was room.
func (q *queue) put(m protocol.Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) >= room {
		q.dropped++
		return false
	}
	q.list = append(q.list, m)
	select {
	case q.ready <- struct{}{}:
	default:
	}
	return true
}

// take moves all messages that wait into the given slice.
func (q *queue) take(into []protocol.Message) []protocol.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	into = append(into, q.list...)
	clear(q.list) // their bodies are not kept alive by an idle link
	q.list = q.list[:0]
	return into
}

// drop counts a message that was taken and can't be sent.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped++
}

// lost is how many messages found no room, or can't be sent.
func (q *queue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
