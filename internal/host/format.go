package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

const (
	formatName = "FORMAT"
	formatTemp = ".FORMAT.tmp"
	// format names what is in a data directory of this build. Any change of a fact raises the number, so that an older
	// build, which would drop what it does not know, refuses the directory untouched.
	format = "sluice data 9"
	// formatSeveral is the same of a daemon with several zones or nodes, whose facts a build that knows one of each would take for its own.
	formatSeveral = format + several
	several       = ", several zones or nodes"
	// formatNamed is that of an operator whose journal has a name, which is part of what it has in its cluster and its store: a build that knows of none would find nothing there.
	formatNamed = format + withName
	withName    = ", named"
)

// readable are the formats before that this build still reads. The directory is renamed to format once all of it has been read and
// before anything is written; test/twin/testdata holds one of each, with subjobs that ran.
func readable() []string {
	return []string{"sluice data 1", "sluice data 2", "sluice data 3", "sluice data 4", "sluice data 4" + several, "sluice data 5",
		"sluice data 5" + several, "sluice data 6", "sluice data 6" + several, "sluice data 7", "sluice data 7" + several,
		"sluice data 7" + withName, "sluice data 8", "sluice data 8" + several, "sluice data 8" + withName}
}

// checkFormat says whether dir is a data directory that this build reads (known), a new one (neither), or something that
// must not be touched (an error). It changes nothing.
func checkFormat(dir string) (known bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, formatName))
	switch {
	case err == nil:
		if got := strings.TrimSpace(string(data)); got != format && got != formatSeveral && got != formatNamed && !slices.Contains(readable(), got) {
			return false, errkind.Errorf(errkind.Unsupported, "%s holds data of format %q, this build knows %q: use the build that wrote it, or another directory; nothing was changed",
				dir, got, format)
		}
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("look at the data directory: %w", err)
	}
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the data directory: %w", err)
	}
	for _, e := range list {
		if e.Name() != lockName && e.Name() != formatTemp {
			return false, errkind.Errorf(errkind.Unsupported, "%s holds %q but no %s file, so it is not a data directory: name an empty or a new one; nothing was changed",
				dir, e.Name(), formatName)
		}
	}
	return false, nil
}

// prepareDir makes sure that dir is a data directory of this build and takes it for this process.
func prepareDir(dir string) (*os.File, error) {
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
	known, err := checkFormat(dir) // again: somebody may have begun it meanwhile
	if err == nil && !known {
		err = writeFormat(dir, format)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// raiseFormat marks a directory of a format before as one of this build. From here on an older build refuses it, whether
// or not anything new is written.
func (h *Host) raiseFormat() error {
	data, err := os.ReadFile(filepath.Join(h.opts.DataDir, formatName))
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	was, is := strings.TrimSpace(string(data)), format
	if len(h.actors.Zones) > 1 || len(h.actors.Nodes) > 1 {
		is = formatSeveral
	} else if h.opts.Named {
		is = formatNamed
	}
	if was == is {
		return nil
	}
	if !h.fresh {
		h.log.Info("the data directory is of another version and is taken over; that version will refuse it from now on", "was", was, "is", is)
	}
	return writeFormat(h.opts.DataDir, is)
}

// writeFormat is durable before anything else is stored: a directory with data always says what it holds.
func writeFormat(dir, format string) error {
	if err := replaceFile(dir, formatName, formatTemp, format+"\n"); err != nil {
		return fmt.Errorf("begin the data directory: %w", err)
	}
	return nil
}

// replaceFile writes a small file of the data directory whole and durably: after a crash it is the old one or the new one.
func replaceFile(dir, name, temp, text string) error {
	temp = filepath.Join(dir, temp)
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
