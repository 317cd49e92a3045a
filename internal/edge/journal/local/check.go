package local

import (
	"errors"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// mark is a place from which Check can read on: the position before a batch, and where that batch stands. There is one
// for about every markEvery records, so a million records cost some ten kilobytes of memory instead of 32 MB of digests.
type mark struct {
	before journal.Position
	name   string
	off    int64
}

const markEvery = 4096

// mark notes a batch that was read.
func (j *opened) mark(name string, off int64, records []entry) {
	before := journal.Position{Seq: records[0].at.Seq - 1}
	if before.Seq == j.layout.stateAt.Seq {
		before = j.layout.stateAt
	} else {
		before.Digest = j.last.Digest
	}
	j.last = records[len(records)-1].at
	j.markFrame(name, off, before)
}

// markFrame notes the batch at off, which follows before, if it begins a segment or is far enough from the last mark.
func (j *opened) markFrame(name string, off int64, before journal.Position) {
	if n := len(j.marks); n > 0 && off != segmentHeaderSize && before.Seq-j.marks[n-1].before.Seq < markEvery {
		return
	}
	j.marks = append(j.marks, mark{before, name, off})
}

// Check implements journal.Journal.
func (j *opened) Check(w journal.Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	var found journal.Position
	switch {
	case w.Seq < j.stateAt.Seq, w == journal.Position{}:
		return nil
	case w.Seq > j.last.Seq:
		return errkind.Errorf(errkind.Corrupt, "journal %s: %s, byte %d: it ends with record %d, and record %s was promised: %d records are missing; %s",
			j.d, j.tailName, j.off, j.last.Seq, w, w.Seq-j.last.Seq, restore)
	case w.Seq == j.stateAt.Seq:
		found = j.stateAt
	case w.Seq == j.last.Seq:
		found = j.last
	default:
		var err error
		if found, err = j.find(w.Seq); err != nil {
			return err
		}
	}
	if found != w {
		return errkind.Errorf(errkind.Corrupt, "journal %s: record %d has the digest %s, and %s was promised: this is not the journal that made the promise; %s",
			j.d, w.Seq, found, w, restore)
	}
	return nil
}

// find reads the position of record seq, which lies between the snapshot and the last record.
func (j *opened) find(seq uint64) (journal.Position, error) {
	i, exact := slices.BinarySearchFunc(j.marks, seq, func(m mark, seq uint64) int {
		switch {
		case m.before.Seq+1 < seq:
			return -1
		case m.before.Seq+1 > seq:
			return 1
		}
		return 0
	})
	if !exact {
		i-- // the last mark before it; marks start with the first record after the snapshot
	}
	m := j.marks[i]
	f, err := j.d.View(m.name)
	if err != nil {
		return journal.Position{}, fmt.Errorf("journal %s: cannot read %s: %w", j.d, m.name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return journal.Position{}, fmt.Errorf("journal %s: cannot read %s: %w", j.d, m.name, err)
	}
	if m.name == j.tailName {
		size = j.off
	}
	at, off := m.before, m.off
	var found journal.Position
	done := errors.New("found")
	for off < size {
		b, err := frameAt(f, off, size)
		if err != nil {
			return journal.Position{}, fmt.Errorf("journal %s: cannot read %s: %w", j.d, m.name, err)
		}
		n, next, bad, err := scan(b, 0, at, func(_ int64, records []entry) error {
			if k := seq - records[0].at.Seq; seq >= records[0].at.Seq && k < uint64(len(records)) {
				found = records[k].at
				return done
			}
			return nil
		})
		if errors.Is(err, done) {
			return found, nil
		}
		if bad != nil {
			p := Problem{File: m.name, Offset: off, Seq: at.Seq + 1, What: bad.why, Do: restore}
			return journal.Position{}, corrupt(j.d, []Problem{p})
		}
		off, at = off+n, next
	}
	return journal.Position{}, corrupt(j.d, []Problem{{File: m.name, Offset: off, Seq: seq, What: "the record is gone", Do: restore}})
}

// frameAt reads the frame at off, or what there is of it before size.
func frameAt(f disk.File, off, size int64) ([]byte, error) {
	header := make([]byte, min(frameHeaderSize, size-off))
	if n, err := f.ReadAt(header, off); n < len(header) {
		return nil, err
	}
	frame, err := parseFrameHeader(header)
	if err != nil {
		return header, nil // scan names what is wrong
	}
	b := make([]byte, min(frameHeaderSize+int64(frame.length), size-off))
	if n, err := f.ReadAt(b, off); n < len(b) {
		return nil, err
	}
	return b, nil
}
