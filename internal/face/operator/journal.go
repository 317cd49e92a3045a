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
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// nameFile is a Journal as JSON. It lies in the journal's directory, so that it is lost or restored together with the journal.
const nameFile = "NAME"

// Journal is a journal's name and secret.
type Journal struct {
	// Name is part of Pods' and stored objects' names, since every journal's tokens begin at 1. Empty: from before journals had names.
	Name string
	// Key is the secret that seals this operator's Pods, and Made when it was made: older Pods are trusted without a seal.
	Key  []byte
	Made time.Time
	// fresh: the journal has no file yet.
	fresh bool
}

// keySize of a key, in bytes.
const keySize = 32

// nameOfJournal reads the name and key of the journal in a directory, or makes what is missing: a name for a journal that does not exist
// yet, and a key for one without. keep writes what is new; for a new journal it must be called before that has a file. A malformed file is
// an error of kind Corrupt.
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
	default: // from before journals had names
		err = nil
	}
	if err != nil || there && (strings.Trim(j.Name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || len(j.Name) > cluster.LongestJournal ||
		len(j.Key) != 0 && len(j.Key) != keySize) {
		return j, nil, errkind.Errorf(errkind.Corrupt, "%s does not hold the name and the key of a journal, by which its Pods are "+
			"known: restore it from a copy. Nothing was changed", path)
	}
	if len(j.Key) != 0 {
		return j, func() error { return nil }, nil
	}
	j.Key, j.Made = make([]byte, keySize), time.Now().UTC().Truncate(time.Second)
	_, _ = rand.Read(j.Key) // never fails
	return j, func() error { return writeName(path, j) }, nil
}

// writeName makes the file durable before the journal has one of its own, since a journal without a name counts as one from before names.
// A temporary file that a crash leaves begins with nameFile too, so that it is not taken for the journal's.
func writeName(path string, j Journal) error {
	text, err := json.Marshal(j)
	if err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
		return err
	}
	return durable.Replace(path, append(text, '\n'), 0o600)
}
