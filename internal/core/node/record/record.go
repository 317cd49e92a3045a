// Package record is how the parts of a node record facts and send messages in its name. A fact is applied to every part before the next
// one is decided, so no part ever decides on a state that the journal does not have.
package record

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Recorder is one node's. Its parts share it.
type Recorder struct {
	self, executor protocol.Address
	apply          func(*protocol.Fact)
	applied        int
}

// New returns the recorder of a node, whose parts take in a fact with apply, which neither keeps nor changes it.
func New(node job.NodeID, apply func(*protocol.Fact)) *Recorder {
	return &Recorder{
		self: protocol.Address{Role: protocol.Node, ID: string(node)}, executor: protocol.Address{Role: protocol.Executor,
			ID: string(node)}, apply: apply,
	}
}

// Self is the node's address.
func (r *Recorder) Self() protocol.Address { return r.self }

// Node is its id.
func (r *Recorder) Node() job.NodeID { return job.NodeID(r.self.ID) }

// Executor is the address of the node's executor.
func (r *Recorder) Executor() protocol.Address { return r.executor }

// Fact decides a fact: it is appended and applied at once. It is not copied for that, so that deciding allocates nothing.
func (r *Recorder) Fact(out *protocol.Out, f protocol.Fact) {
	f.Actor = r.self
	out.Facts = append(out.Facts, f)
	r.apply(&out.Facts[len(out.Facts)-1])
}

// Count counts a fact that is applied, now or after a restart.
func (r *Recorder) Count() { r.applied++ }

// Applied is how many facts were, for messages of broken invariants.
func (r *Recorder) Applied() int { return r.applied }

// Send appends a message.
func (r *Recorder) Send(out *protocol.Out, m protocol.Message) {
	m.From = r.self
	out.Effects = append(out.Effects, m)
}

// Tags keep entities of different kinds apart in a node's digest. They are part of its definition.
const (
	TagNode = iota + 1
	TagMeta
	TagLease
	TagReservation
	TagQuarantine
	TagFault
)

// Hash starts the hash of an entity of one kind.
func Hash(tag int64) digest.Hash { return digest.New().Int(tag) }
