package queues

import "sluice.dev/sluice/internal/core/quantity"

// meter sums what running subjobs have had so far: for each its memory times the whole milliseconds since its start. It
// counts for a policy like what ended ones have had: else a job that continues from window to window would look as if it
// had never been served, and keep its slice from everybody.
//
// With starts and now split into whole milliseconds and a rest, whole milliseconds since a start are the difference of the
// whole parts, less one where the start's rest is larger. So the sum follows from two sums over all, and one over those of
// larger rests, which a Fenwick tree over coarse rests and the list of one of them give. Sums wrap around and come out
// right, as the result fits.
type meter struct {
	memory, memoryTime int64
	latest             quantity.Instant
	*meterTree         // nil until something runs: most queues that anybody asks about are of one question
}

type meterTree struct {
	tree  [meterRests + 1]int64
	rests [meterRests][]started
}

// meterRests divides a millisecond into about a microsecond each.
const meterRests = 1024

type started struct {
	at     quantity.Instant
	memory int64
}

func (m *meter) add(start quantity.Instant, memory int64) {
	m.change(start, memory)
	slot := restOf(start)
	m.rests[slot] = append(m.rests[slot], started{start, memory})
	m.latest = max(m.latest, start)
}

func (m *meter) remove(start quantity.Instant, memory int64) {
	m.change(start, -memory)
	list := m.rests[restOf(start)]
	for i := range list {
		if list[i] == (started{start, memory}) {
			list[i] = list[len(list)-1]
			m.rests[restOf(start)] = list[:len(list)-1]
			return
		}
	}
}

func (m *meter) change(start quantity.Instant, memory int64) {
	if m.meterTree == nil {
		m.meterTree = &meterTree{}
	}
	m.memory += memory
	m.memoryTime += memory * (int64(start) / 1e6)
	for i := restOf(start) + 1; i <= meterRests; i += i & -i {
		m.tree[i] += memory
	}
}

func restOf(t quantity.Instant) int { return int(int64(t) % 1e6 * meterRests / 1e6) }

// at is the sum, in MiB-milliseconds.
func (m *meter) at(now quantity.Instant) int64 {
	if m.memory == 0 {
		return 0
	}
	if now < m.latest { // a node's clock runs ahead: what begins later has had nothing
		sum := int64(0)
		for _, list := range m.rests {
			for _, s := range list {
				sum += s.memory * max(0, now.Sub(s.at).Milliseconds())
			}
		}
		return sum
	}
	slot, larger := restOf(now), m.memory
	for i := slot + 1; i > 0; i -= i & -i {
		larger -= m.tree[i]
	}
	for _, s := range m.rests[slot] {
		if int64(s.at)%1e6 > int64(now)%1e6 {
			larger += s.memory
		}
	}
	return m.memory*(int64(now)/1e6) - m.memoryTime - larger
}
