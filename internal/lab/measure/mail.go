package measure

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
)

// Mail counts what actors say to each other, by kind.
type Mail struct {
	kinds  [1 << 8]Mailed
	buffer []byte
}

// Mailed is how many messages of one kind were sent, and how many bytes they have as they are encoded for other machines.
type Mailed struct {
	Kind         string
	Count, Bytes int64
}

// Count counts one message.
func (m *Mail) Count(of *protocol.Message) {
	m.buffer = wire.AppendMessage(m.buffer[:0], of)
	k := &m.kinds[of.Kind]
	k.Count, k.Bytes = k.Count+1, k.Bytes+int64(len(m.buffer))
}

// List is every kind that was sent, the most frequent first. It may be called on nil: nothing was counted.
func (m *Mail) List() (list []Mailed) {
	if m == nil {
		return nil
	}
	for k, of := range m.kinds {
		if of.Count > 0 {
			of.Kind = protocol.NameOf(protocol.Kind(k)) //nolint:gosec // as many as a kind can have
			list = append(list, of)
		}
	}
	slices.SortStableFunc(list, func(a, b Mailed) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
