package meter

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// mechanism is one whose calls are measured.
type mechanism struct {
	inner swarm.Mechanism
	m     *Meter
}

// Arrive implements swarm.Mechanism.
func (x *mechanism) Arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	x.m.begin(now)
	x.inner.Arrive(now, gate, tasks)
	x.m.end()
}

// Hear implements swarm.Mechanism.
func (x *mechanism) Hear(now quantity.Instant, in swarm.Message) {
	x.m.begin(now)
	x.inner.Hear(now, in)
	x.m.end()
}

// Wake implements swarm.Mechanism.
func (x *mechanism) Wake(now quantity.Instant, in swarm.Message) {
	x.m.begin(now)
	x.inner.Wake(now, in)
	x.m.end()
}

// Changed implements swarm.Mechanism.
func (x *mechanism) Changed(now quantity.Instant, node int32, ended swarm.TaskID) {
	x.m.begin(now)
	x.inner.Changed(now, node, ended)
	x.m.end()
}

// Expired implements swarm.Mechanism.
func (x *mechanism) Expired(now quantity.Instant, t swarm.Task) {
	x.m.begin(now)
	x.inner.Expired(now, t)
	x.m.end()
}

// Report implements swarm.Mechanism.
func (x *mechanism) Report(now quantity.Instant, zone int32, r swarm.Report) {
	x.m.begin(now)
	x.inner.Report(now, zone, r)
	x.m.end()
}

// Digest implements swarm.Mechanism.
func (x *mechanism) Digest(now quantity.Instant, gate int32, d *swarm.Digest) {
	x.m.begin(now)
	x.inner.Digest(now, gate, d)
	x.m.end()
}

// Reset implements swarm.Mechanism.
func (x *mechanism) Reset(now quantity.Instant, zone int32) {
	x.m.begin(now)
	x.inner.Reset(now, zone)
	x.m.end()
}

// telling is a mechanism that adds to digests.
type telling struct {
	*mechanism
	teller swarm.Teller
}

// Tell implements swarm.Teller.
func (x *telling) Tell(now quantity.Instant, zone int32, d *swarm.Digest) bool {
	x.m.begin(now)
	defer x.m.end()
	return x.teller.Tell(now, zone, d)
}

// port is the world, whose work is not the mechanism's. What a call only reads there (Task, Free) is.
type port struct {
	swarm.Port
	m *Meter
}

// Send implements swarm.Port.
func (p *port) Send(in swarm.Message) {
	p.m.pause()
	p.Port.Send(in)
	p.m.resume()
}

// After implements swarm.Port.
func (p *port) After(d time.Duration, in swarm.Message) {
	p.m.pause()
	p.Port.After(d, in)
	p.m.resume()
}

// Hold implements swarm.Port.
func (p *port) Hold(node int32, class uint8) int8 {
	p.m.pause()
	defer p.m.resume()
	return p.Port.Hold(node, class)
}

// Release implements swarm.Port.
func (p *port) Release(node int32, slot int8) {
	p.m.pause()
	p.Port.Release(node, slot)
	p.m.resume()
}

// StartOn implements swarm.Port.
func (p *port) StartOn(node int32, slot int8, t swarm.TaskID) swarm.Outcome {
	p.m.pause()
	defer p.m.resume()
	return p.Port.StartOn(node, slot, t)
}

// Start implements swarm.Port.
func (p *port) Start(node int32, t swarm.TaskID) swarm.Outcome {
	p.m.pause()
	defer p.m.resume()
	return p.Port.Start(node, t)
}
