// Package meter measures what the calls of a mechanism take of a processor, without the world's part in them: sending, timers,
// and what is done to slices. It reads a clock that it is given and decides nothing.
//
// Whatever else a machine does makes a call longer and never shorter. So the same run is played several times, and of every call the least
// counts: the same seed makes the same calls in the same order.
package meter

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// Meter adds up what calls within [from, until) take. Not safe for concurrent use.
type Meter struct {
	clock       func() int64 // nanoseconds; never goes back
	from, until quantity.Instant
	// empty is what a reading of nothing shows.
	empty int64
	// least is by call within the window what it took in the fastest run, in nanoseconds. next is the call that comes.
	least []uint32
	next  int
	// Of the call under way: since when it goes on, and what it took before that.
	counts, under bool
	since, spent  int64
}

// New is a meter that nothing was measured with.
func New(clock func() int64, from, until quantity.Instant) *Meter {
	m := &Meter{clock: clock, from: from, until: until, empty: math.MaxInt64}
	for range 1000 {
		begin := clock()
		m.empty = min(m.empty, clock()-begin)
	}
	return m
}

// Wrap is a mechanism that is measured, in one run. Wrap it again for the next one.
func (m *Meter) Wrap(k swarm.Kind) swarm.Kind {
	inner := k.New
	m.next = 0
	k.New = func(s swarm.Setup, p swarm.Port) (swarm.Mechanism, error) {
		x, err := inner(s, &port{p, m})
		if err != nil {
			return nil, err
		}
		out := &mechanism{x, m}
		if t, ok := x.(swarm.Teller); ok {
			return &telling{out, t}, nil
		}
		return out, nil
	}
	return k
}

// Nanos is what all calls took, each in the fastest of the runs.
func (m *Meter) Nanos() (sum int64) {
	for _, n := range m.least {
		sum += int64(n)
	}
	return sum
}

// begin is the beginning of a call.
func (m *Meter) begin(now quantity.Instant) {
	if m.counts = now >= m.from && now < m.until; m.counts {
		m.spent = 0
		m.resume()
	}
}

// end is the end of it.
func (m *Meter) end() {
	if !m.counts {
		return
	}
	m.pause()
	m.counts = false
	n := uint32(min(m.spent, math.MaxUint32))
	if m.next == len(m.least) {
		m.least = append(m.least, n)
	}
	m.least[m.next] = min(m.least[m.next], n)
	m.next++
}

// pause stops the clock while the world does something, resume starts it again.
func (m *Meter) pause() {
	if m.counts && m.under {
		m.under = false
		m.spent += max(0, m.clock()-m.since-m.empty)
	}
}

func (m *Meter) resume() {
	if m.counts {
		m.under, m.since = true, m.clock()
	}
}

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
