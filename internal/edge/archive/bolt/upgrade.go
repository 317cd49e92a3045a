package bolt

import (
	"errors"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"sluice.dev/sluice/internal/core/errkind"
)

// An archive of the first format has one list of all jobs: a search for those of one state had to read it all.
const (
	unlisted    = "sluice archive 1"
	orderBucket = "order" // submitted and name: that list
)

// upgradePiece is how many jobs one transaction of an upgrade lists: what it has changed is in memory until it ends.
const upgradePiece = 20_000

// upgrade makes the lists of an archive of the first format. It says what it now is with the last transaction, so one that was cut off
// begins anew: an older build may have changed the archive since.
func (a *Archive) upgrade() error {
	again, err := a.beginUpgrade()
	for from := []byte(nil); again && err == nil; {
		from, again, err = a.listSome(from, upgradePiece)
	}
	switch {
	case err == nil:
		return nil
	case retriable(err):
		err = errkind.Errorf(errkind.Exhausted, "archive %s: list its jobs by state: %w", a.path, err)
	case errors.As(err, new(*damage)):
		err = a.corrupt(err)
	}
	a.ended.Store(&err)
	return err
}

// beginUpgrade removes what is left of one that was cut off, and says whether there is anything to do.
func (a *Archive) beginUpgrade() (needed bool, err error) {
	if err = a.view(func(tx *bbolt.Tx) error {
		got, _ := formatOf(tx)
		needed = got == unlisted && tx.Bucket([]byte(orderBucket)) != nil
		return nil
	}); err != nil || !needed {
		return false, err
	}
	return true, guard(func() error {
		return a.db.Update(func(tx *bbolt.Tx) error {
			if err := tx.DeleteBucket([]byte(listsBucket)); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
				return err
			}
			_, err := tx.CreateBucket([]byte(listsBucket))
			return err
		})
	})
}

// listSome lists up to n jobs from a place in the old list on, and returns where to continue, if anywhere.
func (a *Archive) listSome(from []byte, n int) (next []byte, more bool, err error) {
	err = guard(func() error {
		return a.db.Update(func(tx *bbolt.Tx) error {
			lists := tx.Bucket([]byte(listsBucket))
			lists.FillPercent = 0.9
			c := tx.Bucket([]byte(orderBucket)).Cursor()
			k, v := c.Seek(from)
			for ; k != nil && n > 0; k, v = c.Next() {
				e, damaged := openOrdered(k, v)
				if damaged != nil {
					return a.damagedJob(string(k[min(8, len(k)):]), damaged)
				}
				key := listKey(e.State, e.Cursor())
				if failed := lists.Put(key, sealEntry(key, &e)); failed != nil {
					return failed
				}
				n--
			}
			if more = k != nil; more {
				next = append(next, k...)
				return nil
			}
			return errors.Join(tx.DeleteBucket([]byte(orderBucket)), tx.Bucket([]byte(infoBucket)).Put([]byte(formatKey), []byte(format)))
		})
	})
	return next, more, err
}
