package tree

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// Limits bound what is unpacked, in bytes and in entries.
type Limits struct {
	Bytes, Entries int64
	// Writable makes each file writable for its owner, whatever the archive says: programs write in a work directory. Otherwise files have
	// the rights that they had, and can be read.
	Writable bool
}

// least are the rights that each file has.
func (l Limits) least() fs.FileMode {
	if l.Writable {
		return 0o600
	}
	return 0o400
}

// Owner is who gets what is unpacked.
type Owner struct {
	UID, GID int
}

// Unpack reads a tar, packed by gzip or not, to its end and writes it below root, for owner if that is not nil; with no root it only
// checks. It returns how many entries the tar has, and bytes. It is refused if it is no tar, passes the limits (Exhausted), or holds a
// name or a hard link that leads out, or anything but files, directories and links (Invalid); what was unpacked before that stays. Root
// refuses every path that leads out of it, through links too, so a link to anywhere is no way out for what follows it.
func Unpack(r io.Reader, root *os.Root, most Limits, own *Owner) (files, size int64, err error) {
	raw := bufio.NewReaderSize(r, 64<<10)
	plain, err := opened(raw)
	if err != nil {
		return 0, 0, err
	}
	in := tar.NewReader(plain)
	for ; ; files++ {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			// What follows is no matter of the tar's, but who checks the digest has to see it. An archive may end in padding that is not
			// packed.
			_, _ = io.Copy(io.Discard, plain)
			_, err = io.Copy(io.Discard, raw)
			return files, size, err
		}
		if err != nil {
			return 0, 0, kept(err, "entry %d of the tar: %w", files+1, err)
		}
		if err := check(h); err != nil {
			return 0, 0, err
		}
		if size += h.Size; size > most.Bytes || files >= most.Entries {
			return 0, 0, errkind.Errorf(errkind.Exhausted,
				"unpacked it is more than %d bytes or %d files: leave out what is not needed, or mount it", most.Bytes, most.Entries)
		}
		if root == nil {
			continue
		}
		if err := place(in, h, root, own, most.least()); err != nil {
			return 0, 0, fmt.Errorf("unpacking %q: %w", h.Name, err)
		}
	}
}

// kept is an error of kind Invalid, unless what was read from has said another.
func kept(err error, format string, args ...any) error {
	k := errkind.Of(err)
	if k == errkind.Unknown {
		k = errkind.Invalid
	}
	return errkind.Errorf(k, format, args...)
}

// opened undoes the packing, if there is one.
func opened(b *bufio.Reader) (io.Reader, error) {
	magic, err := b.Peek(2)
	if err != nil {
		return nil, kept(err, "not a tar: %w", err)
	}
	if magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, kept(err, "not a tar.gz: %w", err)
	}
	return z, nil
}

// check refuses what has no business in a tree.
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

func place(in io.Reader, h *tar.Header, root *os.Root, own *Owner, least fs.FileMode) error {
	name := filepath.Clean(h.Name)
	if h.Typeflag == tar.TypeXGlobalHeader || name == "." {
		return nil
	}
	if err := parents(root, filepath.Dir(name), own); err != nil {
		return err
	}
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		mode := 0o700 | fs.FileMode(h.Mode).Perm() // the process that unpacks must get in
		if err = root.Mkdir(name, mode); errors.Is(err, fs.ErrExist) {
			err = nil
		} else if err == nil {
			err = root.Chmod(name, mode) // whatever the umask is
		}
	case tar.TypeSymlink:
		err = root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		err = root.Link(filepath.Clean(h.Linkname), name)
	default:
		err = file(in, root, name, fs.FileMode(h.Mode).Perm()|least, h.PAXRecords["GNU.sparse.major"] != "")
	}
	if err == nil && own != nil {
		err = root.Lchown(name, own.UID, own.GID)
	}
	if err == nil && h.Typeflag == tar.TypeReg {
		err = root.Chtimes(name, h.ModTime, h.ModTime)
	}
	return err
}

// parents makes the directories above an entry that the tar does not name.
func parents(root *os.Root, dir string, own *Owner) error {
	if dir == "." {
		return nil
	}
	if _, err := root.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := parents(root, filepath.Dir(dir), own); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if own != nil {
		return root.Lchown(dir, own.UID, own.GID)
	}
	return nil
}

func file(in io.Reader, root *os.Root, name string, mode fs.FileMode, sparse bool) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if sparse {
		err = copyHoles(f, in)
	} else {
		_, err = io.Copy(f, in)
	}
	return errors.Join(err, f.Chmod(mode), f.Close()) // whatever the umask is
}

// Restore unpacks into a directory that must not be there: it is there whole afterwards, or not at all.
func Restore(r io.Reader, into string, most Limits) (files, size int64, err error) {
	into = filepath.Clean(into) // a path may end in a slash
	if _, err = os.Lstat(into); err == nil {
		return 0, 0, errkind.Errorf(errkind.Exists, "%s is there already: name a directory that is not", into)
	}
	build, err := os.MkdirTemp(filepath.Dir(into), "."+filepath.Base(into)+".*")
	if err != nil {
		return 0, 0, err
	}
	root, err := os.OpenRoot(build)
	if err == nil {
		files, size, err = Unpack(r, root, most, nil)
		err = errors.Join(err, root.Close())
	}
	if err == nil {
		err = os.Rename(build, into)
	}
	if err != nil {
		return 0, 0, errors.Join(err, os.RemoveAll(build)) //sluice:trusted it was made here a moment ago, and nobody else has its name
	}
	return files, size, nil
}
