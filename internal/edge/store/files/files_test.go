package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
)

// TestADeathBetweenAnyTwoSteps: whatever step a put, a name or a removal dies before, what there is then is whole, and doing it again
// ends well.
func TestADeathBetweenAnyTwoSteps(t *testing.T) {
	death := errors.New("dead")
	data := bytes.Repeat([]byte("x"), 3<<20)
	for step := 1; ; step++ {
		dir := filepath.Join(t.TempDir(), "store")
		left := step
		open := func(mortal bool) *files.Dir {
			s, err := files.Open(files.Options{Kind: "local", Dir: dir, Make: true, Writer: "w", Before: func(string, string) error {
				if left--; mortal && left == 0 {
					return death
				}
				return nil
			}})
			if err != nil && !errors.Is(err, death) {
				t.Fatal(err)
			}
			return s
		}
		all := func(s *files.Dir) (err error) {
			if s == nil {
				return death
			}
			o, err := s.Put(t.Context(), "", bytes.NewReader(data))
			if err == nil {
				err = store.Name(t.Context(), s, "a/b", store.Refs{"x": o.Digest})
			}
			if err == nil {
				err = s.Unname(t.Context(), "a/b")
			}
			now, failed := s.Now(t.Context())
			if err = errors.Join(err, failed); err == nil {
				_, err = s.Remove(t.Context(), o.Digest, now.Add(1e9))
			}
			return err
		}
		err := all(open(true))
		if err == nil {
			if step < 12 {
				t.Errorf("there are only %d steps", step)
			}
			return
		}
		if !errors.Is(err, death) {
			t.Fatalf("step %d: %v", step, err)
		}
		s := open(false)
		if err := s.List(t.Context(), func(o store.Object) error {
			if o.Size != int64(len(data)) {
				return fmt.Errorf("an object of %d bytes", o.Size)
			}
			return nil
		}); err != nil {
			t.Fatalf("after a death before step %d: %v", step, err)
		}
		if err := all(s); err != nil {
			t.Fatalf("once more after a death before step %d: %v", step, err)
		}
	}
}

// TestWhoeverDiedRemovingTookNothing: an object that was renewed, and whose remover died before it saw that, is back after a sweep.
func TestWhoeverDiedRemovingTookNothing(t *testing.T) {
	death := errors.New("dead")
	dir := t.TempDir()
	var renew func()
	open := func(before files.Before) *files.Dir {
		s, err := files.Open(files.Options{Kind: "local", Dir: dir, Make: true, Writer: "w", Before: before})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain := open(nil)
	o, err := plain.Put(t.Context(), "", bytes.NewReader([]byte("data")))
	if err != nil {
		t.Fatal(err)
	}
	now, err := plain.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := open(func(step, _ string) error {
		switch step {
		case "remove":
			renew()
		case "removing":
			return death
		}
		return nil
	})
	renew = func() {
		if err := plain.Renew(t.Context(), o.Digest); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Remove(t.Context(), o.Digest, now.Add(1e9)); !errors.Is(err, death) {
		t.Fatal(err)
	}
	if _, err := plain.Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if n := 0; plain.List(t.Context(), func(store.Object) error { n++; return nil }) != nil || n != 1 {
		t.Errorf("%d objects are left, want 1", n)
	}
}

// TestATouchThatComesLateIsNone: the kernel finds what a name stands for, and then touches it; who removes it in between does not see
// that, so who renews must.
func TestATouchThatComesLateIsNone(t *testing.T) {
	dir := t.TempDir()
	plain, err := files.Open(files.Options{Kind: "local", Dir: dir, Make: true, Writer: "w"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := plain.Put(t.Context(), "", bytes.NewReader([]byte("data")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := files.Open(files.Options{Kind: "local", Dir: dir, Writer: "w", Before: func(step, _ string) error {
		if step != "touched" {
			return nil
		}
		removed, failed := plain.Remove(t.Context(), o.Digest, o.Changed.Add(time.Hour)) // as one that looked before
		if !removed || failed != nil {
			t.Errorf("%v, %v", removed, failed)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err = s.Renew(t.Context(), o.Digest); errkind.Of(err) != errkind.NotFound {
		t.Errorf("what is gone is renewed: %v", err)
	}
}

func TestForeignDirectoriesStayAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letters"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := files.Open(files.Options{Kind: "local", Dir: dir, Make: true})
	if errkind.Of(err) != errkind.Invalid {
		t.Errorf("somebody's directory: %v", err)
	}
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, "STORE"), []byte("sluice store 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = files.Open(files.Options{Kind: "local", Dir: newer, Make: true}); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("a newer store: %v", err)
	}
	if _, err = files.Open(files.Options{Kind: "local", Dir: "here", Make: true}); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a relative path: %v", err)
	}
}

// TestAnObjectIsSyncedBeforeItHasItsName: a power cut leaves no name of bytes that are not there. The name is synced after it, before
// anybody is told.
func TestAnObjectIsSyncedBeforeItHasItsName(t *testing.T) {
	var steps []string
	s, err := files.Open(files.Options{Kind: "local", Dir: t.TempDir(), Make: true, Writer: "w", Before: func(step, path string) error {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			step += " folder"
		}
		steps = append(steps, step)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	steps = nil
	if _, err := s.Put(t.Context(), "", bytes.NewReader([]byte("data"))); err != nil {
		t.Fatal(err)
	}
	wrote, renamed := slices.Index(steps, "write"), slices.Index(steps, "rename")
	if wrote < 0 || renamed < wrote || !slices.Contains(steps[wrote:renamed], "sync") || !slices.Contains(steps[renamed:], "sync folder") {
		t.Errorf("it was put by the steps %q", steps)
	}
}
