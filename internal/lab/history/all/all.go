// Package all is the table of logs that a history can be made of: it finds out what each file is, and reads several of one cluster
// together. Only the command line and tests import it.
package all

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/slurm"
	"sluice.dev/sluice/internal/lab/history/traces"
	"sluice.dev/sluice/internal/lab/trace"
)

// Formats lists every format.
func Formats() []history.Format {
	return append([]history.Format{slurm.Format()}, traces.Formats()...)
}

// Detect finds the format of a file by what is in it. The error for one that is none lists the formats.
func Detect(path string) (history.Format, error) {
	file, err := open(path)
	if err != nil {
		return history.Format{}, err
	}
	defer file.Close()
	const most = 64 << 10
	var head []byte
	lines := trace.NewLines(file)
	for len(head) < most {
		line, err := lines.Next()
		if err != nil { // whoever reads the file says what is wrong with it
			break
		}
		head = append(append(head, line...), '\n')
	}
	var known strings.Builder
	for _, f := range Formats() {
		if f.Is(head, path) {
			return f, nil
		}
		fmt.Fprintf(&known, "\n  %s: %s", f.Name, f.Doc)
	}
	return history.Format{}, errkind.Errorf(errkind.Invalid, "%s: this is no log that is known; want one of%s", path, known.String())
}

// Read makes one history of the files of a cluster. Errors are those of Book.Close and of files that can't be read or are not known, all of
// them.
func Read(o history.Options, paths ...string) (*history.History, error) {
	b := history.NewBook(o)
	var bad []error
	for _, path := range paths {
		if err := into(b, path); err != nil {
			bad = append(bad, err)
		}
	}
	if len(bad) > 0 {
		return nil, &errkind.Error{Kind: errkind.Of(bad[0]), Err: errors.Join(bad...)}
	}
	return b.Close()
}

func into(b *history.Book, path string) error {
	f, err := Detect(path)
	if err != nil {
		return err
	}
	file, err := open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return f.Read(b, file, path)
}

func open(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		kind := errkind.Unavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = errkind.NotFound
		}
		return nil, &errkind.Error{Kind: kind, Err: fmt.Errorf("read a cluster's log: %w", err)}
	}
	return file, nil
}
