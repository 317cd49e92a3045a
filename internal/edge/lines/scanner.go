// Package lines reads a file as units of work, a line each: which bytes a line is, and an index of offsets that finds a line without
// reading all before it. It knows nothing of jobs that are cut along them.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// MaxLine is the longest line, in bytes with its end: a line is what is held in memory.
const MaxLine = 64 << 20

// Scanner cuts a stream into lines.
type Scanner struct {
	r      *bufio.Reader
	format job.LineFormat
	// offset is the bytes of the file before the next line, and ends the line ends before it; at is where the last one began, counted so.
	offset, ends, at int64
}

// NewScanner reads lines of a format from r, whose first byte is at an offset. It says where lines are as if that began the file's first.
func NewScanner(r io.Reader, format job.LineFormat, offset int64) *Scanner {
	return &Scanner{r: bufio.NewReaderSize(r, 256<<10), format: format, offset: offset}
}

// Next appends the next line to buf, and says where it begins. It has a line end, also where the last one of the stream has none; io.EOF
// says that there is no other.
func (s *Scanner) Next(buf []byte) (line []byte, offset int64, err error) {
	for from := len(buf); ; buf = buf[:from] {
		begin := s.offset
		if buf, err = s.record(buf); err != nil {
			return buf, begin, err
		}
		if s.format == job.CSV && len(bytes.TrimRight(buf[from:], "\r\n")) == 0 {
			continue
		}
		return buf, begin, nil
	}
}

// record reads up to the line end that counts.
func (s *Scanner) record(buf []byte) ([]byte, error) {
	s.at = s.ends
	from, q := len(buf), quotes(fieldBegins)
	for {
		part, err := s.r.ReadSlice('\n')
		s.offset += int64(len(part))
		buf = append(buf, part...)
		if s.format == job.CSV {
			q = q.after(part)
			s.ends += int64(bytes.Count(part, []byte{'\n'}))
		} else if err == nil {
			s.ends++
		}
		whole := err == nil && q != quoted
		switch {
		case len(buf)-from > MaxLine:
			return buf, errkind.Errorf(errkind.Invalid, "line %d is longer than %d MiB; %s", s.at+1, MaxLine>>20, s.advice())
		case whole:
			return buf, nil
		case errors.Is(err, io.EOF) && len(buf) == from:
			return buf, io.EOF
		case errors.Is(err, io.EOF) && q == quoted:
			return buf, errkind.Errorf(errkind.Invalid, "the record that begins at line %d has a double quote that nothing closes",
				s.at+1)
		case errors.Is(err, io.EOF):
			return append(buf, '\n'), nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return buf, fmt.Errorf("reading lines: %w", err)
		}
	}
}

func (s *Scanner) advice() string {
	if s.format == job.CSV {
		return "is a double quote not closed?"
	}
	return "is it text?"
}

// quotes is where a reader of CSV is (RFC 4180; the field's separator is any that is in use).
type quotes uint8

const (
	fieldBegins quotes = iota
	unquoted
	quoted
	// closing: behind a double quote in a quoted field, which ends it unless another follows.
	closing
)

// after is where the reader is behind some bytes.
func (q quotes) after(text []byte) quotes {
	for _, b := range text {
		switch {
		case q == quoted:
			if b == '"' {
				q = closing
			}
		case b == '"' && (q == fieldBegins || q == closing):
			q = quoted
		case b == ',' || b == ';' || b == '\t' || b == '|':
			q = fieldBegins
		default:
			q = unquoted
		}
	}
	return q
}
