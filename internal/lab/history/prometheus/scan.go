package prometheus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// series is one of a range: labels, and samples in order of their instants. It is valid until the next is read.
type series struct {
	labels map[string]string
	// at are milliseconds since 1970, values what was sampled then.
	at     []int64
	values []float64
}

// visitor takes what a document has in it.
type visitor interface {
	// series takes one that was read whole.
	series(s *series, line uint32)
	// failed takes the text of an answer that is an error, warned that of a warning beside an answer.
	failed(text string, line uint32)
	warned(text string, line uint32)
	// strange takes what is no range: another type of result, a series without labels.
	strange(text string, line uint32)
}

// scanner reads documents one after another. encoding/json would keep a document whole, which is gigabytes here.
type scanner struct {
	in   *bufio.Reader
	line uint32
	text []byte
	row  series
	// shared texts of labels: the same come in each series.
	known map[string]string
}

// Bounds against files that are none of these.
const (
	mostText   = 64 << 10
	mostDepth  = 32
	mostLabels = 256
)

var errForm = errors.New("it is no JSON as Prometheus writes it")

func newScanner(in *bufio.Reader) *scanner {
	return &scanner{in: in, line: 1, known: map[string]string{}, row: series{labels: map[string]string{}}}
}

// document reads the next one: an answer of the API, or the list alone, as promtool prints it. It returns io.EOF behind the last, and
// io.ErrUnexpectedEOF within one.
func (s *scanner) document(to visitor) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch c {
	case '[':
		err = s.list(func() error { return s.series(to) })
	case '{':
		err = s.answer(to)
	default:
		err = errForm
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// answer reads {"status":..., "data":{"resultType":"matrix","result":[...]}}.
func (s *scanner) answer(to visitor) error {
	status, kind, text := "", "", ""
	line := s.line
	err := s.object(func(key string) error {
		switch key {
		case "status":
			return s.into(&status)
		case "errorType":
			return s.into(&kind)
		case "error":
			return s.into(&text)
		case "warnings", "infos":
			if c, err := s.peek(); err != nil || c != '[' {
				return s.skip(0)
			}
			return s.list(func() error {
				var warning string
				err := s.into(&warning)
				if err == nil && key == "warnings" {
					to.warned(warning, s.line)
				}
				return err
			})
		case "data":
			if c, err := s.peek(); err != nil || c != '{' {
				return s.skip(0)
			}
			return s.data(to)
		}
		return s.skip(0)
	})
	if err == nil && (status == "error" || text != "") {
		to.failed(strings.TrimPrefix(kind+": "+text, ": "), line)
	}
	return err
}

func (s *scanner) data(to visitor) error {
	kind := "matrix"
	return s.object(func(key string) error {
		switch key {
		case "resultType":
			err := s.into(&kind)
			if err == nil && kind != "matrix" {
				to.strange("a "+kind, s.line)
			}
			return err
		case "result":
			if c, err := s.peek(); err != nil || c != '[' || kind != "matrix" {
				return s.skip(0)
			}
			return s.list(func() error { return s.series(to) })
		}
		return s.skip(0)
	})
}

// series reads {"metric":{...},"values":[[t,"v"],...]}.
func (s *scanner) series(to visitor) error {
	clear(s.row.labels)
	s.row.at, s.row.values = s.row.at[:0], s.row.values[:0]
	line := s.line
	if c, err := s.peek(); err != nil || c != '{' {
		to.strange("a value that is no series", line)
		return s.skip(0)
	}
	named, ranged := false, false
	err := s.object(func(key string) error {
		c, err := s.peek()
		switch {
		case err != nil:
			return err
		case key == "metric" && c == '{':
			named = true
			return s.labels()
		case key == "values" && c == '[':
			ranged = true
			return s.list(s.sample)
		}
		return s.skip(0)
	})
	if err != nil {
		return err
	}
	if !named || !ranged {
		to.strange("a series without labels or without values of a range", line)
		return nil
	}
	to.series(&s.row, line)
	return nil
}

func (s *scanner) labels() error {
	return s.object(func(key string) error {
		if c, err := s.peek(); err != nil || c != '"' {
			return s.skip(0)
		}
		text, err := s.string()
		if err == nil && len(s.row.labels) < mostLabels {
			s.row.labels[key] = s.share(text)
		}
		return err
	})
}

// sample reads [t,"v"]. Samples that are not in order, or no numbers, are left out.
func (s *scanner) sample() error {
	if at, value, n := plainSample(s.in); n > 0 {
		_, _ = s.in.Discard(n) // they were seen
		s.take(at, value)
		return nil
	}
	var at, value float64
	n, good := 0, true
	if c, err := s.peek(); err != nil || c != '[' {
		return s.skip(0)
	}
	err := s.list(func() error {
		c, err := s.peek()
		if err != nil {
			return err
		}
		x := 0.
		switch {
		case n > 1 || c == '[' || c == '{':
			good = false
			err = s.skip(0)
		case c == '"':
			x, err = s.quoted()
		default:
			x, err = s.number()
		}
		if n == 0 {
			at = x
		} else {
			value = x
		}
		n++
		return err
	})
	if err == nil && good && n == 2 {
		s.take(at, value)
	}
	return err
}

// plainSample is a sample as Prometheus writes nearly all: without blanks, in a few bytes that lie in the buffer. n is how many; 0: it is
// written otherwise.
func plainSample(in *bufio.Reader) (at, value float64, n int) {
	const most = 48
	text, _ := in.Peek(most) // less at the end of the text, which an error says
	end := bytes.IndexByte(text, ']')
	if end < 0 || text[0] != '[' || text[end-1] != '"' {
		return 0, 0, 0
	}
	comma := bytes.IndexByte(text[:end], ',')
	if comma < 2 || end-comma < 4 || text[comma+1] != '"' || bytes.IndexByte(text[comma+2:end-1], '"') >= 0 ||
		bytes.IndexByte(text[comma+2:end-1], '\\') >= 0 {
		return 0, 0, 0
	}
	at, value = parse(text[1:comma]), parse(text[comma+2:end-1])
	if at != at || value != value {
		return 0, 0, 0
	}
	return at, value, end + 1
}

func (s *scanner) take(at, value float64) {
	const latest = 4102444800 // 2100
	if !(at >= 0 && at < latest) || value != value {
		return
	}
	ms := int64(at*1000 + .5)
	if n := len(s.row.at); n > 0 && s.row.at[n-1] >= ms {
		return
	}
	s.row.at, s.row.values = append(s.row.at, ms), append(s.row.values, value)
}

// share keeps one copy of a text.
func (s *scanner) share(text []byte) string {
	if known, ok := s.known[string(text)]; ok {
		return known
	}
	const most = 1 << 20
	if len(s.known) == most {
		clear(s.known)
	}
	kept := string(text)
	s.known[kept] = kept
	return kept
}

// object reads {...}, and calls member behind each key.
func (s *scanner) object(member func(key string) error) error {
	return s.parts('{', '}', func() error {
		text, err := s.string()
		if err != nil {
			return err
		}
		key := s.share(text)
		if c, err := s.peek(); err != nil || c != ':' {
			return orForm(err)
		}
		_, _ = s.in.ReadByte() // it was seen
		return member(key)
	})
}

// list reads [...], and calls element before each.
func (s *scanner) list(element func() error) error { return s.parts('[', ']', element) }

func (s *scanner) parts(open, end byte, part func() error) error {
	if c, err := s.next(); err != nil || c != open {
		return orForm(err)
	}
	if c, err := s.peek(); err != nil || c == end {
		if err == nil {
			_, err = s.in.ReadByte()
		}
		return err
	}
	for {
		if err := part(); err != nil {
			return err
		}
		switch c, err := s.next(); {
		case err != nil:
			return err
		case c == end:
			return nil
		case c != ',':
			return errForm
		}
	}
}

func orForm(err error) error {
	if err == nil {
		return errForm
	}
	return err
}

// next returns the next byte that is no blank.
func (s *scanner) next() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
		if c == '\n' {
			s.line++
		}
	}
}

