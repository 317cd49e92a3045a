// Package stream is the fabric between machines. A machine opens one stream to its head and keeps it open; every message of its actors, and
// to them, travels there. So only the head listens, and a machine behind a NAT or a proxy is as good as any other.
//
// Who a machine is, the transport has authenticated before its stream gets here: a message that this machine's node has no right to say is
// dropped. What is lost with a stream is not sent again by the fabric: actors repeat what is outstanding.
//
// Either side sends a beat every second. A peer that is silent for longer than Timing.Silence counts as gone, and its stream is cut.
package stream

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Oldest and Newest are the versions of links that this build speaks. A version is the frames and the encoding of the messages in them
// (wire.MessageVersion). A build speaks its own and the one before, so that a cluster can be upgraded machine by machine. In version 2
// slices have the addresses of their machines, and members of gangs those of the others.
const (
	Oldest = 1
	Newest = 2
)

// MaxFrame bounds a received frame, in bytes. The largest message is a job with its environment, which the API bounds at 4 MiB.
const MaxFrame = 8 << 20

// Timing of a link. The zero value is the default.
type Timing struct {
	// Beat is the time between two beats, default 1 s. After Silence without a frame the other side counts as gone, default 4 s.
	Beat, Silence time.Duration
	// RetryFirst and RetryLast are how long a machine waits before it dials again: from the first to the last, doubled each time, and drawn
	// from half of that to all of it. Default 100 ms and 2 s. A machine that is refused waits
	// 15 times the last.
	RetryFirst, RetryLast time.Duration
}

// filled is t with its defaults.
func (t Timing) filled() Timing {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&t.Beat, time.Second)
	set(&t.Silence, 4*time.Second)
	set(&t.RetryFirst, 100*time.Millisecond)
	set(&t.RetryLast, 2*time.Second)
	return t
}

// Link is one side's view of a link that is up.
type Link struct {
	// Since is when it came up, Heard when the last frame arrived.
	Since, Heard time.Time
	// Build of the other side, for people.
	Build string
	// RoundTrip is the shortest of the last measurements, 0 before the first. Offset is how far the other side's clock is ahead of this
	// one's, within half a round trip.
	RoundTrip, Offset time.Duration
	// Sent and Received are messages, Dropped those that found no room while the other side was slow, Forged those that the other side
	// may not say.
	Sent, Received, Dropped, Forged uint64
	// BytesSent and BytesReceived are encoded messages, without frames and transport.
	BytesSent, BytesReceived uint64
}

// owns reports whether an address belongs to the machine of that name: its node does.
func owns(machine job.NodeID, a protocol.Address) bool {
	return a.Role == protocol.Node && a.ID == string(machine)
}
