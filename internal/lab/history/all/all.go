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
	"sluice.dev/sluice/internal/lab/history/prometheus"
	"sluice.dev/sluice/internal/lab/history/record"
	"sluice.dev/sluice/internal/lab/history/slurm"
	"sluice.dev/sluice/internal/lab/history/traces"
	"sluice.dev/sluice/internal/lab/history/utilization"
	"sluice.dev/sluice/internal/lab/trace"
)

// Formats lists every format.
func Formats() []history.Format {
	return slices.Concat([]history.Format{slurm.Format(), prometheus.Format(), record.Format()}, utilization.Formats(), traces.Formats())
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
	if len(head) == 0 { // one line that is longer than what is looked at, as JSON is
		head = begin(first)
	}
	for _, f := range Formats() {
		if f.Is(head, path) {
			return f, nil
		}
	}
	if len(head) == 0 {
		return history.Format{}, errkind.Errorf(errkind.Invalid, "%s: there is nothing in it: it is empty, or a compressed file that is "+
			"cut: dump it again", path)
	}
	if slurm.Headless(head) {
		return history.Format{}, errkind.Errorf(errkind.Invalid, "%s: these look like rows of sacct without their header: dump it "+
			"again without -n", path)
	}
	var known strings.Builder
	for _, f := range Formats() {
		fmt.Fprintf(&known, "\n  %s: %s", f.Name, f.Doc)
	}
	return history.Format{}, errkind.Errorf(errkind.Invalid, "%s: this is no log that is known; want one of%s", path, known.String())
}

// begin is the text that a file begins with, as far as its first bytes go.
func begin(first []byte) []byte {
	text, err := trace.Text(bytes.NewReader(first))
	if err != nil {
		return nil
	}
	head := make([]byte, most)
	n, _ := io.ReadFull(text, head) // it is cut here
	return head[:n]
}

// File is a file of a cluster: the name by which it is spoken of, and the way to what is in it.
type File struct {
	Name string
	// Open begins to read it. Its errors say what was opened, and have a kind.
	Open func() (io.ReadCloser, error)
}

// At is the file at a path, which may be a pipe.
func At(path string) File {
	return File{Name: path, Open: func() (io.ReadCloser, error) { return open(path) }}
}

// Read makes one history of the files of a cluster that lie at these paths. Errors are those of ReadFiles.
func Read(o history.Options, paths ...string) (*history.History, error) {
	files := make([]File, len(paths))
	for i, path := range paths {
		files[i] = At(path)
	}
	return ReadFiles(o, files...)
}

// ReadFiles makes one history of the files of a cluster. Errors are those of Book.Close and of files that can't be read or are not known,
// all of them.
func ReadFiles(o history.Options, files ...File) (*history.History, error) {
	return ReadWith(o, nil, files...)
}

// ReadWith is ReadFiles with what more puts into the book first, which is in no file. nil: nothing.
func ReadWith(o history.Options, more func(*history.Book) error, files ...File) (*history.History, error) {
	b := history.NewBook(o)
	var bad []error
	if more != nil {
		if err := more(b); err != nil {
			return nil, err
		}
	}
	first := map[string]string{} // files by format, the first of each
	for _, file := range files {
		f, err := into(b, file)
		if err != nil {
			bad = append(bad, err)
		} else if first[f.Name] == "" && !f.Beside {
			first[f.Name] = file.Name
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

// into reads a file, which may be a pipe, and returns its format.
func into(b *history.Book, file File) (history.Format, error) {
	content, err := file.Open()
	if err != nil {
		return history.Format{}, err
	}
	defer content.Close()
	r := bufio.NewReaderSize(content, most)
	first, err := r.Peek(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return history.Format{}, errkind.Errorf(errkind.Unavailable, "read a cluster's log: %w", err)
	}
	f, err := detect(first, file.Name)
	if err != nil {
		return history.Format{}, err
	}
	return f, f.Read(b, r, file.Name)
}

func open(path string) (io.ReadCloser, error) {
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
