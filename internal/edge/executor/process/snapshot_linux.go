package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	files "sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// maxEntries bounds the files of one snapshot.
const maxEntries = 200_000

// PutSnapshot stores a tar.gz of a work directory. Its id is the SHA-256 of its bytes: the same bytes are stored once. It is refused whole if it is not such a file, is larger than limit bytes, unpacks to more than SnapshotLimit, or
// holds a name that leads out of the directory or anything but files, directories and links. Errors are of kind Invalid
// or Exhausted, or as the store has them.
func (e *Executor) PutSnapshot(data []byte, limit int64) (s executor.Snapshot, err error) {
	if int64(len(data)) > limit {
		return s, errkind.Errorf(errkind.Exhausted, "the work directory is %d bytes packed, the limit is %d: leave out what is not needed, or mount it", len(data), limit)
	}
	if s.Files, s.Bytes, err = tree.Unpack(bytes.NewReader(data), nil, e.snapshotLimits(), nil); err != nil {
		return executor.Snapshot{}, err
	}
	o, err := e.o.Store.Put(e.ctx, "", bytes.NewReader(data))
	if err != nil {
		return executor.Snapshot{}, err
	}
	s.ID = string(o.Digest)
	return s, e.need(o.Digest)
}

// TakeSnapshot has a work directory that is in the store already stay there. It is refused as PutSnapshot refuses one; NotFound: there is none.
func (e *Executor) TakeSnapshot(id string) (s executor.Snapshot, err error) {
	if err = e.need(files.Digest(id)); err != nil { // before it is read, so that nobody removes it meanwhile
		return s, err
	}
	r, err := e.o.Store.Open(e.ctx, files.Digest(id))
	if err != nil {
		return s, err
	}
	s.ID = id
	s.Files, s.Bytes, err = tree.Unpack(r, nil, e.snapshotLimits(), nil)
	return s, errors.Join(err, r.Close())
}

// need names a work directory, for as long as PruneSnapshots keeps it.
func (e *Executor) need(id files.Digest) error {
	e.naming.Lock()
	defer e.naming.Unlock()
	return files.Name(e.ctx, e.o.Store, e.workName(id), files.Refs{"work": id})
}

func (e *Executor) workName(id files.Digest) string { return "work/" + e.owner + "/" + string(id) }

func (e *Executor) snapshotLimits() tree.Limits {
	return tree.Limits{Bytes: e.o.SnapshotLimit, Entries: maxEntries, Writable: true}
}

// HasSnapshot says whether a stored work directory is there.
func (e *Executor) HasSnapshot(id string) (bool, error) {
	if _, err := os.Stat(e.s.snapshot(id)); err == nil {
		return true, nil
	}
	if e.own != nil {
		if _, err := e.own.Stat(e.ctx, files.Digest(id)); !absent(err) {
			return err == nil, err
		}
	}
	_, err := e.o.Store.Stat(e.ctx, files.Digest(id))
	if absent(err) {
		return false, nil
	}
	return err == nil, err
}

// absent says whether an error is that there is no such work directory; Invalid: no id that was ever given.
func absent(err error) bool {
	k := errkind.Of(err)
	return k == errkind.NotFound || k == errkind.Invalid
}

// openSnapshot reads a stored work directory: of the store, or where it was put before this was the store.
func (e *Executor) openSnapshot(id string) (io.ReadCloser, error) {
	f, err := os.Open(e.s.snapshot(id))
	if err == nil {
		return files.Verified(f, files.Digest(id), e.s.in("snapshots")), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if e.own != nil {
		if r, failed := e.own.Open(e.ctx, files.Digest(id)); !absent(failed) {
			return r, failed
		}
	}
	r, err := e.o.Store.Open(e.ctx, files.Digest(id))
	if absent(err) {
		return nil, errkind.Errorf(errkind.NotFound, "there is no snapshot %s on this node: submit the job again", id)
	}
	return r, err
}

// extract unpacks a stored snapshot into the directory into, for a user.
func (e *Executor) extract(id, into string, u *shim.User) error {
	r, err := e.openSnapshot(id)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	_, _, err = tree.Unpack(r, root, e.snapshotLimits(), owning(u))
	return err
}

// owning is a user as the owner of what is unpacked.
func owning(u *shim.User) *tree.Owner {
	if u == nil {
		return nil
	}
	return &tree.Owner{UID: int(u.UID), GID: int(u.GID)}
}

// openOwn opens the store of the data directory: as the store where none was given, else for what was put there before.
func (e *Executor) openOwn() error {
	path := e.s.in("store")
	if e.o.Store != nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	own, err := local.Open(path)
	switch {
	case err != nil:
		return err
	case e.o.Store == nil:
		e.o.Store = own
	default:
		e.own = own
	}
	return nil
}

// prepareStore finds out under which name it is known there: several may share one.
func (e *Executor) prepareStore() error {
	path := e.s.in("store-owner")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var salt [8]byte
		_, _ = rand.Read(salt[:]) // never fails (package crypto/rand)
		data = []byte(hex.EncodeToString(salt[:]))
		err = shim.WriteFile(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("who this daemon is in its store: %w", err)
	}
	e.owner = strings.TrimSpace(string(data))
	if err = files.CheckName(e.owner); err != nil || strings.Contains(e.owner, "/") {
		return errkind.Errorf(errkind.Corrupt, "%s holds %.40q, which is no name: put back what it held, or remove it if the store is this daemon's alone", path, e.owner)
	}
	e.ctx, e.giveUp = context.WithCancel(context.Background())
	return nil
}
