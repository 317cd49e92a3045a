package path_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
	"sluice.dev/sluice/internal/edge/store/files/filestest"
	"sluice.dev/sluice/internal/edge/store/path"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Child(func(dir string) (store.Store, error) { return path.Open(dir) })
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	storetest.Run(t, place)
}

func place(t testing.TB) *storetest.Place {
	return filestest.Place(t, func(dir string, before ...files.Before) (*files.Dir, error) {
		if _, err := path.Init(dir); err != nil {
			return nil, err
		}
		return path.Open(dir, before...)
	})
}

// TestWhatIsNotMountedIsNoStore: a folder where a file system belongs that is not there can be written to, and what is written there is
// lost.
func TestWhatIsNotMountedIsNoStore(t *testing.T) {
	dir := t.TempDir()
	if _, err := path.Open(dir); errkind.Of(err) != errkind.NotFound {
		t.Fatalf("opening an empty folder: %v", err)
	}
	s, err := path.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	away := dir + ".away" // it goes while it is in use
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	data := bytes.NewReader([]byte("data"))
	g, err := store.Sum(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"put":  second(s.Put(t.Context(), "", data)),
		"name": s.SetName(t.Context(), "a", store.Refs{"a": g}),
		"stat": second(s.Stat(t.Context(), g)),
		"list": s.List(t.Context(), func(store.Object) error { return nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), "mount what belongs there") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("it wrote %v there, %v", list, err)
	}
	if _, err := path.Init(filepath.Dir(dir)); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a folder with something else in it becomes a store: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestAStaleHandleIsOpenedAnew: the server has forgotten what a name stood for a moment ago; looking once more finds it.
func TestAStaleHandleIsOpenedAnew(t *testing.T) {
	dir := t.TempDir()
	if _, err := path.Init(dir); err != nil {
		t.Fatal(err)
	}
	stale := map[string]int{"create": 0, "touch": 0, "open": 0, "unname": 0}
	s, err := path.Open(dir, func(step, _ string) error {
		if _, here := stale[step]; !here {
			return nil
		}
		if stale[step]++; stale[step] <= 2 {
			return &os.PathError{Op: step, Path: "x", Err: unix.ESTALE}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("data")
	o, err := s.Put(t.Context(), "", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Name(t.Context(), s, "a/b", store.Refs{"a": o.Digest}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), o.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), s.Unname(t.Context(), "a/b")); err != nil {
		t.Fatal(err)
	}
	for step, n := range stale {
		if n < 3 {
			t.Errorf("%s was never stale: %v", step, stale)
		}
	}
}

// TestTwoMachinesUploadBesideEachOther: each writes to a file of its own, since neither may see the other's lock.
func TestTwoMachinesUploadBesideEachOther(t *testing.T) {
	dir := t.TempDir()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	g, err := store.Sum(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	other, err := files.Open(files.Options{Kind: path.Name, Dir: dir, Make: true, Writer: "other"})
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	s, err := path.Open(dir, func(step, at string) error {
		if step == "write" && !inside && strings.Contains(at, path.Machine()) {
			inside = true
			_, err := other.Put(t.Context(), g, bytes.NewReader(data)) // the other one is done meanwhile
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), g, bytes.NewReader(data)); err != nil || !inside {
		t.Fatal(err, inside)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "incoming")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func BenchmarkStore(b *testing.B) { storetest.Bench(b, place) }
