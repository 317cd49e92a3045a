// Package all is the table of logs that a history can be made of: it finds out what each file is, and reads several of one cluster
// together. Only the command line and tests import it.
package all

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
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

// most of a file's text, in bytes, is looked at to find out what it is.
const most = 64 << 10

// detect finds the format of a file by its first bytes, which may be compressed. The error for one that is none lists the formats.
func detect(first []byte, path string) (history.Format, error) {
	var head []byte
	lines := trace.NewLines(bytes.NewReader(first))
	for len(head) < most {
		line, err := lines.Next()
		if err != nil { // it is cut here, or whoever reads the file says what is wrong with it
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
	first := map[string]string{} // files by format, the first of each
	for _, path := range paths {
		name, err := into(b, path)
		if err != nil {
			bad = append(bad, err)
		} else if first[name] == "" {
			first[name] = path
		}
	}
	if len(first) > 1 {
		var each []string
		for _, name := range slices.Sorted(maps.Keys(first)) {
			each = append(each, first[name]+" ("+name+")")
		}
		bad = append(bad, errkind.Errorf(errkind.Invalid, "%s are of several clusters: give the files of one", strings.Join(each, " and ")))
	}
	if len(bad) > 0 {
		return nil, &errkind.Error{Kind: errkind.Of(bad[0]), Err: errors.Join(bad...)}
	}
	return b.Close()
}

// into reads a file, which may be a pipe, and returns the name of its format.
func into(b *history.Book, path string) (string, error) {
	file, err := open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, most)
	first, err := r.Peek(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", errkind.Errorf(errkind.Unavailable, "read a cluster's log: %w", err)
	}
	f, err := detect(first, path)
	if err != nil {
		return "", err
	}
	return f.Name, f.Read(b, r, path)
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
