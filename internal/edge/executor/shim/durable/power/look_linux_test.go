package power

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestALookTearsNothing: files that come whole and go are there whole or not there, and one that is moved is there, whenever it is looked.
// A recording that has half of what is whole would blame a power cut for it.
func TestALookTearsNothing(t *testing.T) {
	t.Parallel()
	root, stop, done := t.TempDir(), make(chan struct{}), make(chan error, 1)
	for _, dir := range []string{"a", "b", "turns"} {
		must(os.Mkdir(filepath.Join(root, dir), 0o700))
	}
	at := func(dir, name string) string { return filepath.Join(root, dir, name) }
	must(os.WriteFile(at("a", "moved"), []byte("whole"), 0o600))
	must(os.WriteFile(at("turns", "0"), []byte("whole"), 0o600))
	go func() {
		var err error
		for i, from, to := 0, "a", "b"; err == nil; i, from, to = i+1, to, from {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			// A name for each turn: no two moments are alike.
			if err = os.Rename(at("turns", strconv.Itoa(i)), at("turns", strconv.Itoa(i+1))); err == nil {
				err = os.WriteFile(at(to, ".new"), []byte("whole"), 0o600)
			}
			if err == nil {
				err = os.Rename(at(to, ".new"), at(to, "result.json"))
			}
			if err == nil {
				err = os.Rename(at(from, "moved"), at(to, "moved"))
			}
			if err == nil { // a folder that comes and goes
				err = errors.Join(os.Mkdir(at(from, "d"), 0o700), os.Remove(at(from, "d")))
			}
			if err == nil {
				err = os.Remove(at(to, "result.json"))
			}
		}
		done <- err
	}()
	for range 2000 {
		n, moved := look(root), 0
		for _, dir := range n.Entries {
			for name, f := range dir.Entries {
				if name != ".new" && !f.Dir && string(f.Content) != "whole" {
					t.Errorf("%s has %q", name, f.Content)
				}
				if name == "moved" {
					moved++
				}
			}
		}
		if moved != 1 {
			t.Errorf("what is moved is in %d places", moved)
		}
		if t.Failed() {
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