// peek is next without taking it.
func (s *scanner) peek() (byte, error) {
	c, err := s.next()
	if err == nil {
		err = s.in.UnreadByte()
	}
	return c, err
}

// into reads a text, and anything else as none.
func (s *scanner) into(text *string) error {
	if c, err := s.peek(); err != nil || c != '"' {
		return s.skip(0)
	}
	b, err := s.string()
	*text = string(b)
	return err
}

// string reads a text in quotes; it is valid until the next.
func (s *scanner) string() ([]byte, error) {
	if c, err := s.next(); err != nil || c != '"' {
		return nil, orForm(err)
	}
	s.text = s.text[:0]
	for {
		c, err := s.in.ReadByte()
		switch {
		case err != nil:
			return nil, err
		case c == '"':
			return s.text, nil
		case c < ' ' || len(s.text) > mostText:
			return nil, errForm
		case c != '\\':
			s.text = append(s.text, c)
			continue
		}
		if err := s.escape(); err != nil {
			return nil, err
		}
	}
}

// escape reads what stands behind a backslash.
func (s *scanner) escape() error {
	c, err := s.in.ReadByte()
	if err != nil {
		return err
	}
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		s.text = append(s.text, "\"\\/\b\f\n\r\t"[i])
		return nil
	}
	if c != 'u' {
		return errForm
	}
	r, err := s.hex()
	if err != nil {
		return err
	}
	if !utf16.IsSurrogate(r) {
		s.text = utf8.AppendRune(s.text, r)
		return nil
	}
	pair, err := s.in.Peek(2)
	if err == nil && string(pair) == `\u` {
		_, _ = s.in.Discard(2) // they were seen
		low, err := s.hex()
		if err != nil {
			return err
		}
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			s.text = utf8.AppendRune(s.text, both)
			return nil
		}
		s.text = utf8.AppendRune(s.text, utf8.RuneError)
		if !utf16.IsSurrogate(low) {
			s.text = utf8.AppendRune(s.text, low)
			return nil
		}
	}
	s.text = utf8.AppendRune(s.text, utf8.RuneError)
	return nil
}

