package world

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/lab/swarm"
)

// Send implements swarm.Port.
func (p *plain) Send(m swarm.Message) {
	m.From = p.here
	p.count(fmt.Sprint("kind ", m.Kind))
	p.carry(m.From, m.To, func() {
		if p.enter(m.To) {
			p.m.Hear(p.now, m)
		}
	})
}

// After implements swarm.Port.
func (p *plain) After(d time.Duration, m swarm.Message) {
	m.From, m.To = p.here, p.here
	z := p.zone(p.here)
	life := 0
	if z >= 0 {
		life = p.dead[z]
	}
	p.later(d, func() {
		if z < 0 || p.dead[z] == life {
			p.here = m.To
			p.m.Wake(p.now, m)
		}
	})
}

// Task implements swarm.Port.
func (p *plain) Task(id swarm.TaskID) (swarm.Task, bool) {
	t := p.tasks[id]
	if t == nil {
		return swarm.Task{}, false
	}
	return t.Task, t.state == waits || t.state == runs
}

// Free implements swarm.Port.
func (p *plain) Free(node int32) (free uint8) {
	if p.dead[int(node)/p.c.PerZone] < 0 {
		return 0
	}
	for i, s := range p.nodes[node].slices {
		if !s.rigid && !s.held && s.task == nil {
			free |= 1 << i
		}
	}
	return free
}

// Told implements swarm.Port.
func (p *plain) Told(node int32) { p.nodes[node].told = p.Free(node) }

// best is the smallest free slice that is large enough, -1 if there is none.
func (p *plain) best(node int32, class uint8) int8 {
	best := int8(-1)
	for i, of := range p.c.Slots(node) {
		if p.Free(node)&(1<<i) != 0 && of >= class && (best < 0 || of < p.c.Slots(node)[best]) {
			best = int8(i)
		}
	}
	return best
}

// Hold implements swarm.Port.
func (p *plain) Hold(node int32, class uint8) int8 {
	slot := p.best(node, class)
	if slot >= 0 {
		p.nodes[node].slices[slot].held = true
	}
	return slot
}

// Release implements swarm.Port.
func (p *plain) Release(node int32, slot int8) {
	p.nodes[node].slices[slot].held = false
	p.vacated(int(node), int(slot))
}

// StartOn implements swarm.Port.
func (p *plain) StartOn(node int32, slot int8, id swarm.TaskID) swarm.Outcome {
	t, out := p.startable(id)
	if t != nil {
		p.nodes[node].slices[slot].held = false
		p.land(t, int(node), int(slot))
	}
	return out
}

// Start implements swarm.Port.
func (p *plain) Start(node int32, id swarm.TaskID) swarm.Outcome {
	t, out := p.startable(id)
	if t == nil {
		return out
	}
	slot := p.best(node, t.Class)
	if slot < 0 {
		return swarm.Full
	}
	p.land(t, int(node), int(slot))
	return swarm.Started
}
