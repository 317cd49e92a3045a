//go:build kubernetes

package operator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
)

// nameFile has the name of a journal. It lies among the journal's own files, which take no notice of it: whoever loses or restores those loses or restores it too.
const nameFile = "NAME"

// nameOfJournal is what the journal in a directory is called, which is part of the names of Pods and of what they leave in the store: its numbers begin at 1, as those of any
// other do. One that is not there yet gets a name, which keep writes before anything else does; one from before journals had names has none. Errors: Corrupt.
func nameOfJournal(dir string) (name string, keep func() error, err error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("look at the journal: %w", err)
	}
	path := filepath.Join(dir, nameFile)
	if !slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), nameFile) }) {
		name = strings.ToLower(rand.Text()[:cluster.LongestJournal])
		return name, func() error { return writeName(path, name) }, nil
	}
	text, err := os.ReadFile(path)
	if name = strings.TrimSpace(string(text)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	} else if err == nil && (name == "" || len(name) > cluster.LongestJournal || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "") {
		err = errkind.Errorf(errkind.Corrupt, "%s holds %q, which is no name of a journal: restore it from a copy; labels %s of its Pods have it too", path, name, cluster.LabelJournal)
	}
	return name, func() error { return nil }, err
}

// writeName is durable before the journal has a file: one with files and without a name is from before there were names.
func writeName(path, name string) error {
	dir := filepath.Dir(path)
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return err
	}
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(path+".tmp", path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
