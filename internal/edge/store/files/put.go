package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/store"
)

// Put implements store.Store.
func (d *Dir) Put(ctx context.Context, want store.Digest, src store.Source) (o store.Object, err error) {
	if want != "" {
		if err = d.Renew(ctx, want); err == nil {
			return d.Stat(ctx, want)
		}
		if !missing(err) {
			return o, err
		}
	}
	if err = d.look(); err != nil { // a file system that is gone leaves a folder that can be written to
		return o, err
	}
	var got store.Digest
	err = d.dir.retry("put an object", func() error {
		got, err = d.put(ctx, want, src)
		return err
	})
	if err != nil {
		return o, err
	}
	return d.Stat(ctx, got)
}

// put uploads. An upload that resumed a broken one, and has another digest then, is done once more from its beginning: the earlier bytes
// may have been torn.
func (d *Dir) put(ctx context.Context, want store.Digest, src store.Source) (store.Digest, error) {
	f, err := d.begin(want)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	at, err := d.resume(ctx, f, h, src.Size())
	if err == nil {
		err = d.write(ctx, f, h, src, at)
	}
	got := store.DigestOf(h)
	if err == nil && want != "" && got != want && at > 0 {
		h.Reset()
		if err = f.Truncate(0); err == nil {
			err = d.write(ctx, f, h, src, 0)
		}
		got = store.DigestOf(h)
	}
	switch {
	case err != nil:
		// nobody can go on with it, or it would be what keeps the disk full
		if want == "" || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			_ = os.Remove(f.Name())
		}
		return "", err
	case want != "" && got != want:
		return "", errors.Join(store.Mismatch(want, got), os.Remove(f.Name()))
	}
	return got, d.finish(f, got)
}

// begin opens the file of an upload, locked: that of an earlier one under the same digest, or a new one where that is being written or
// nobody can know the digest.
func (d *Dir) begin(want store.Digest) (*os.File, error) {
	if want != "" {
		path := d.dir.in(incoming, string(want)+"."+d.o.Writer)
		if err := d.dir.before("create", path); err != nil {
			return nil, err
		}
		f, err := d.dir.create(path)
		if errors.Is(err, fs.ErrExist) {
			f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		}
		if err != nil {
			return nil, err
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && named(f, path) {
			return f, nil
		}
		_ = f.Close()
	}
	path := d.dir.in(incoming, "new."+rand.Text())
	if err := d.dir.before("create", path); err != nil {
		return nil, err
	}
	f, err := d.dir.create(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil && !errors.Is(err, unix.ENOLCK) &&
		!errors.Is(err, unix.EOPNOTSUPP) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// named says whether a file still has its name: another upload may have finished, or a sweep removed it, between opening and locking.
func named(f *os.File, path string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(own, there)
}

// resume reads the bytes of an earlier upload into the hash and returns where to continue.
func (d *Dir) resume(ctx context.Context, f *os.File, h hash.Hash, size int64) (int64, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	if info.Size() > size {
		return 0, f.Truncate(0)
	}
	return info.Size(), store.Copy(ctx, h, f, 0, info.Size())
}

// write writes the rest of the source behind what is there.
func (d *Dir) write(ctx context.Context, f *os.File, h hash.Hash, src store.Source, from int64) error {
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	return store.Copy(ctx, &both{d: d, f: f, h: h}, src, from, src.Size())
}

// both writes to the file and to the hash.
type both struct {
	d *Dir
	f *os.File
	h hash.Hash
}

func (b *both) Write(p []byte) (int, error) {
	if err := b.d.dir.before("write", b.f.Name()); err != nil {
		return 0, err
	}
	b.h.Write(p)
	return b.f.Write(p)
}

// finish makes an upload an object: its bytes are on the disk before it has the name, and it has the name before the caller returns.
func (d *Dir) finish(f *os.File, g store.Digest) error {
	err := errors.Join(unix.Fchmod(int(f.Fd()), 0o400), unix.Utimes(f.Name(), nil))
	if err == nil {
		err = d.dir.sync(f)
	}
	if err != nil {
		return err
	}
	err = d.dir.rename(f.Name(), d.object(g))
	if errors.Is(err, fs.ErrNotExist) { // a sweep took it, or another machine of the same name has finished it
		if _, there := os.Lstat(d.object(g)); there == nil {
			return d.dir.syncNames(d.dir.in(objects, string(g[:2])))
		}
	}
	return err
}
