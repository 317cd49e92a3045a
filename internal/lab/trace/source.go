package trace

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"

	"sluice.dev/sluice/internal/edge/strict"
)

// maxLine is the longest line in bytes: a hundred times what the published traces have, and the bound of a reader's
// memory against a file that is no text.
const maxLine = 256 << 10

// source gives the lines of a file, compressed or not.
type source struct {
	raw     io.Reader
	lines   *bufio.Reader // nil until the first line is asked for
	started bool          // there was at least one byte
}

var errLongLine = errors.New("the line is longer than 256 KiB")

// line returns the next line without its end; it is valid until the next call.
func (s *source) line() ([]byte, error) {
	if s.lines == nil {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	text, err := s.lines.ReadSlice('\n')
	s.started = s.started || len(text) > 0
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, errLongLine
	case err == nil:
		text = text[:len(text)-1]
	case err != io.EOF || len(text) == 0:
		return nil, err
	}
	return bytes.TrimSuffix(text, []byte{'\r'}), nil
}

func (s *source) open() (err error) {
	s.lines, err = Text(s.raw)
	return err
}

// Text is what a file says, compressed (gzip) or not, for readers that don't go by lines. It looks for the mark of gzip: names lie, first
// bytes don't. The byte order mark that editors put before UTF-8 is no text.
func Text(raw io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(raw, maxLine)
	if magic, _ := text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // an error comes back at the first byte
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return nil, err
		}
		text = bufio.NewReaderSize(unzipped, maxLine)
	}
	if mark, _ := text.Peek(len(strict.ByteOrderMark)); string(mark) == strict.ByteOrderMark {
		_, _ = text.Discard(len(mark)) // they are in the buffer
	}
	return text, nil
}

// isDamage says that the bytes are wrong, not the reading of them.
func isDamage(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &corrupt)
}

// Lines gives the lines of a text file, compressed (gzip) or not, for readers that are no Reader: logs of which a bad line is no reason to
// refuse the rest.
type Lines struct{ source source }

// NewLines reads from r.
func NewLines(r io.Reader) *Lines { return &Lines{source{raw: r}} }

// Next returns the next line without its end, valid until the next call. It returns io.EOF behind the last. The error of a line that is
// TooLong is of that line alone; others are final, and those that Damaged knows are of the content.
func (l *Lines) Next() ([]byte, error) {
	line, err := l.source.line()
	if TooLong(err) {
		for more := error(bufio.ErrBufferFull); errors.Is(more, bufio.ErrBufferFull); {
			_, more = l.source.lines.ReadSlice('\n') // an error comes back at the next line
		}
	}
	return line, err
}

// TooLong says that a line is longer than any reader keeps.
func TooLong(err error) bool { return errors.Is(err, errLongLine) }

// Damaged says that an error of Lines is of what the file has in it: it is cut or damaged. Otherwise it could not be read.
func Damaged(err error) bool { return isDamage(err) }
