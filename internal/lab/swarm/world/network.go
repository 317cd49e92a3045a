package world

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/swarm"
)

// Send implements swarm.Port.
func (w *World) Send(m swarm.Message) {
	if w.here == nowhere || m.To == w.here || m.To < 0 || m.To > w.c.GateAt(int32(w.o.Gates-1)) || int(m.Kind) >= len(w.o.Kind.Messages) {
		w.must("a message of kind %d from place %d to place %d", m.Kind, w.here, m.To)
	}
	m.From = w.here
	if w.measured {
		w.counts.Sent[m.Kind]++
	}
	w.carry(event{kind: arrives, Message: m})
}

// carry puts what goes from one place to another under way, or loses it.
func (w *World) carry(e event) bool {
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

func (w *World) lose() bool {
	if w.measured {
		w.counts.Dropped++
	}
	return false
}

// After implements swarm.Port.
func (w *World) After(d time.Duration, m swarm.Message) {
	if w.here == nowhere || d < 0 {
		w.must("a timer of %s at place %d", d, w.here)
	}
	m.From, m.To = w.here, w.here
	e := event{kind: wakes, Message: m}
	if z := w.zoneOf(w.here); z >= 0 {
		e.epoch = w.zones[z].epoch
	}
	w.events.Put(w.now.Add(d), e)
}
