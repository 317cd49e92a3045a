package local

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
)

// TestConformance runs the suite on real files. Package memory runs it on a disk whose power can be cut.
func TestConformance(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journaltest.Store { return newPlace(t) })
}

// place is a real directory whose disk can be full.
type place struct {
	t    testing.TB
	dir  string
	room *atomic.Int64
}

func newPlace(t testing.TB) place {
	p := place{t, filepath.Join(t.TempDir(), "journal"), new(atomic.Int64)}
	p.SetRoom(-1)
	return p
}

func (p place) Open(notice func(string)) (journal.Journal, error) {
	return OpenOn(limited{disk.OS(p.dir), p.room}, Options{SegmentBytes: 400, Notice: notice})
}

func (p place) SetRoom(n int64) { p.room.Store(n) }

func (p place) Files() []string {
	names, err := disk.OS(p.dir).List()
	if err != nil {
		p.t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == disk.LockName })
}

func (p place) Get(name string) []byte {
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

func (p place) Rot(name string, content []byte) {
	path := filepath.Join(p.dir, name)
	err := os.Remove(path)
	if content != nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p place) Copy() journaltest.Store {
	c := newPlace(p.t)
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	for _, name := range p.Files() {
		if err := os.WriteFile(filepath.Join(c.dir, name), p.Get(name), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	return c
}

// limited is a file system on which files may grow by room more bytes; negative is no limit.
type limited struct {
	disk.FS
	room *atomic.Int64
}

func (l limited) Open(name string) (disk.File, error)   { return l.wrap(l.FS.Open(name)) }
func (l limited) Create(name string) (disk.File, error) { return l.wrap(l.FS.Create(name)) }

func (l limited) wrap(f disk.File, err error) (disk.File, error) {
	if err != nil {
		return nil, err
	}
	return limitedFile{f, l.room}, nil
}

type limitedFile struct {
	disk.File
	room *atomic.Int64
}

func (f limitedFile) WriteAt(b []byte, off int64) (int, error) {
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	grow, room := off+int64(len(b))-size, f.room.Load()
	if room < 0 || grow <= 0 {
		return f.File.WriteAt(b, off)
	}
	if grow <= room {
		f.room.Add(-grow)
		return f.File.WriteAt(b, off)
	}
	f.room.Store(0)
	n, err := f.File.WriteAt(b[:max(0, int64(len(b))-(grow-room))], off)
	if err == nil {
		err = &os.PathError{Op: "write", Path: "limited", Err: unix.ENOSPC}
	}
	return n, err
}

func diskOf(p place) disk.FS { return disk.OS(p.dir) }
