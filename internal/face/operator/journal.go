//go:build kubernetes

package operator

import (
	"crypto/rand"
	"encoding/hex"
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

// nameFile has the name of a journal and its key, each in a line. It lies among the journal's own files, which take no notice of it: whoever loses or restores those loses or
// restores it too.
const nameFile = "NAME"

// Journal is how a journal is called, which is part of the names of Pods and of what they leave in the store: its numbers begin at 1, as those of any other do; and a secret by
// which an operator knows its own Pods. One from before journals had them has neither.
type Journal struct {
	Name string
	Key  []byte
}

// keySize of a journal's key, in bytes.
const keySize = 32

// nameOfJournal reads what the journal in a directory is called. One that is not there yet gets a name, which keep writes before anything else does. Errors: Corrupt.
func nameOfJournal(dir string) (j Journal, keep func() error, err error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return j, nil, fmt.Errorf("look at the journal: %w", err)
	}
	path := filepath.Join(dir, nameFile)
	if !slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), nameFile) }) {
		j = Journal{strings.ToLower(rand.Text()[:cluster.LongestJournal]), make([]byte, keySize)}
		_, _ = rand.Read(j.Key) // it never fails
		return j, func() error { return writeName(path, j) }, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, func() error { return nil }, nil
	}
	if err != nil {
		return j, nil, fmt.Errorf("look at the journal: %w", err)
	}
	lines := strings.Fields(string(text))
	if len(lines) > 0 {
		j.Name = lines[0]
	}
	if len(lines) > 1 {
		j.Key, err = hex.DecodeString(lines[1])
	}
	if err != nil || len(j.Key) != keySize || len(j.Name) != cluster.LongestJournal || strings.Trim(j.Name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return j, nil, errkind.Errorf(errkind.Corrupt, "%s does not hold the name and the key of a journal: restore it from a copy; the name is label %s of its Pods", path, cluster.LabelJournal)
	}
	return j, func() error { return nil }, nil
}

// writeName is durable before the journal has a file: one with files and without a name is from before there were names.
func writeName(path string, j Journal) error {
	dir := filepath.Dir(path)
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(j.Name + "\n" + hex.EncodeToString(j.Key) + "\n")
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
