// Package filestest is what tests of the kinds that lie in a file system do to one behind its back.
package filestest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

// Place is a store in a new directory, which open opens.
func Place(t testing.TB, open func(dir string, before ...files.Before) (*files.Dir, error)) *storetest.Place {
	dir := t.TempDir()
	var mu sync.Mutex
	var fault error
	before := func(step, path string) error {
		mu.Lock()
		defer mu.Unlock()
		if step == "touch" || step == "touched" || step == "open" {
			return nil
		}
		return fault
	}
	object := func(d store.Digest) string { return filepath.Join(dir, "objects", string(d[:2]), string(d)) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	flip := func(path string) {
		t.Helper()
		check(os.Chmod(path, 0o600))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		check(err)
		info, err := f.Stat()
		check(err)
		b := make([]byte, 1)
		_, err = f.ReadAt(b, info.Size()/2)
		check(err)
		b[0] ^= 1
		_, err = f.WriteAt(b, info.Size()/2)
		check(errors.Join(err, f.Close()))
	}
	return &storetest.Place{
		Open: func() (store.Store, error) { return open(dir, before) },
		Age: func(d store.Digest, by time.Duration) {
			t.Helper()
			at := time.Now().Add(-by)
			if err := os.Chtimes(object(d), at, at); !errors.Is(err, fs.ErrNotExist) {
				check(err)
			}
		},
		Damage: func(d store.Digest) { flip(object(d)) },
		Tear: func(d store.Digest) {
			t.Helper()
			list, err := filepath.Glob(filepath.Join(dir, "incoming", string(d)+".*"))
			check(err)
			if len(list) != 1 {
				t.Fatalf("a broken upload has left %v", list)
			}
			flip(list[0])
		},
		Sent: func() int64 { return growth(dir) },
		Part: 1 << 20,
		Fail: func(f storetest.Fault) {
			mu.Lock()
			defer mu.Unlock()
			fault = map[storetest.Fault]error{storetest.Full: unix.ENOSPC, storetest.Forbidden: unix.EACCES,
				storetest.Unreachable: unix.ESTALE}[f]
		},
		Spec: dir,
	}
}

// growth is what all contents below a store take: nothing is ever written twice there.
func growth(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(path, ".json") {
			if info, gone := e.Info(); gone == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
