package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
)

// view runs f in a transaction that sees one state of the archive.
func (a *Archive) view(f func(*bbolt.Tx) error) error {
	err := guard(func() error {
		tx, err := a.db.Begin(false)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it only ends the reading
		return f(tx)
	})
	if errors.As(err, new(*damage)) {
		return a.corrupt(err)
	}
	return err
}

// Recall is archive.Archive's.
func (a *Archive) Recall(role protocol.Role, name job.ID) (p archive.Part, ok bool, err error) {
	err = a.view(func(tx *bbolt.Tx) error {
		key := partKey(role, name)
		value := tx.Bucket([]byte(partsBucket)).Get(key)
		if value == nil {
			return nil
		}
		read, damaged := openPart(key, value)
		if damaged != nil {
			return a.damagedJob(string(name), damaged)
		}
		read.Data = bytes.Clone(read.Data) // the store's memory ends with the transaction
		p, ok = read, true
		return nil
	})
	return p, ok, err
}

// NeedsWorkdir is archive.Archive's.
func (a *Archive) NeedsWorkdir(id string) (needs bool, err error) {
	err = a.view(func(tx *bbolt.Tx) error {
		key := []byte(id)
		value := tx.Bucket([]byte(usesBucket)).Get(key)
		if needs = value != nil; needs {
			if _, damaged := openUses(key, value); damaged != nil {
				return a.corrupt(fmt.Errorf("what needs the work directory %.80q: %w", id, damaged))
			}
		}
		return nil
	})
	return needs, err
}

// Page is archive.Archive's.
func (a *Archive) Page(before archive.Cursor, n int, states status.JobStates, keep func(*archive.Entry) bool) (page archive.Page,
	err error) {
	page.Next = before
	err = a.view(func(tx *bbolt.Tx) error {
		lists := listsOf(tx, states, before)
		for looked := 0; ; looked++ {
			l := newest(lists)
			if l == nil {
				page.Done = true
				return nil
			}
			if len(page.Entries) == n || looked == archive.MaxLooked {
				return nil
			}
			e, damaged := openEntry(l.key, l.value)
			if at, name, ok := readTimeKey(l.key[1:]); ok { // also where what stands under it is damaged
				page.Next = archive.Cursor{Submitted: at, Job: name}
			}
			switch {
			case damaged != nil:
				page.Damaged = append(page.Damaged, a.damagedJob(string(l.key[min(9, len(l.key)):]), damaged))
			case keep == nil || keep(&e):
				page.Entries = append(page.Entries, e)
			}
			l.step(l.cursor.Prev())
		}
	})
	return page, err
}

// list is a place in the list of one state: the next entry, as it is stored, nil behind the last.
type list struct {
	cursor     *bbolt.Cursor
	state      byte
	key, value []byte
}

// listsOf are the lists of some states, from before a cursor on.
func listsOf(tx *bbolt.Tx, states status.JobStates, before archive.Cursor) (out []*list) {
	for state := range job.Impossible + 1 {
		if state.Final() && states.Has(state) {
			l := &list{cursor: tx.Bucket([]byte(listsBucket)).Cursor(), state: stateMark | byte(state)}
			l.step(last(l.cursor, listKey(state, before)))
			out = append(out, l)
		}
	}
	return out
}

// step reads the entry at the cursor, if it is of the list.
func (l *list) step(key, value []byte) {
	if l.key, l.value = nil, nil; len(key) > 0 && key[0] == l.state {
		l.key, l.value = key, value
	}
}

// newest is the list whose next entry is; nil if all are over.
func newest(lists []*list) (first *list) {
	for _, l := range lists {
		if l.key != nil && (first == nil || bytes.Compare(l.key[1:], first.key[1:]) > 0) {
			first = l
		}
	}
	return first
}

// last moves a cursor to the last key before one.
func last(c *bbolt.Cursor, before []byte) (k, v []byte) {
	if k, _ := c.Seek(before); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// Outdated is archive.Archive's.
func (a *Archive) Outdated(before quantity.Instant, most int64, n int) (list []archive.Ended, err error) {
	err = a.view(func(tx *bbolt.Tx) error {
		t, damaged := a.totals(tx)
		if damaged != nil {
			return damaged
		}
		c := tx.Bucket([]byte(endedBucket)).Cursor()
		k, v := c.First()
		for beyond := t.jobs - most; k != nil && len(list) < n; beyond-- {
			e, damaged := openEnded(k, v)
			if damaged != nil {
				return a.damagedJob(string(k[min(8, len(k)):]), damaged)
			}
			if e.At >= before && beyond <= 0 {
				return nil
			}
			list = append(list, e)
			k, v = c.Next()
		}
		return nil
	})
	return slices.Clip(list), err
}
