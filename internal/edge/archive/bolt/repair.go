package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/archive"
)

// Kept is the archive of before a repair, beside it.
const Kept = "jobs.db.before-repair"

// Repaired is what a repair found.
type Repaired struct {
	// Before and After are the sizes; Before has no counts where they were damaged.
	Before, After archive.Size
	// Damaged names what was left out, as far as it has a name.
	Damaged []string
	// Broken: the tree itself was damaged. What could still be found of it may include jobs that had been discarded.
	Broken bool
}

// Repair writes an archive anew with everything in it that is whole, which also gives freed space back, and keeps the one of
// before under the name Kept. givenUp is how many jobs that the journal knows of may be missing from then on, besides those that
// were given up before, and changes a change that it knows of: the daemon refuses an archive with fewer of either. Where there is no
// archive it makes an empty one. A repair that is cut off leaves the archive as it was. Nobody may have it open (Conflict).
func Repair(dir string, givenUp int64, changes uint64) (r Repaired, err error) {
	path := filepath.Join(dir, FileName)
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return r, err
	}
	from, err := open(path, os.O_RDWR) // as a writer: that locks others out
	if r.Broken = errkind.Of(err) == errkind.Corrupt; err != nil && !r.Broken && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if from != nil {
		defer func() { err = errors.Join(err, from.letGo()) }()
		if err = from.known(); err != nil {
			return r, err
		}
	}
	if err = removeTemporary(dir); err != nil {
		return r, err
	}
	to, err := begin(dir)
	if err != nil {
		return r, kinded(err)
	}
	err = fill(to, from, path, &r)
	if err == nil {
		err = to.giveUp(r.Before.GivenUp+givenUp, max(r.Before.Changes, changes))
	}
	if err == nil {
		r.After, err = to.Size()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return r, kinded(errors.Join(fmt.Errorf("write the archive anew: %w", err), removeTemporary(dir)))
	}
	if err = keep(dir); err != nil {
		return r, kinded(fmt.Errorf("keep the archive of before: %w", err))
	}
	return r, kinded(replace(dir))
}

// known refuses an archive of another format: what can't be understood can't be mended.
func (a *Archive) known() error {
	var got string
	err := a.view(func(tx *bbolt.Tx) error {
		got, _ = formatOf(tx)
		return nil
	})
	if err == nil && got != "" && got != format && got != unlisted {
		return a.unknown(got)
	}
	return nil
}

// keep gives the old archive a second name, so that there is one at every moment.
func keep(dir string) error {
	kept := filepath.Join(dir, Kept)
	if err := os.Remove(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(filepath.Join(dir, FileName), kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// letGo closes an archive whose tree may be damaged.
func (a *Archive) letGo() error {
	if err := guard(a.db.Close); err != nil {
		return a.abandon()
	}
	return nil
}

// giveUp sets what only a repair sets.
func (a *Archive) giveUp(jobs int64, changes uint64) error {
	return a.update(func(c *change) error {
		c.changed, c.totals.givenUp, c.totals.changes = true, jobs, max(c.totals.changes, changes)
		return nil
	})
}

// fill files every part that is whole: those that the tree leads to, and where the tree is damaged those that lie in the file's
// pages besides. Of the latter some may have been replaced or discarded a while ago.
func fill(to, from *Archive, path string, r *Repaired) error {
	w := filer{to: to}
	if from != nil {
		if size, err := from.Size(); err == nil {
			r.Before = size
		} else {
			r.Damaged = append(r.Damaged, "the totals")
		}
		r.Broken = from.walk(&w, r) != nil || r.Broken
	}
	w.flush()
	if r.Broken {
		if err := scan(path, w.addMissing); err != nil {
			return err
		}
		w.flush()
	}
	return w.failed
}

// walk hands over what the tree leads to. Its error is damage of the tree.
func (a *Archive) walk(w *filer, r *Repaired) error {
	return a.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(partsBucket))
		if b == nil {
			return errDamaged
		}
		c := b.Cursor()
		for k, v := c.First(); k != nil && w.failed == nil; k, v = c.Next() {
			p, err := openPart(k, v)
			if err = errors.Join(err, p.Check()); err != nil {
				r.Damaged = append(r.Damaged, fmt.Sprintf("job %.80q", k[1:]))
				continue
			}
			p.Data = bytes.Clone(p.Data)
			w.add(p)
		}
		return nil
	})
}

// filer files parts in batches.
type filer struct {
	to     *Archive
	parts  []archive.Part
	size   int
	failed error
}

func (w *filer) add(p archive.Part) {
	p.ReadOwner()
	w.parts, w.size = append(w.parts, p), w.size+len(p.Data)
	if len(w.parts) == archive.MaxParts || w.size > archive.MaxFiling-archive.MaxPart {
		w.flush()
	}
}

// addMissing adds a part if none of that life or a later one is filed. Of two that are found of one life nobody can say which is the
// newer.
func (w *filer) addMissing(p archive.Part) {
	if w.failed != nil {
		return
	}
	was, found, err := w.to.Recall(p.Role, p.Job)
	if w.failed = err; err == nil && (!found || was.Generation < p.Generation) {
		w.add(p)
	}
}

func (w *filer) flush() {
	if w.failed == nil {
		w.failed = w.to.File(w.parts)
	}
	w.parts, w.size = w.parts[:0], 0
}
