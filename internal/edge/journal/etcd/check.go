//go:build etcd

package etcd

import (
	"context"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// Check implements journal.Journal: witnesses of records between the snapshot and the last one take one reading.
func (j *Journal) Check(witnesses []journal.Position) []error {
	errs := make([]error, len(witnesses))
	j.mu.Lock()
	last, stateAt, broken := j.last, j.stateAt, j.usable()
	j.mu.Unlock()
	found := map[uint64]journal.Position{stateAt.Seq: stateAt, last.Seq: last}
	within := map[uint64]bool{}
	for _, w := range witnesses {
		if _, known := found[w.Seq]; !known && w.Seq > stateAt.Seq && w.Seq < last.Seq {
			within[w.Seq] = true
		}
	}
	if broken == nil && len(within) > 0 {
		broken = j.find(stateAt, within, found)
	}
	for i, w := range witnesses {
		switch p := found[w.Seq]; {
		case broken != nil:
			errs[i] = broken
		case w.Seq < stateAt.Seq, w == journal.Position{}:
		case w.Seq > last.Seq:
			errs[i] = j.errorf(errkind.Corrupt, "it ends with record %d, and record %s was promised: %d records are missing; %s",
				last.Seq, w, w.Seq-last.Seq, restore)
		case p != w:
			errs[i] = j.errorf(errkind.Corrupt, "record %d has the digest %s, and %s was promised: this is not the journal that made the promise; %s",
				w.Seq, p, w, restore)
		}
	}
	return errs
}

// find reads the batches and notes the positions that are asked for.
func (j *Journal) find(from journal.Position, within map[uint64]bool, found map[uint64]journal.Position) error {
	ctx, cancel := context.WithTimeout(j.life, j.o.Patience)
	defer cancel()
	now, err := j.kv.Get(ctx, j.keys.leader())
	if err != nil {
		return j.away(err)
	}
	r := &reading{j: j, rev: now.Header.Revision, last: from, stateAt: from}
	return r.batches(func(p journal.Position, _ []byte) error {
		if within[p.Seq] {
			found[p.Seq] = p
		}
		return nil
	})
}
