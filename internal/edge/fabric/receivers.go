package fabric

import (
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

// Receivers are those that are attached to a fabric in this process; every kind delivers through them. The zero value has none. Safe for
// concurrent use.
type Receivers struct {
	mu     sync.Mutex
	idle   *sync.Cond // no delivery in progress; nil until Close waits for that
	at     map[protocol.Address]Deliver
	active int
	closed bool
}

// Attach is that of Fabric.
func (r *Receivers) Attach(addr protocol.Address, deliver Deliver) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errkind.Errorf(errkind.Unavailable, "attach %v %q: the fabric is closed", addr.Role, addr.ID)
	}
	if _, ok := r.at[addr]; ok {
		return errkind.Errorf(errkind.Exists, "attach %v %q: somebody receives there already; give each actor its own id", addr.Role,
			addr.ID)
	}
	if r.at == nil {
		r.at = map[protocol.Address]Deliver{}
	}
	r.at[addr] = deliver
	return nil
}

// Attached reports whether an address has a receiver.
func (r *Receivers) Attached(addr protocol.Address) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at[addr] != nil
}

// Hand calls the receiver of a message, without a lock, so that it may send in turn. It returns false if there is none, or after Close.
func (r *Receivers) Hand(m protocol.Message) bool {
	r.mu.Lock()
	deliver := r.at[m.To]
	if r.closed || deliver == nil {
		r.mu.Unlock()
		return false
	}
	r.active++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.active--; r.active == 0 && r.idle != nil {
			r.idle.Broadcast()
		}
	}()
	deliver(m)
	return true
}

// Close waits for receivers that were called; none is called after it. Closing twice is harmless.
func (r *Receivers) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.idle == nil {
		r.idle = sync.NewCond(&r.mu)
	}
	for r.active > 0 {
		r.idle.Wait()
	}
}
