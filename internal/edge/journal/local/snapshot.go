package local

import (
	"crypto/sha256"
	"fmt"

	"sluice.dev/sluice/internal/edge/journal/disk"
)

// Snapshot implements journal.Journal. In this order, each durable before the next: a new segment begins behind the last
// record; the state gets its name; what it covers is removed. So a snapshot always has the segment that follows it, and a
// crash in between leaves either the old log whole or files that nobody needs.
func (j *log) Snapshot(state []byte) error {
	if err := j.usable(); err != nil {
		return err
	}
	if j.tailName != segmentName(j.last.Seq+1) {
		if err := j.rotate(); err != nil {
			return err
		}
	}
	name := stateName(j.last.Seq)
	header := stateHeader(j.last, len(state), sha256.Sum256(state))
	if err := disk.Put(j.d, name, stateTemp, header, state); err != nil {
		err = fmt.Errorf("journal %s: cannot write the snapshot %s: %w", j.d, name, err)
		if passes(err) {
			return kindOf(err)
		}
		return j.breakOff(err)
	}
	j.syncHead()
	j.stateAt = j.last
	j.marks = j.marks[:0]
	j.closed = headSize + int64(len(header)+len(state))
	names, err := j.d.List()
	if err != nil {
		return j.breakOff(fmt.Errorf("cannot list %s: %w", j.d, err))
	}
	for _, old := range names {
		first, isSegment := parseName(old, segmentSuffix)
		seq, isState := parseName(old, stateSuffix)
		if (isSegment && first <= j.last.Seq) || (isState && seq < j.last.Seq) {
			if err := j.remove(old); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove deletes a file that does not count any more. Its name may come back after a power cut; then the next start
// removes it.
func (j *log) remove(name string) error {
	if err := j.d.Remove(name); err != nil {
		return j.breakOff(fmt.Errorf("journal %s: cannot remove %s: %w", j.d, name, err))
	}
	return nil
}
