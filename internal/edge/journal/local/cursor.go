package local

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// cursor finds the positions of records, in order: it goes forward from mark to mark, so that any number of records cost at most one
// reading of the journal.
type cursor struct {
	j *opened
	// f is the segment it reads, nil before the first; size is how much of that counts.
	f    disk.File
	name string
	size int64
	// off is where the next batch stands, at the position before it.
	off int64
	at  journal.Position
	// batch is the positions of the batch before.
	batch []journal.Position
}

// find is the position of record seq, which lies between the snapshot and the last record, and not before one that was found already.
func (c *cursor) find(seq uint64) (journal.Position, error) {
	if found, ok := c.inBatch(seq); ok {
		return found, nil
	}
	if err := c.jump(seq); err != nil {
		return journal.Position{}, err
	}
	for c.off < c.size {
		if err := c.read(); err != nil {
			return journal.Position{}, err
		}
		if found, ok := c.inBatch(seq); ok {
			return found, nil
		}
	}
	return journal.Position{}, c.corrupt(seq, "the record is gone")
}

func (c *cursor) inBatch(seq uint64) (journal.Position, bool) {
	if len(c.batch) == 0 || seq < c.batch[0].Seq || seq-c.batch[0].Seq >= uint64(len(c.batch)) {
		return journal.Position{}, false
	}
	return c.batch[seq-c.batch[0].Seq], true
}

// jump goes to the last mark before record seq, if the cursor is not past it.
func (c *cursor) jump(seq uint64) error {
	i, exact := slices.BinarySearchFunc(c.j.marks, seq, func(m mark, seq uint64) int {
		switch {
		case m.before.Seq+1 < seq:
			return -1
		case m.before.Seq+1 > seq:
			return 1
		}
		return 0
	})
	if !exact {
		i-- // marks start with the first record after the snapshot
	}
	m := c.j.marks[i]
	if c.f != nil && c.at.Seq >= m.before.Seq && c.name == m.name {
		return nil
	}
	if c.f == nil || c.name != m.name {
		if err := c.open(m.name); err != nil {
			return fmt.Errorf("journal %s: cannot read %s: %w", c.j.d, m.name, err)
		}
	}
	c.off, c.at, c.batch = m.off, m.before, c.batch[:0]
	return nil
}

func (c *cursor) open(name string) (err error) {
	c.close()
	f, err := c.j.d.View(name)
	if err != nil {
		return err
	}
	c.f = f
	if c.name, c.size = name, c.j.off; name != c.j.tailName {
		if c.size, err = c.f.Size(); err != nil {
			c.close()
		}
	}
	return err
}

// read reads the next batch.
func (c *cursor) read() error {
	b, err := frameAt(c.f, c.off, c.size)
	if err != nil {
		return fmt.Errorf("journal %s: cannot read %s: %w", c.j.d, c.name, err)
	}
	n, next, bad, err := scan(b, 0, c.at, func(_ int64, records []entry) error {
		c.batch = c.batch[:0]
		for i := range records {
			c.batch = append(c.batch, records[i].at)
		}
		return nil
	})
	if bad != nil {
		return c.corrupt(c.at.Seq+1, bad.why)
	}
	c.off, c.at = c.off+n, next
	return err
}

func (c *cursor) corrupt(seq uint64, what string) error {
	return corrupt(c.j.d, []Problem{{File: c.name, Offset: c.off, Seq: seq, What: what, Do: restore}})
}

func (c *cursor) close() {
	if c.f != nil {
		_ = c.f.Close() // it was read only
		c.f = nil
	}
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
