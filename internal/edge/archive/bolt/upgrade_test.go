package bolt

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
)

// downgrade makes an archive one of the first format, as the build that knew no other wrote it.
func downgrade(t testing.TB, a *Archive) {
	t.Helper()
	if err := a.db.Update(func(tx *bbolt.Tx) error {
		order, err := tx.CreateBucket([]byte(orderBucket))
		if err != nil {
			return err
		}
		c := tx.Bucket([]byte(listsBucket)).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			e, err := openEntry(k, v)
			if err != nil {
				return err
			}
			key := timeKey(e.Submitted, e.Job)
			if err := order.Put(key, sealEntry(key, &e)); err != nil {
				return err
			}
		}
		if err := tx.DeleteBucket([]byte(listsBucket)); err != nil {
			return err
		}
		return tx.Bucket([]byte(infoBucket)).Put([]byte(formatKey), []byte(unlisted))
	}); err != nil {
		t.Fatal(err)
	}
}

// old makes an archive of the first format with n jobs, every third of them failed, and says what its lists are to have.
func old(t *testing.T, n int) (dir string, all, failed []archive.Entry) {
	dir = t.TempDir()
	a := reopened(t, dir)
	var parts []archive.Part
	for i := range n {
		p := archivetest.Job(name(i), 2, quantity.Instant(i/2), quantity.Instant(i+1))
		if e := p[0].Entry; i%3 == 0 {
			e.State = job.Failed
			failed = append(failed, *e)
		}
		parts, all = append(parts, p...), append(all, *p[0].Entry)
	}
	if err := a.File(parts); err != nil {
		t.Fatal(err)
	}
	downgrade(t, a)
	closing(t, a, nil)
	slices.Reverse(all)
	slices.Reverse(failed)
	return dir, all, failed
}

// listed checks the lists of an archive, which is closed then.
func listed(t *testing.T, a *Archive, all, failed []archive.Entry) {
	t.Helper()
	for states, want := range map[status.JobStates][]archive.Entry{0: all, status.JobStates(0).With(job.Failed): failed} {
		p, err := a.Page(archive.End(), len(all)+1, states, nil)
		if err != nil || !slices.Equal(p.Entries, want) || !p.Done {
			t.Errorf("states %b: %d entries, want %d: %v", states, len(p.Entries), len(want), err)
		}
	}
	closing(t, a, nil)
}

// TestAnOldArchiveIsListedByState when it is opened, and when it is repaired.
func TestAnOldArchiveIsListedByState(t *testing.T) {
	dir, all, failed := old(t, 300)
	listed(t, reopened(t, dir), all, failed)
	listed(t, reopened(t, dir), all, failed) // and once is enough

	dir, all, failed = old(t, 300)
	if r, err := Repair(dir, 0, 0); err != nil || len(r.Damaged) > 0 || r.After.Jobs != 300 {
		t.Errorf("repair: %v, %+v", err, r)
	}
	listed(t, reopened(t, dir), all, failed)
}

// TestAnUpgradeIsCutOff between any two of its transactions, of which each is durable or nothing: the next start makes it whole, whatever
// the older build has done to the archive meanwhile.
func TestAnUpgradeIsCutOff(t *testing.T) {
	const jobs, piece = 40, 7
	for cut := range jobs/piece + 3 {
		dir, all, failed := old(t, jobs)
		a, err := open(filepath.Join(dir, FileName), os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		var from []byte
		again := false
		if cut > 0 {
			again, err = a.beginUpgrade()
		}
		for i := 1; i < cut && again && err == nil; i++ {
			from, again, err = a.listSome(from, piece)
		}
		if err != nil {
			t.Fatal(err)
		}
		if again || cut == 0 { // the older build discards the oldest job, of which it knows one list
			gone := all[len(all)-1]
			err := a.db.Update(func(tx *bbolt.Tx) error {
				c := change{
					a: a, parts: tx.Bucket([]byte(partsBucket)), lists: tx.Bucket([]byte(orderBucket)),
					endings: tx.Bucket([]byte(endedBucket)),
					uses:    tx.Bucket([]byte(usesBucket)), info: tx.Bucket([]byte(infoBucket)),
				}
				if err := c.discard(roles()[0], archive.Discarded{Job: gone.Job, UpTo: 9}); err != nil {
					return err
				}
				return c.lists.Delete(timeKey(gone.Submitted, gone.Job))
			})
			if err != nil {
				t.Fatal(err)
			}
			all = all[:len(all)-1]
			failed = slices.DeleteFunc(failed, func(e archive.Entry) bool { return e == gone })
		}
		closing(t, a, nil)
		listed(t, reopened(t, dir), all, failed)
	}
}

// TestADamagedListIsNotTakenOver: an entry of the old list that is damaged is named, and a repair brings the job back from its part.
func TestADamagedListIsNotTakenOver(t *testing.T) {
	dir, all, failed := old(t, 20)
	a, err := open(filepath.Join(dir, FileName), os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	err = a.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(orderBucket)).Put(timeKey(all[4].Submitted, all[4].Job), []byte("no entry"))
	})
	closing(t, a, err)
	if _, err := Open(dir, false); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("it was opened: %v", err)
	}
	if r, err := Repair(dir, 0, 0); err != nil || len(r.Damaged) > 0 {
		t.Errorf("repair: %v, %+v", err, r)
	}
	listed(t, reopened(t, dir), all, failed)
}
