package sim

import "sluice.dev/sluice/internal/core/protocol"

// mail keeps messages that are under way. A message is half a kilobyte: queue and heap hold its number alone.
type mail struct {
	messages []protocol.Message
	free     []int32
}

// post keeps a copy of m and returns its number.
func (b *mail) post(m *protocol.Message) int32 {
	if n := len(b.free); n > 0 {
		i := b.free[n-1]
		b.free = b.free[:n-1]
		b.messages[i] = *m
		return i
	}
	b.messages = append(b.messages, *m)
	return int32(len(b.messages) - 1)
}

// drop frees the place of a message.
func (b *mail) drop(i int32) {
	b.messages[i] = protocol.Message{} // its pointers hold memory
	b.free = append(b.free, i)
}
