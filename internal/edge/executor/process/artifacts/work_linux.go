package artifacts

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	files "sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// maxEntries bounds the files of one work directory.
const maxEntries = 200_000

// PutWork stores a tar.gz of a work directory. Its id is the SHA-256 of its bytes: the same bytes are stored once. It is refused whole if
// it is not such a file, is larger than limit bytes, unpacks to more than WorkdirLimit, or holds a name that leads out of the directory
// or anything but files, directories and links. Errors are of kind Invalid or Exhausted, or as the store has them.
func (a *Artifacts) PutWork(data []byte, limit int64) (s executor.Workdir, err error) {
	if int64(len(data)) > limit {
		return s, errkind.Errorf(errkind.Exhausted, "the work directory is %d bytes packed, the limit is %d: leave out what is not "+
			"needed, or mount it", len(data), limit)
	}
	if s.Files, s.Bytes, err = tree.Unpack(bytes.NewReader(data), nil, a.workdirLimits(), nil); err != nil {
		return executor.Workdir{}, err
	}
	o, err := a.o.Store.Put(a.ctx, "", bytes.NewReader(data))
	if err != nil {
		return executor.Workdir{}, err
	}
	s.ID = string(o.Digest)
	return s, a.need(o.Digest)
}

// TakeWork keeps a work directory that is in the store already. It is refused as PutWork refuses one; NotFound: there is none.
func (a *Artifacts) TakeWork(id string) (s executor.Workdir, err error) {
	if err = a.need(files.Digest(id)); err != nil { // before it is read, so that nobody removes it meanwhile
		return s, err
	}
	r, err := a.o.Store.Open(a.ctx, files.Digest(id))
	if err != nil {
		return s, err
	}
	s.ID = id
	s.Files, s.Bytes, err = tree.Unpack(r, nil, a.workdirLimits(), nil)
	return s, errors.Join(err, r.Close())
}

// need names a work directory, which keeps it until PruneWork removes the name.
func (a *Artifacts) need(id files.Digest) error {
	a.naming.Lock()
	defer a.naming.Unlock()
	return files.Name(a.ctx, a.o.Store, a.workName(id), files.Refs{"work": id})
}

func (a *Artifacts) workName(id files.Digest) string { return "work/" + a.owner + "/" + string(id) }

func (a *Artifacts) workdirLimits() tree.Limits {
	return tree.Limits{Bytes: a.o.Limit, Entries: maxEntries, Writable: true}
}

// HasWork reports whether a stored work directory exists.
func (a *Artifacts) HasWork(id string) (bool, error) {
	if _, err := os.Stat(a.o.Layout.OldWorkdir(id)); err == nil {
		return true, nil
	}
	if a.own != nil {
		if _, err := a.own.Stat(a.ctx, files.Digest(id)); !absent(err) {
			return err == nil, err
		}
	}
	_, err := a.o.Store.Stat(a.ctx, files.Digest(id))
	if absent(err) {
		return false, nil
	}
	return err == nil, err
}

// absent reports whether an error means that there is no such work directory; Invalid: no valid id.
func absent(err error) bool {
	k := errkind.Of(err)
	return k == errkind.NotFound || k == errkind.Invalid
}

// openWorkdir reads a stored work directory from the store, or from the store that was used before.
func (a *Artifacts) openWorkdir(id string) (io.ReadCloser, error) {
	f, err := os.Open(a.o.Layout.OldWorkdir(id))
	if err == nil {
		return files.Verified(f, files.Digest(id), a.o.Layout.In("snapshots")), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if a.own != nil {
		if r, failed := a.own.Open(a.ctx, files.Digest(id)); !absent(failed) {
			return r, failed
		}
	}
	r, err := a.o.Store.Open(a.ctx, files.Digest(id))
	if absent(err) {
		return nil, errkind.Errorf(errkind.NotFound, "there is no snapshot %s on this node: submit the job again", id)
	}
	return r, err
}

// Extract unpacks a stored work directory into the directory into, for a user.
func (a *Artifacts) Extract(id, into string, u *shim.User) error {
	r, err := a.openWorkdir(id)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	_, _, err = tree.Unpack(r, root, a.workdirLimits(), owner(u))
	return err
}

// PruneWork removes stored work directories that no job needs by keep, and then everything in the store without a name. Those younger
// than an hour stay: their job may be about to be accepted. What the store of a guest has is its owner's to remove.
func (a *Artifacts) PruneWork(keep func(id string) bool) error {
	err := a.pruneOld(keep)
	if !a.guest() {
		err = errors.Join(err, a.pruneIn(a.o.Store, keep))
	}
	if a.own != nil {
		err = errors.Join(err, a.pruneIn(a.own, keep))
	}
	return err
}

func (a *Artifacts) pruneIn(s files.Store, keep func(id string) bool) error {
	now, err := s.Now(a.ctx)
	if err != nil {
		return err
	}
	err = s.Names(a.ctx, "work/"+a.owner, func(n files.Named) error {
		if keep(string(n.Refs["work"])) || now.Sub(n.Changed) <= time.Hour {
			return nil
		}
		return a.forgo(s, n.Name, now)
	})
	if err == nil {
		_, err = files.Collect(a.ctx, s, files.LeastAge, false)
	}
	return err
}

// forgo removes the name of a work directory, unless it was needed again just now.
func (a *Artifacts) forgo(s files.Store, name string, now time.Time) error {
	a.naming.Lock()
	defer a.naming.Unlock()
	n, err := s.ReadName(a.ctx, name)
	if errkind.Of(err) == errkind.NotFound || err == nil && now.Sub(n.Changed) <= time.Hour {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Unname(a.ctx, name)
}

// pruneOld does the same for those that older versions stored in a folder of their own.
func (a *Artifacts) pruneOld(keep func(id string) bool) error {
	entries, err := os.ReadDir(a.o.Layout.In("snapshots"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range entries {
		if id, ok := strings.CutSuffix(d.Name(), ".tar.gz"); ok && keep(id) {
			continue
		}
		if info, gone := d.Info(); gone == nil && a.o.Now().Sub(info.ModTime()) > time.Hour {
			err = errors.Join(err, os.Remove(a.o.Layout.In("snapshots", d.Name())))
		}
	}
	return err
}
