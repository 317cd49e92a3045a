//go:build kubernetes

package operator

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
)

// nameFile is a Journal as JSON. It lies among the journal's own files, which take no notice of it: whoever loses or restores those loses or restores it too.
const nameFile = "NAME"

// Journal is how a journal is called, and what only its operator knows.
type Journal struct {
	// Name is part of the names of Pods and of what they leave in the store: a journal's numbers begin at 1, as those of any other do. Empty: it is from before journals had names.
	Name string
	// Key is a secret by which an operator knows its own Pods, Made when it was made: what was there before is known by less.
	Key  []byte
	Made time.Time
	// fresh: nothing was ever written to it.
	fresh bool
}

// keySize of a journal's key, in bytes.
const keySize = 32

// nameOfJournal reads what the journal in a directory is called. keep writes what is new, before the journal has a file: a name for one that is not there yet, and a key for one
// that had none. Errors: Corrupt.
func nameOfJournal(dir string) (j Journal, keep func() error, err error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return j, nil, fmt.Errorf("look at the journal: %w", err)
	}
	path := filepath.Join(dir, nameFile)
	j.fresh = !slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), nameFile) })
	text, err := os.ReadFile(path)
	there := err == nil && !j.fresh
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return j, nil, fmt.Errorf("look at the journal: %w", err)
	case there:
		err = json.Unmarshal(text, &j)
	case j.fresh:
		j.Name, err = strings.ToLower(rand.Text()[:cluster.LongestJournal]), nil
	default: // from before there were names
		err = nil
	}
	if err != nil || there && (strings.Trim(j.Name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || len(j.Name) > cluster.LongestJournal || len(j.Key) != 0 && len(j.Key) != keySize) {
		return j, nil, errkind.Errorf(errkind.Corrupt, "%s does not hold the name and the key of a journal, by which its Pods are known: restore it from a copy. Nothing was changed", path)
	}
	if len(j.Key) != 0 {
		return j, func() error { return nil }, nil
	}
	j.Key, j.Made = make([]byte, keySize), time.Now().UTC().Truncate(time.Second)
	_, _ = rand.Read(j.Key) // it never fails
	return j, func() error { return writeName(path, j) }, nil
}

// writeName is durable before the journal has a file: one with files and without a name is from before there were names. What hangs on the name an older version does not know.
// What a crash leaves of it begins with the file's own name too, so that it does not count as the journal's.
func writeName(path string, j Journal) error {
	dir := filepath.Dir(path)
	text, err := json.Marshal(j)
	if err = errors.Join(err, os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
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
