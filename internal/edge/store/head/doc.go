// Package head is the store of a cluster: machines reach the one that their head keeps, over the head's own port (StoreService). Store is a
// machine's side and implements the contract; Service is the head's, and serves any store.
//
// The bytes of an upload go straight into the Put of the head's store, which asks for them from where an earlier upload broke off. So they
// are written once, and whatever that store keeps of half an upload outlives the head.
package head

import (
	"net/http"
	"time"
)

// Name is the kind's word.
const Name = "head"

// Sizes in bytes.
const (
	// MaxFrame bounds what is received at once.
	MaxFrame = 1 << 20
	// piece is how much of an object is sent at once.
	piece = 256 << 10
)

// Timing of calls. The zero value is the default.
type Timing struct {
	// Beat is how often the head says something in a call that takes long, default 1 s. After Silence without a word a machine takes
	// the connection for broken, default 15 s.
	Beat, Silence time.Duration
	// Stall is how long the head waits for a machine that neither sends the bytes of its upload nor takes those it has asked for, default
	// 60 s. A machine that is cut off can go on where it was.
	Stall time.Duration
	// Answer is how long a machine waits for the answer to a call that is no stream, default 60 s.
	Answer time.Duration
	// Tries is how often a call is made, default 8, of which each that got further counts as the first again. Between them a machine waits
	// from PauseFirst to PauseLast, doubled each time, default 100 ms and 2 s.
	Tries                 int
	PauseFirst, PauseLast time.Duration
}

// filled is t with its defaults.
func (t Timing) filled() Timing {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&t.Beat, time.Second)
	set(&t.Silence, 15*time.Second)
	set(&t.Stall, time.Minute)
	set(&t.Answer, time.Minute)
	set(&t.PauseFirst, 100*time.Millisecond)
	set(&t.PauseLast, 2*time.Second)
	if t.Tries <= 0 {
		t.Tries = 8
	}
	return t
}

// ClientHTTP2 is how a machine should set up its transport (http.Transport.HTTP2). A connection whose other side is gone, or takes no
// bytes, is closed, which no call can do for itself, so that the next try is on a new one.
func ClientHTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{
		SendPingTimeout: 10 * time.Second, PingTimeout: 10 * time.Second, WriteByteTimeout: 20 * time.Second,
		MaxReceiveBufferPerStream: 2 << 20, MaxReadFrameSize: piece,
	}
}

// ServerHTTP2 is how the head should set up its server (http.Server.HTTP2). A connection has room for several uploads, or one that waits
// for the disk would hold up every other call of its machine.
func ServerHTTP2() *http.HTTP2Config {
	c := ClientHTTP2()
	c.MaxReceiveBufferPerStream, c.MaxReceiveBufferPerConnection = 1<<20, 4<<20-1
	return c
}
