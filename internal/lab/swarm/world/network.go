package world

import "sluice.dev/sluice/internal/core/prng"

// network is what carries messages from place to place.
type network struct {
	*stage
	messages uint64 // numbers them, for their draws
}

// carry puts what goes from one place to another under way, or loses it.
func (w *network) carry(e event) bool {
	n := &w.o.Network
	w.messages++
	late := n.Delay
	if n.Loss > 0 || n.Jitter > 0 {
		s := prng.New(w.o.Seed, forMessage, w.messages)
		if n.Loss > 0 && int64(s.IntN(Million)) < n.Loss {
			return w.lose()
		}
		if n.Jitter > 0 {
			late += exponential(&s, n.Jitter)
		}
	}
	if len(w.o.Faults.Zones) > 0 {
		from, to := w.zoneOf(e.From), w.zoneOf(e.To)
		if from != to && (from >= 0 && w.zones[from].cut || to >= 0 && w.zones[to].cut) {
			return w.lose()
		}
	}
	w.events.Put(w.now.Add(late), e)
	return true
}

func (w *network) lose() bool {
	if w.measured {
		w.counts.Dropped++
	}
	return false
}
