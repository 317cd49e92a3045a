package bolt

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/archive"
)

// roles are those that file.
func roles() []protocol.Role { return []protocol.Role{protocol.Gate, protocol.Zone} }

// change is one transaction, with the totals that it leaves.
type change struct {
	a                           *Archive
	parts, lists, endings, uses *bbolt.Bucket
	info                        *bbolt.Bucket
	totals                      totals
	changed                     bool
}

// File is archive.Archive's.
func (a *Archive) File(parts []archive.Part) error {
	if err := archive.CheckFiling(parts); err != nil {
		return err
	}
	return a.update(func(c *change) error {
		for i := range parts {
			if err := c.file(&parts[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Discard is archive.Archive's.
func (a *Archive) Discard(list []archive.Discarded) error {
	if err := archive.CheckDiscard(list); err != nil {
		return err
	}
	return a.update(func(c *change) error {
		for _, d := range list {
			for _, role := range roles() {
				if err := c.discard(role, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (c *change) file(p *archive.Part) error {
	key := partKey(p.Role, p.Job)
	value := sealPart(key, p)
	if old := c.parts.Get(key); old != nil {
		if bytes.Equal(old, value) {
			return nil
		}
		was, err := openPart(key, old)
		if err != nil {
			return c.a.damagedJob(string(p.Job), err)
		}
		if was.Generation > p.Generation {
			return nil
		}
		if err := c.unlist(was.Entry); err != nil {
			return err
		}
	} else {
		c.count(p.Role, 1)
	}
	c.changed = true
	if err := c.parts.Put(key, value); err != nil {
		return err
	}
	return c.list(p.Entry)
}

func (c *change) discard(role protocol.Role, d archive.Discarded) error {
	key := partKey(role, d.Job)
	old := c.parts.Get(key)
	if old == nil {
		return nil
	}
	was, err := openPart(key, old)
	if err != nil {
		return c.a.damagedJob(string(d.Job), err)
	}
	if was.Generation > d.UpTo {
		return nil
	}
	c.changed = true
	c.count(role, -1)
	if err := c.unlist(was.Entry); err != nil {
		return err
	}
	return c.parts.Delete(key)
}

// list puts a job into the indexes; nil is one that has no place there.
func (c *change) list(e *archive.Entry) error {
	if e == nil {
		return nil
	}
	key := listKey(e.State, e.Cursor())
	if err := c.lists.Put(key, sealEntry(key, e)); err != nil {
		return err
	}
	key = timeKey(e.Ended, e.Job)
	if err := c.endings.Put(key, sealEnded(key, e.Generation)); err != nil {
		return err
	}
	return c.use(e.Workdir, 1)
}

func (c *change) unlist(e *archive.Entry) error {
	if e == nil {
		return nil
	}
	if err := c.lists.Delete(listKey(e.State, e.Cursor())); err != nil {
		return err
	}
	if err := c.endings.Delete(timeKey(e.Ended, e.Job)); err != nil {
		return err
	}
	return c.use(e.Workdir, -1)
}

// use counts one more, or one less, job with a stored work directory.
func (c *change) use(id string, more int64) error {
	if id == "" {
		return nil
	}
	key, n := []byte(id), int64(0)
	if value := c.uses.Get(key); value != nil {
		var err error
		if n, err = openUses(key, value); err != nil {
			return c.a.corrupt(fmt.Errorf("what needs the work directory %.80q: %w", id, err))
		}
	}
	switch n += more; {
	case n < 0:
		return c.a.corrupt(fmt.Errorf("what needs the work directory %.80q is not counted", id))
	case n == 0:
		return c.uses.Delete(key)
	}
	return c.uses.Put(key, sealUses(key, n))
}

func (c *change) count(role protocol.Role, n int64) {
	if role == protocol.Gate {
		c.totals.jobs += n
	} else {
		c.totals.homes += n
	}
}

// update runs f in one transaction, which is durable when it returns without an error.
func (a *Archive) update(f func(*change) error) error {
	a.write.Lock()
	defer a.write.Unlock()
	if ended := a.ended.Load(); ended != nil {
		return *ended
	}
	err := guard(func() error {
		tx, err := a.db.Begin(true)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // of an uncommitted change
		c := change{
			a: a, parts: tx.Bucket([]byte(partsBucket)), lists: tx.Bucket([]byte(listsBucket)),
			endings: tx.Bucket([]byte(endedBucket)), uses: tx.Bucket([]byte(usesBucket)), info: tx.Bucket([]byte(infoBucket)),
		}
		c.parts.FillPercent, c.lists.FillPercent, c.endings.FillPercent = 0.9, 0.9, 0.9
		if c.totals, err = a.totals(tx); err != nil {
			return err
		}
		if err := f(&c); err != nil || !c.changed {
			return err
		}
		c.totals.changes++
		if err := c.info.Put([]byte(totalsKey), sealTotals([]byte(totalsKey), c.totals)); err != nil {
			return err
		}
		return tx.Commit()
	})
	switch {
	case err == nil:
		return nil
	case retriable(err):
		return errkind.Errorf(errkind.Exhausted, "archive %s: %w", a.path, err)
	case errors.As(err, new(*damage)):
		err = a.corrupt(err)
	case errkind.Of(err) == errkind.Unknown:
		err = fmt.Errorf("archive %s takes no more, and nobody knows what of the last change is on the disk: %w", a.path, err)
	}
	a.ended.Store(&err)
	return err
}
