//go:build etcd

package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// snapshot is a snapshot that is being written: parts that nothing names until one transaction puts the key state and removes what it
// covers.
type snapshot struct {
	j    *Journal
	h    header
	rest []byte
	// bytes that its values have; before is what the batches have that it covers.
	bytes, before int64
	// failed is why it can only be given up; over that it was committed or was.
	failed error
	over   bool
}

// Snapshot implements journal.Journal.
func (j *Journal) Snapshot() (journal.Snapshot, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return nil, err
	}
	if j.snapshotting {
		return nil, j.errorf(errkind.Invalid, "a snapshot is being written already")
	}
	j.snapshotting = true
	j.tries++
	return &snapshot{j: j, h: header{at: j.last, try: try{uint64(j.term), j.tries}}, before: j.batchBytes}, nil
}

func (s *snapshot) usable() error {
	if s.over {
		return s.j.errorf(errkind.Invalid, "the snapshot is over")
	}
	return s.failed
}

// Write implements journal.Snapshot.
func (s *snapshot) Write(p []byte) (n int, err error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	for n < len(p) {
		part := p[n:min(len(p), n+s.j.o.partBytes-len(s.rest))]
		s.rest = append(s.rest, part...)
		n += len(part)
		if len(s.rest) == s.j.o.partBytes {
			if err := s.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush puts what is held as one part.
func (s *snapshot) flush() error {
	if len(s.rest) == 0 {
		return nil
	}
	n, err := s.j.putPart("state", s.h.at.Seq, s.h.try, s.h.parts, s.rest)
	if err != nil {
		s.failed = err
		return err
	}
	s.h.parts, s.h.length, s.bytes = s.h.parts+1, s.h.length+int64(len(s.rest)), s.bytes+int64(n)
	s.rest = s.rest[:0]
	return nil
}

// Commit implements journal.Snapshot.
func (s *snapshot) Commit() error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	j := s.j
	j.mu.Lock()
	rev := j.stateRev
	j.mu.Unlock()
	value := seal("state", s.h.append(nil))
	if err := j.change(guard{j.keys.state(), &rev}, value, s.covered()...); err != nil {
		s.failed = err
		return err
	}
	s.over = true
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stateAt, j.stateRev, j.stateBytes, j.snapshotting = s.h.at, rev, s.bytes+int64(len(value)), false
	j.batchBytes -= s.before
	return nil
}

// covered removes what the snapshot makes superfluous: batches up to its position with their parts, and the parts of all others.
func (s *snapshot) covered() []clientv3.Op {
	k := s.j.keys
	own, behind := k.tryOf("state", s.h.at.Seq, s.h.try), s.h.at.Seq+1
	remove := func(from, to string) clientv3.Op { return clientv3.OpDelete(from, clientv3.WithRange(to)) }
	return []clientv3.Op{
		remove(k.batch(0), k.batch(behind)),
		remove(string(k)+"part/", k.part("part", behind, try{}, 0)),
		remove(string(k)+"state/", own+"/"),
		remove(own+"0", clientv3.GetPrefixRangeEnd(string(k)+"state/")), // "0" follows "/"
	}
}

// Abort implements journal.Snapshot.
func (s *snapshot) Abort() error {
	if s.over {
		return nil
	}
	s.over = true
	j := s.j
	own := j.keys.tryOf("state", s.h.at.Seq, s.h.try) + "/"
	ctx, cancel := context.WithTimeout(j.life, j.o.Patience)
	defer cancel()
	_, err := j.kv.Txn(ctx).If(j.leads()).Then(clientv3.OpDelete(own, clientv3.WithPrefix())).Commit()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.snapshotting = false
	if err != nil && !passing(err) {
		return j.away(err)
	}
	return nil // what is left of it nothing names, and the next one removes
}
