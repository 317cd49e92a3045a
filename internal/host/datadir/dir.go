// Package datadir manages the directory that holds all durable state of a daemon: its format, its lock, the names of the machine, its
// secrets.
package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// Dir is a data directory that this process has taken: no other has it until Close.
type Dir struct {
	path string
	lock *os.File
}

// Take makes sure that dir is a data directory of this build and takes it for this process.
func Take(dir string) (*Dir, error) {
	if dir == "" {
		return nil, errkind.Errorf(errkind.Invalid, "no data directory was named")
	}
	if _, err := checkFormat(dir); err != nil { // before the lock: unknown data is not even locked
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	known, err := checkFormat(dir) // again: another process may have created it meanwhile
	if err == nil && !known {
		err = writeFormat(dir, format)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Dir{dir, lock}, nil
}

// Raise marks a directory of an earlier format as one of this build. From then on an older build refuses it, whether or not anything new
// is written. many: there are several zones or nodes; named: the journal has a name; fresh: it was empty.
func (d *Dir) Raise(many, named, fresh bool, log *slog.Logger) error {
	data, err := os.ReadFile(filepath.Join(d.path, formatName))
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	was, is := strings.TrimSpace(string(data)), format
	if many {
		is = formatSeveral
	} else if named {
		is = formatNamed
	}
	if was == is {
		return nil
	}
	if !fresh {
		log.Info("the data directory is of another version and is taken over; that version will refuse it from now on", "was", was, "is",
			is)
	}
	return writeFormat(d.path, is)
}

// KeepNames makes the names of the machine durable before the first fact is stored under the last one; none: nothing is kept. A crash
// before leaves the old names, one after it the new: under either all that is stored can be read.
func (d *Dir) KeepNames(names []job.NodeID, log *slog.Logger) error {
	if len(names) == 0 {
		return nil
	}
	kept, err := readNames(d.path)
	if err != nil || slices.Equal(kept, names) {
		return err
	}
	var text strings.Builder
	for _, name := range names {
		text.WriteString(string(name) + "\n")
	}
	if err := durable.Replace(filepath.Join(d.path, namesName), []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("keep the machine's name: %w", err)
	}
	if n := len(names); n > 1 {
		log.Info("the machine has another name from now on, with all that the data directory has of it", "was", names[n-2], "is",
			names[n-1])
	}
	return nil
}

// Close releases the directory.
func (d *Dir) Close() error { return d.lock.Close() } // the kernel releases the lock
