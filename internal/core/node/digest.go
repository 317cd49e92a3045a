package node

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Digest is a hash of the durable state: the sum over all entities of each one's hash, so that a change costs one
// subtraction and one addition and the order of entities does not matter. It is for comparing two states that should be
// equal, not against an adversary.
func (n *Node) Digest() uint64 { return n.sum + n.metaHash0() }

// metaHash0 gives a node without facts a digest of its own: an empty state of another format does not look the same.
func (n *Node) metaHash0() uint64 { return tag(tagNode).text(string(n.cfg.ID)).end() }

// Tags keep entities of different kinds apart. They are part of the digest's definition.
const (
	tagNode = iota + 1
	tagMeta
	tagLease
	tagReservation
	tagQuarantine
)

// hash is a running hash: each word is mixed in with the finalizer of splitmix64 (Steele, Lea and Flood, 2014).
type hash uint64

func tag(t uint64) hash { return hash(0).u64(t) }

func (h hash) u64(v uint64) hash {
	z := uint64(h) + v + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return hash(z ^ z>>31)
}

func (h hash) i64(v int64) hash { return h.u64(uint64(v)) }

func (h hash) flag(v bool) hash {
	if v {
		return h.u64(1)
	}
	return h.u64(0)
}

// text mixes in a string with its length, so that two neighbours can't trade letters.
func (h hash) text(s string) hash {
	f := uint64(0xcbf29ce484222325) // FNV-1a
	for i := range len(s) {
		f = (f ^ uint64(s[i])) * 0x100000001b3
	}
	return h.u64(uint64(len(s))).u64(f)
}

func (h hash) token(t job.Token) hash { return h.u64(uint64(t.Epoch)).u64(t.Seq) }

func (h hash) span(r job.Range) hash { return h.i64(r.From).i64(r.To) }

func (h hash) end() uint64 { return uint64(h) }

func (n *Node) metaHash() uint64 {
	if n.epoch == 0 && n.lastID == 0 {
		return 0
	}
	return tag(tagMeta).u64(uint64(n.epoch)).u64(n.lastID).end()
}

func (l *lease) hash() uint64 {
	h := tag(tagLease).token(l.token).text(string(l.job)).u64(uint64(l.epoch)).text(string(l.zone)).text(string(l.slice))
	h = h.u64(uint64(len(l.also)))
	for _, id := range l.also {
		h = h.text(string(id))
	}
	h = h.span(l.rng).i64(int64(l.start)).i64(int64(l.end))
	for _, a := range l.demand {
		h = h.i64(int64(a))
	}
	h = h.i64(int64(l.plan.Run)).i64(int64(l.plan.Wall)).token(l.plan.Resume).u64(l.plan.Window).u64(l.plan.Round)
	h = h.flag(l.started).i64(int64(l.at)).text(l.cut).flag(l.stuck)
	h = h.flag(l.bare).flag(l.settled).span(l.settling)
	if r := l.result; r != nil {
		h = h.u64(uint64(r.Outcome)).i64(int64(r.ExitCode)).i64(int64(r.Signal)).i64(r.Progress).flag(r.Checkpoint)
		h = h.i64(int64(r.Start)).i64(int64(r.End)).i64(int64(r.FirstProgress)).text(r.Detail)
		for _, a := range r.Peak {
			h = h.i64(int64(a))
		}
	}
	return h.end()
}

func reservationHash(r *protocol.Reservation) uint64 {
	return tag(tagReservation).u64(r.ID).u64(uint64(r.Kind)).text(string(r.Slice)).i64(int64(r.Start)).i64(int64(r.End)).
		i64(int64(r.Every)).text(string(r.Job)).token(r.Token).text(r.Source).flag(r.Truncate).end()
}

func (s *slice) quarantineHash() uint64 {
	return tag(tagQuarantine).text(string(s.id)).text(s.quarantine).end()
}
