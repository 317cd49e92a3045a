package local

import (
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// Append implements journal.Journal.
func (j *opened) Append(records [][]byte) (journal.Position, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return journal.Position{}, err
	}
	if len(records) == 0 {
		return j.last, nil
	}
	total := 0
	for i, r := range records {
		if len(r) > journal.MaxRecord {
			return journal.Position{}, errkind.Errorf(errkind.Invalid,
				"record %d of the batch has %d bytes, more than %d: nothing was stored", i, len(r), journal.MaxRecord)
		}
		total += len(r)
	}
	if total > journal.MaxBatch || total+5*len(records) > maxPayload {
		return journal.Position{}, errkind.Errorf(errkind.Invalid,
			"the batch has %d records of %d bytes together, more than %d: nothing was stored; split it", len(records), total,
			journal.MaxBatch)
	}
	if j.off >= j.o.SegmentBytes && j.off > segmentHeaderSize {
		if err := j.rotate(); err != nil {
			return journal.Position{}, err
		}
	}
	var at journal.Position
	j.buf, at = appendFrame(j.buf[:0], j.last, records)
	if _, err := j.tail.WriteAt(j.buf, j.off); err != nil {
		return journal.Position{}, j.undo("write to", err)
	}
	if err := j.tail.Sync(); err != nil {
		return journal.Position{}, j.undo("sync", err)
	}
	j.markFrame(j.tailName, j.off, j.last)
	j.off += int64(len(j.buf))
	j.last = at
	if cap(j.buf) > keepBuffer {
		j.buf = nil
	}
	j.setHead()
	return at, nil
}

// keepBuffer is how much memory for encoding is kept from one Append to the next, in bytes.
const keepBuffer = 1 << 20

func (j *opened) usable() error {
	if j.broken == nil && !j.replayed {
		return errkind.Errorf(errkind.Invalid, "journal %s: replay it before writing to it", j.d)
	}
	return j.broken
}

// undo takes back a batch that did not get through. With a full disk the file is cut back to what counts, durably, and
// the journal goes on. After any other error of a write or a sync nobody can know what is on the disk (the kernel may
// have dropped the pages and forgotten the error), so the journal is not used again: the next start reads what is there.
func (j *opened) undo(doing string, err error) error {
	err = fmt.Errorf("journal %s: cannot %s %s: %w", j.d, doing, j.tailName, err)
	if !disk.Full(err) {
		return j.breakOff(err)
	}
	if e := j.tail.Truncate(j.off); e != nil {
		return j.breakOff(fmt.Errorf("%w, and it cannot be cut back to byte %d: %w", err, j.off, e))
	}
	if e := j.tail.Sync(); e != nil {
		return j.breakOff(fmt.Errorf("%w, and it cannot be synced: %w", err, e))
	}
	return kindOf(err)
}

func (j *opened) breakOff(err error) error {
	j.broken = errkind.Errorf(errkind.Unavailable, "%w: the journal is not written to any more; look at the disk, then start Sluice again",
		err)
	return j.broken
}

// rotate begins a new segment behind the last record. On a full disk, or without a file descriptor, the old one stays in
// use.
func (j *opened) rotate() error {
	old, before := j.tail, closed{size: j.off}
	before.first, _ = parseName(j.tailName, segmentSuffix)
	if err := j.begin(); err != nil {
		return err
	}
	j.closed = append(j.closed, before)
	j.syncHead()
	if err := old.Close(); err != nil {
		return j.breakOff(fmt.Errorf("journal %s: cannot close a segment: %w", j.d, err))
	}
	return nil
}

// begin makes an empty segment for what follows the last record and makes it the tail. What fails for want of room or of
// a file descriptor has changed nothing. From when the segment has its name on, nothing but it may be written: an old one
// that grew past the name of the next is damage to a reader.
func (j *opened) begin() error {
	name := segmentName(j.last.Seq + 1)
	f, err := disk.Make(j.d, name, segmentTemp, segmentHeader(j.last))
	if err != nil {
		err = fmt.Errorf("journal %s: cannot begin %s: %w", j.d, name, err)
		if passes(err) {
			return kindOf(err)
		}
		return j.breakOff(err)
	}
	if err := j.d.Sync(); err != nil {
		_ = f.Close() // what it has was synced
		return j.breakOff(fmt.Errorf("journal %s: cannot sync the name of %s: %w", j.d, name, err))
	}
	j.tail, j.tailName, j.off = f, name, segmentHeaderSize
	return nil
}

// setHead notes the last position. The record is durable already, so a head that can't be written is no failure of it: the head stays
// behind, which is safe, and that is reported once.
func (j *opened) setHead() {
	if j.head.f == nil {
		return
	}
	if err := j.head.set(j.last); err != nil {
		j.loseHead(err)
	}
}

func (j *opened) syncHead() {
	if j.head.f == nil {
		return
	}
	if err := j.head.f.Sync(); err != nil {
		j.loseHead(err)
	}
}

func (j *opened) loseHead(err error) {
	j.o.Notice(fmt.Sprintf("journal %s: %s cannot be written and stays behind until the next start: %v", j.d, headName, err))
	_ = j.head.f.Close() // nothing depends on its error any more
	j.head.f = nil
}