func (s *scanner) hex() (rune, error) {
	var four [4]byte
	if _, err := io.ReadFull(s.in, four[:]); err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(four[:]), 16, 16)
	if err != nil {
		return 0, errForm
	}
	return rune(n), nil
}

// quoted reads a number in quotes, NaN where it is none.
func (s *scanner) quoted() (float64, error) {
	text, err := s.string()
	if err != nil {
		return 0, err
	}
	return parse(text), nil
}

// number reads a number or a word.
func (s *scanner) number() (float64, error) {
	s.text = s.text[:0]
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if bytes.IndexByte([]byte(",]} \t\r\n:"), c) >= 0 {
			return parse(s.text), s.in.UnreadByte()
		}
		if c == '"' || c == '[' || c == '{' || len(s.text) > mostText {
			return 0, errForm
		}
		s.text = append(s.text, c)
	}
}

// parse reads a number; NaN for what is none.
func parse(text []byte) float64 {
	if len(text) > 0 && len(text) < 15 { // digits with a point: most of them
		n, scale, point, digits := 0, 1, false, true
		for _, c := range text {
			switch {
			case c == '.' && !point:
				point = true
			case c < '0' || c > '9':
				digits = false
			default:
				n = n*10 + int(c-'0')
				if point {
					scale *= 10
				}
			}
		}
		if digits && text[0] != '.' {
			return float64(n) / float64(scale)
		}
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// skip reads any value.
func (s *scanner) skip(depth int) error {
	if depth > mostDepth {
		return fmt.Errorf("%w: it is nested too deep", errForm)
	}
	c, err := s.peek()
	switch {
	case err != nil:
		return err
	case c == '{':
		return s.object(func(string) error { return s.skip(depth + 1) })
	case c == '[':
		return s.list(func() error { return s.skip(depth + 1) })
	case c == '"':
		_, err = s.string()
		return err
	}
	_, err = s.number()
	return err
}
