package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// Folders of the data directory that the daemon uses; the executor has its own.
const (
	JournalDir = "journal"
	TapeDir    = "tape"
	// ArchiveDir holds the archive of finished jobs.
	ArchiveDir = "archive"
)

const (
	formatName = "FORMAT"
	// earlierTemp is what an earlier build, when its first start is cut off, leaves instead of one of durable.Replace.
	earlierTemp = ".FORMAT.tmp"
	// format names what is in a data directory of this build. Any change of a fact raises the number, so that an older
	// build, which would drop what it does not know, refuses the directory untouched.
	format = "sluice data 11"
	// formatSeveral is the same of a daemon with several zones or nodes, whose facts a build that knows one of each would take for its own.
	formatSeveral = format + several
	several       = ", several zones or nodes"
	// formatNamed is that of an operator whose journal has a name, which is part of what it has in its cluster and its store: a build
	// that knows of none would find nothing there.
	formatNamed = format + withName
	withName    = ", named"
)

// readable are the earlier formats that this build still reads. The directory is renamed to format once all of it has been read and
// before anything is written; test/twin/testdata holds one of each, with subjobs that ran.
func readable() []string {
	return []string{"sluice data 1", "sluice data 2", "sluice data 3", "sluice data 4", "sluice data 4" + several, "sluice data 5",
		"sluice data 5" + several, "sluice data 6", "sluice data 6" + several, "sluice data 7", "sluice data 7" + several,
		"sluice data 7" + withName, "sluice data 8", "sluice data 8" + several, "sluice data 8" + withName,
		"sluice data 9", "sluice data 9" + several, "sluice data 9" + withName, "sluice data 10", "sluice data 10" + several,
		"sluice data 10" + withName}
}

// checkFormat reports whether dir is a data directory that this build reads (known), a new one (neither), or something that
// must not be touched (an error). It changes nothing.
func checkFormat(dir string) (known bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, formatName))
	switch {
	case err == nil:
		if got := strings.TrimSpace(string(data)); got != format && got != formatSeveral && got != formatNamed &&
			!slices.Contains(readable(), got) {
			return false, errkind.Errorf(errkind.Unsupported,
				"%s holds data of format %q, this build knows %q: use the build that wrote it, or another directory; nothing was changed",
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
		if !slices.Contains([]string{lockName, formatName + durable.Temporary, earlierTemp}, e.Name()) {
			return false, errkind.Errorf(errkind.Unsupported,
				"%s holds %q but no %s file, so it is not a data directory: name an empty or a new one; nothing was changed",
				dir, e.Name(), formatName)
		}
	}
	return false, nil
}

// writeFormat is durable before anything else is stored: a directory with data always says what it holds.
func writeFormat(dir, format string) error {
	if err := durable.Replace(filepath.Join(dir, formatName), []byte(format+"\n"), 0o644); err != nil {
		return fmt.Errorf("begin the data directory: %w", err)
	}
	return nil
}
