package trace

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// text is the reader of every format made of lines.
type text struct {
	source   source
	line     Line
	problems problems
	parse    func(l *Line, r *Record) bool
	err      error // final
}

// OpenLines reads a file line by line. parse fills r from l and says whether that is a record; what it finds wrong it says
// with l.Fail and the methods of Field. A record of a file with problems is not given out.
func OpenLines(r io.Reader, file string, parse func(l *Line, r *Record) bool) Reader {
	t := &text{source: source{raw: r}, problems: problems{file: file}, parse: parse}
	t.line.problems = &t.problems
	return t
}

// Next implements Reader.
func (t *text) Next(r *Record) error {
	for t.err == nil {
		content, err := t.source.line()
		if err != nil {
			t.err = t.end(err)
			break
		}
		t.line.Number++
		t.line.Text = content
		t.line.fields = t.line.fields[:0]
		*r = Record{Line: t.line.Number, At: Unknown}
		record := t.parse(&t.line, r)
		switch {
		case t.problems.full():
			t.err = t.problems.err()
		case record && !t.problems.any():
			return nil
		}
	}
	return t.err
}

// Treated implements Reader.
func (t *text) Treated() []Treatment { return t.line.treated }

// end makes the final error of what ended the lines.
func (t *text) end(err error) error {
	next := t.line.Number + 1
	switch {
	case errors.Is(err, io.EOF) && !t.source.started:
		t.problems.add(1, 1, "the file is empty; fetch it again")
	case errors.Is(err, io.EOF):
		if !t.problems.any() {
			return io.EOF
		}
	case errors.Is(err, errLongLine):
		t.problems.add(next, 1, err.Error()+"; this is not a file of this format")
	case isDamage(err):
		t.problems.add(next, 1, fmt.Sprintf("the compressed file is cut or damaged here or later (%v); fetch it again", err))
	default:
		return &errkind.Error{Kind: errkind.Unavailable, Err: fmt.Errorf("%s:%d:1: read: %w", t.problems.file, next, err)}
	}
	return t.problems.err()
}

// Stem is a file's name without folder and endings: "qps" of "a/qps.csv.gz". Series are named by it.
func Stem(file string) string {
	stem, _, _ := strings.Cut(filepath.Base(file), ".")
	return stem
}
