package local

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

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
func (j *opened) Check(witnesses []journal.Position) []error {
	j.mu.Lock()
	defer j.mu.Unlock()
	errs, order := make([]error, len(witnesses)), make([]int, len(witnesses))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(witnesses[a].Seq, witnesses[b].Seq) })
	c := cursor{j: j}
	defer c.close()
	for _, i := range order {
		errs[i] = j.check(&c, witnesses[i])
	}
	return errs
}

// check compares the journal with one witness. c finds the digests of records between the snapshot and the last record.
func (j *opened) check(c *cursor, w journal.Position) error {
	if err := j.usable(); err != nil {
		return err
	}
	var found journal.Position
	switch {
	case w.Seq < j.stateAt.Seq, w == journal.Position{}:
		return nil
	case w.Seq > j.last.Seq:
		return errkind.Errorf(errkind.Corrupt, "journal %s: %s, byte %d: it ends with record %d, and record %s was promised: %d records "+
			"are missing; %s",
			j.d, j.tailName, j.off, j.last.Seq, w, w.Seq-j.last.Seq, restore)
	case w.Seq == j.stateAt.Seq:
		found = j.stateAt
	case w.Seq == j.last.Seq:
		found = j.last
	default:
		var err error
		if found, err = c.find(w.Seq); err != nil {
			return err
		}
	}
	if found != w {
		return errkind.Errorf(errkind.Corrupt, "journal %s: record %d has the digest %s, and %s was promised: this is not the journal "+
			"that made the promise; %s",
			j.d, w.Seq, found, w, restore)
	}
	return nil
}
