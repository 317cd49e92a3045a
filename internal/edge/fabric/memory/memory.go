// Package memory is the fabric within one process: a message is handed over in the sender's own call. Tests ask it to
// misbehave with a seed; the daemon does not.
package memory

import (
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric"
)

// Faults are what the fabric does to messages, drawn from a stream that depends on Seed and the message's number only.
// The zero value delivers every message once, at once and in order of Send.
type Faults struct {
	Seed uint64
	// Loss and Double are chances in parts per thousand, 0 to 1000. A doubled message is delivered twice.
	Loss, Double int
	// MaxDelay holds each copy back for up to this long, each on its own, so that messages overtake each other.
	MaxDelay time.Duration
}

// Fabric is the memory kind.
type Fabric struct {
	faults Faults
	to     fabric.Receivers

	mu        sync.Mutex
	sent      uint64
	dropped   uint64
	delayed   map[uint64]*time.Timer
	nextDelay uint64
	closed    bool
}

var _ fabric.Fabric = (*Fabric)(nil)

// New makes a fabric with the given faults.
func New(f Faults) *Fabric {
	return &Fabric{faults: f, delayed: map[uint64]*time.Timer{}}
}

// Attach implements fabric.Fabric.
func (f *Fabric) Attach(addr protocol.Address, deliver fabric.Deliver) error {
	return f.to.Attach(addr, deliver)
}

// Send implements fabric.Fabric.
func (f *Fabric) Send(m protocol.Message) {
	f.mu.Lock()
	f.sent++
	n := f.sent
	f.mu.Unlock()
	if f.faults == (Faults{}) {
		f.hand(m)
		return
	}
	r := stream{f.faults.Seed ^ n*0x9e3779b97f4a7c15}
	copies := 1
	if r.chance(f.faults.Loss) {
		copies = 0
	} else if r.chance(f.faults.Double) {
		copies = 2
	}
	if copies == 0 {
		f.mu.Lock()
		f.dropped++
		f.mu.Unlock()
	}
	for range copies {
		if d := r.upTo(f.faults.MaxDelay); d > 0 {
			f.later(d, m)
		} else {
			f.hand(m)
		}
	}
}

// later delivers m after d unless the fabric is closed before.
func (f *Fabric) later(d time.Duration, m protocol.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.dropped++
		return
	}
	f.nextDelay++
	id := f.nextDelay
	f.delayed[id] = time.AfterFunc(d, func() {
		f.mu.Lock()
		delete(f.delayed, id)
		f.mu.Unlock()
		f.hand(m)
	})
}

// hand delivers m, or counts it as dropped.
func (f *Fabric) hand(m protocol.Message) {
	if f.to.Hand(m) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped++
}

// Dropped implements fabric.Fabric.
func (f *Fabric) Dropped() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropped
}

// Close implements fabric.Fabric.
func (f *Fabric) Close() error {
	f.mu.Lock()
	f.closed = true
	for id, t := range f.delayed {
		t.Stop()
		delete(f.delayed, id)
		f.dropped++
	}
	f.mu.Unlock()
	f.to.Close()
	return nil
}

// stream is splitmix64 (Steele, Lea, Flood 2014): enough for faults, the same on every machine.
type stream struct{ state uint64 }

func (s *stream) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) chance(perThousand int) bool { return s.next()%1000 < uint64(max(0, perThousand)) }

func (s *stream) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(s.next() % uint64(d+1))
}
