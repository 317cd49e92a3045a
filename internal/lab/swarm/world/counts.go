package world

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// MaxKinds is how many kinds of messages a protocol may have.
const MaxKinds = 32

// Counts are the counters. All are integers: figures are made of them elsewhere.
type Counts struct {
	// Of tasks that arrived within the window, whenever they were started and over.
	Arrived, Placed int64
	Fates           [3]int64 // by Fate
	// Of what happened within the window: tasks started; messages sent, those lost on the way included, by kind of the protocol;
	// reports and digests; messages lost.
	Starts           int64
	Sent             [MaxKinds]int64
	Reports, Digests int64
	Dropped          int64
	// Refused starts by outcome, over the whole run.
	Refused [4]int64
	// Zones is what rigid work left in each, and what of it ran tasks, within the window.
	Zones  []Use
	Window quantity.Instant
}

// Use in slice-nanoseconds.
type Use struct{ Leftover, Used int64 }

// Messages is how many were sent in all.
func (c *Counts) Messages() int64 {
	n := c.Reports + c.Digests
	for _, k := range c.Sent {
		n += k
	}
	return n
}

// Hops is how many of the protocol's messages asked a node for room.
func (c *Counts) Hops(kinds []swarm.MessageKind) (n int64) {
	for i, k := range kinds {
		if k.Hop {
			n += c.Sent[i]
		}
	}
	return n
}
