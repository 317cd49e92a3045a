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

// NeedsSnapshot is archive.Archive's.
func (a *Archive) NeedsSnapshot(id string) (needs bool, err error) {
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
func (a *Archive) Page(before archive.Cursor, n int, keep func(*archive.Entry) bool) (page archive.Page, err error) {
	page.Next = before
	err = a.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(orderBucket)).Cursor()
		k, v := last(c, timeKey(before.Submitted, before.Job))
		for looked := 0; len(page.Entries) < n && looked < archive.MaxLooked; looked++ {
			if k == nil {
				page.Done = true
				return nil
			}
			e, damaged := openEntry(k, v)
			if damaged != nil {
				return a.damagedJob(string(k[min(8, len(k)):]), damaged)
			}
			page.Next = e.Cursor()
			if keep == nil || keep(&e) {
				page.Entries = append(page.Entries, e)
			}
			k, v = c.Prev()
		}
		page.Done = k == nil
		return nil
	})
	return page, err
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
