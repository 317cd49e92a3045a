package process

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// maxEntries bounds the files of one snapshot.
const maxEntries = 200_000

// PutSnapshot stores a tar.gz of a work directory. Its id is the SHA-256 of its bytes: the same bytes are stored once. It is refused whole if it is not such a file, is larger than limit bytes, unpacks to more than SnapshotLimit, or
// holds a name that leads out of the directory or anything but files, directories and links. Errors are of kind Invalid
// or Exhausted, or as the file system has them.
func (e *Executor) PutSnapshot(data []byte, limit int64) (s executor.Snapshot, err error) {
	if int64(len(data)) > limit {
		return s, errkind.Errorf(errkind.Exhausted, "the work directory is %d bytes packed, the limit is %d: leave out what is not needed, or mount it", len(data), limit)
	}
	if s.Files, s.Bytes, err = unpack(bytes.NewReader(data), nil, e.o.SnapshotLimit, nil); err != nil {
		return executor.Snapshot{}, err
	}
	sum := sha256.Sum256(data)
	s.ID = hex.EncodeToString(sum[:])
	path := e.s.snapshot(s.ID)
	if _, err := os.Stat(path); err == nil {
		now := e.o.Now()
		return s, os.Chtimes(path, now, now) // as good as new: see PruneSnapshots
	}
	return s, shim.WriteFile(path, data, 0o600)
}

// HasSnapshot says whether a stored work directory is there.
func (e *Executor) HasSnapshot(id string) (bool, error) {
	_, err := os.Stat(e.s.snapshot(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func snapshotID(name string) (string, bool) {
	id, ok := strings.CutSuffix(name, ".tar.gz")
	if !ok || len(id) != 2*sha256.Size {
		return "", false
	}
	_, err := hex.DecodeString(id)
	return id, err == nil
}

// extract unpacks a stored snapshot into the directory into, for a user.
func extract(path, into string, limit int64, u *shim.User) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errkind.Errorf(errkind.NotFound, "there is no snapshot %s on this node: submit the job again", filepath.Base(path))
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	_, _, err = unpack(f, root, limit, u)
	return err
}

// unpack reads a tar.gz and writes it below root; with no root it only checks. It returns how many entries it has, and bytes. Root refuses every path that leads out of
// it, through links too, so a link to anywhere is no way out for what follows it.
func unpack(r io.Reader, root *os.Root, limit int64, u *shim.User) (files, size int64, err error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return 0, 0, errkind.Errorf(errkind.Invalid, "not a tar.gz: %w", err)
	}
	in := tar.NewReader(zip)
	for ; ; files++ {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, size, nil
		}
		if err != nil {
			return 0, 0, errkind.Errorf(errkind.Invalid, "entry %d of the tar: %w", files+1, err)
		}
		if err := check(h); err != nil {
			return 0, 0, err
		}
		if size += h.Size; size > limit || files >= maxEntries {
			return 0, 0, errkind.Errorf(errkind.Exhausted, "unpacked it is more than %d bytes or %d files: leave out what is not needed, or mount it", limit, maxEntries)
		}
		if root == nil {
			continue
		}
		if err := place(in, h, root, u); err != nil {
			return 0, 0, fmt.Errorf("unpacking %q: %w", h.Name, err)
		}
	}
}

// check refuses what has no business in a work directory.
func check(h *tar.Header) error {
	name := strings.TrimSuffix(h.Name, "/")
	if !filepath.IsLocal(name) {
		return errkind.Errorf(errkind.Invalid, "entry %q leads out of the work directory", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeLink:
		if filepath.IsLocal(h.Linkname) {
			return nil
		}
		return errkind.Errorf(errkind.Invalid, "entry %q is a link to %q, out of the work directory", h.Name, h.Linkname)
	}
	return errkind.Errorf(errkind.Invalid, "entry %q is neither a file nor a directory nor a link (tar type %q)", h.Name, h.Typeflag)
}

func place(in io.Reader, h *tar.Header, root *os.Root, u *shim.User) error {
	name := filepath.Clean(h.Name)
	if h.Typeflag == tar.TypeXGlobalHeader || name == "." {
		return nil
	}
	if err := parents(root, filepath.Dir(name), u); err != nil {
		return err
	}
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		if err = root.Mkdir(name, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	case tar.TypeSymlink:
		err = root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		err = root.Link(filepath.Clean(h.Linkname), name)
	default:
		err = file(in, root, name, fs.FileMode(h.Mode).Perm()|0o600)
	}
	if err == nil && u != nil {
		err = root.Lchown(name, int(u.UID), int(u.GID))
	}
	if err == nil && h.Typeflag == tar.TypeReg {
		err = root.Chtimes(name, h.ModTime, h.ModTime)
	}
	return err
}

// parents makes the directories above an entry that the tar does not name.
func parents(root *os.Root, dir string, u *shim.User) error {
	if dir == "." {
		return nil
	}
	if _, err := root.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := parents(root, filepath.Dir(dir), u); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if u != nil {
		return root.Lchown(dir, int(u.UID), int(u.GID))
	}
	return nil
}

func file(in io.Reader, root *os.Root, name string, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}
