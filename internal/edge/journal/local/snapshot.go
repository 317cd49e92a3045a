package local

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// chunksASync is the number of chunks after which a snapshot's file is synced. Only that much of it ever waits for the disk: a sync of the
// journal beside it, which may queue behind all that, stays short.
const chunksASync = 4

// snapshot is a snapshot that is being written, under another name. In this order, each durable before the next: a new
// segment begins behind its position; its content is synced; it gets its name; what it covers is removed. So a snapshot
// always has the segment that follows it, and a crash in between leaves either the old journal whole or files that nobody needs.
type snapshot struct {
	j    *opened
	head stateHeader
	f    disk.File // nil when it is over
	off  int64
	// chunk is what is not written yet, behind room for its header; chunks how many were.
	chunk  []byte
	chunks int
	sum    hash.Hash
	// failed is why it can only be given up.
	failed error
}

// Snapshot implements journal.Journal.
func (j *opened) Snapshot() (journal.Snapshot, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return nil, err
	}
	if j.snapshotting {
		return nil, errkind.Errorf(errkind.Invalid, "journal %s: a snapshot is being written already", j.d)
	}
	if j.tailName != segmentName(j.last.Seq+1) {
		if err := j.rotate(); err != nil {
			return nil, err
		}
	}
	f, err := j.d.Create(stateTemp)
	if err != nil {
		return nil, j.kindly(fmt.Errorf("journal %s: cannot begin a snapshot: %w", j.d, err))
	}
	j.snapshotting = true
	s := &snapshot{j: j, f: f, off: stateHeaderSize, sum: sha256.New()}
	s.head.at = j.last
	s.chunk = make([]byte, chunkHeaderSize, chunkHeaderSize+j.chunkBytes())
	return s, nil
}

// chunkBytes is smaller where segments are, as in tests.
func (j *opened) chunkBytes() int { return int(min(chunkBytes, j.o.SegmentBytes)) }

// kindly classifies an error of the file system; one that does not pass is the end.
func (j *opened) kindly(err error) error {
	if passes(err) {
		return kindOf(err)
	}
	return j.breakOff(err)
}

// fail notes why the snapshot can only be given up.
func (s *snapshot) fail(doing string, err error) error {
	s.j.mu.Lock()
	defer s.j.mu.Unlock()
	s.failed = s.j.kindly(fmt.Errorf("journal %s: cannot %s the snapshot of record %d: %w", s.j.d, doing, s.head.at.Seq, err))
	return s.failed
}

func (s *snapshot) usable() error {
	if s.f == nil {
		return errkind.Errorf(errkind.Invalid, "journal %s: the snapshot is over", s.j.d)
	}
	return s.failed
}

// Write implements journal.Snapshot.
func (s *snapshot) Write(p []byte) (n int, err error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	for n < len(p) {
		part := p[n:min(len(p), n+cap(s.chunk)-len(s.chunk))]
		s.chunk = append(s.chunk, part...)
		n += len(part)
		if len(s.chunk) == cap(s.chunk) {
			if err := s.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush writes what is held as one chunk.
func (s *snapshot) flush() error {
	payload := s.chunk[chunkHeaderSize:]
	if len(payload) == 0 {
		return nil
	}
	s.sum.Write(payload)
	chunkHeader(s.chunk[:0], s.head.length, payload)
	if _, err := s.f.WriteAt(s.chunk, s.off); err != nil {
		return s.fail("write", err)
	}
	s.off += int64(len(s.chunk))
	s.head.length += uint64(len(payload))
	s.chunk = s.chunk[:chunkHeaderSize]
	if s.chunks++; s.chunks%chunksASync == 0 {
		if err := s.f.Sync(); err != nil {
			return s.fail("sync", err)
		}
	}
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
	s.sum.Sum(s.head.sum[:0])
	if _, err := s.f.WriteAt(s.head.bytes(), 0); err != nil {
		return s.fail("write", err)
	}
	if err := s.f.Sync(); err != nil {
		return s.fail("sync", err)
	}
	if err := s.j.d.Rename(stateTemp, stateName(s.head.at.Seq)); err != nil {
		return s.fail("name", err)
	}
	_ = s.f.Close() // what it has was synced
	s.f = nil
	if err := s.j.d.Sync(); err != nil { // which of the two names it has is not known: no more than a segment's
		s.j.mu.Lock()
		defer s.j.mu.Unlock()
		return s.j.breakOff(fmt.Errorf("journal %s: cannot sync the name of the snapshot of record %d: %w", s.j.d, s.head.at.Seq, err))
	}
	return s.j.drop(s.j.supersede(s))
}

// Abort implements journal.Snapshot.
func (s *snapshot) Abort() error {
	if s.f == nil {
		return nil
	}
	_ = s.f.Close() // it is removed
	s.f = nil
	s.j.mu.Lock()
	s.j.snapshotting = false
	s.j.mu.Unlock()
	return s.j.drop([]string{stateTemp})
}

// supersede makes a snapshot that is durable the one that counts, and returns the files that do not any more.
func (j *opened) supersede(s *snapshot) (old []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	name := stateName(s.head.at.Seq)
	if j.stateName != "" && j.stateName != name {
		old = append(old, j.stateName)
	}
	j.stateName, j.stateAt, j.stateSize = name, s.head.at, s.off
	for _, c := range j.closed {
		if c.first <= j.stateAt.Seq {
			old = append(old, segmentName(c.first))
		}
	}
	j.closed = slices.DeleteFunc(j.closed, func(c closed) bool { return c.first <= j.stateAt.Seq })
	j.marks = slices.DeleteFunc(j.marks, func(m mark) bool { return m.before.Seq < j.stateAt.Seq })
	j.snapshotting = false
	return old
}

// drop deletes files that do not count any more. A name may come back after a power cut; then the next start removes it.
func (j *opened) drop(names []string) error {
	for _, name := range names {
		if err := j.d.Remove(name); err != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			return j.breakOff(fmt.Errorf("journal %s: cannot remove %s: %w", j.d, name, err))
		}
	}
	return nil
}
