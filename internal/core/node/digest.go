package node

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Digest is a hash of the durable state: the sum over all entities of each one's hash, so that a change costs one
// subtraction and one addition and the order of entities does not matter. It is for comparing two states that should be
// equal, not against an adversary.
func (n *Node) Digest() uint64 { return n.sum + n.metaHash0() }

// metaHash0 gives a node without facts a digest of its own: an empty state of another format does not look the same.
func (n *Node) metaHash0() uint64 { return tag(tagNode).Text(string(n.cfg.ID)).Sum() }

// Tags keep entities of different kinds apart. They are part of the digest's definition.
const (
	tagNode = iota + 1
	tagMeta
	tagLease
	tagReservation
	tagQuarantine
	tagFault
)

// tag starts the hash of an entity of one kind.
func tag(t int64) digest.Hash { return digest.New().Int(t) }

func (n *Node) metaHash() uint64 {
	if n.epoch == 0 && n.lastID == 0 {
		return 0
	}
	return tag(tagMeta).Int(int64(n.epoch), int64(n.lastID)).Sum()
}

func (l *lease) hash() uint64 {
	h := l.token.Mix(tag(tagLease)).Text(string(l.job)).Int(int64(l.epoch), int64(l.generation)).Text(string(l.zone)).Text(string(l.slice))
	h = l.rng.Mix(job.MixIDs(h, l.also)).Int(int64(l.start), int64(l.end))
	h = l.rank.Mix(l.plan.Mix(l.peak.Mix(l.demand.Mix(h)))).Bool(l.seen(), l.stuck(), l.bare, l.settled(),
		l.phase == leaseStoring).Int(int64(l.at)).Text(l.cut)
	return digest.Optional(l.settling.Mix(h), l.result).Sum()
}

func reservationHash(r *protocol.Reservation) uint64 { return r.Mix(tag(tagReservation)).Sum() }

func (s *slice) quarantineHash() uint64 {
	return s.holder.Mix(tag(tagQuarantine)).Text(string(s.id)).Text(s.quarantine).Int(int64(s.barredAt)).Sum()
}

// faultHash is 0 for a slice whose GPU does not fail.
func (s *slice) faultHash() uint64 {
	if s.fault == nil {
		return 0
	}
	return s.fault.Mix(tag(tagFault).Text(string(s.id))).Sum()
}
