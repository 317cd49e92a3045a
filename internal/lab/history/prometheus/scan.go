package prometheus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// series is one of a range: labels, and samples in order of their instants.
type series struct {
	labels map[string]string
	// at are milliseconds since 1970, values what was sampled then.
	at     []int64
	values []float64
}

// visitor takes what a document has in it.
type visitor interface {
	// series takes one that was read whole. It is valid until the next.
	series(s *series, line uint32)
	// failed takes the text of an answer that is an error, warned that of a warning beside an answer.
	failed(text string, line uint32)
	warned(text string, line uint32)
	// strange takes what is no range: another type of result, a series without labels.
	strange(text string, line uint32)
}

// scanner reads documents one after another, and of each one series after another: a dump may be larger than memory.
type scanner struct {
	in  *json.Decoder
	row series
	// raw is read by the decoder through Read, so many bytes by now.
	raw  io.Reader
	read int64
	// line is where the decoder is, ends are those ends of lines that it has read ahead.
	line uint32
	ends []int64
}

var errForm = errors.New("it is no JSON as Prometheus writes it")

func newScanner(raw io.Reader) *scanner {
	s := &scanner{line: 1, raw: raw}
	s.in = json.NewDecoder(s)
	return s
}

// Read is the decoder's input, whose ends of lines it notes.
func (s *scanner) Read(p []byte) (int, error) {
	n, err := s.raw.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			s.ends = append(s.ends, s.read+int64(i))
		}
	}
	s.read += int64(n)
	return n, err
}

// at is the line of the next token.
func (s *scanner) at() uint32 {
	s.in.More() // goes there
	n := 0
	for n < len(s.ends) && s.ends[n] < s.in.InputOffset() {
		n++
	}
	s.line += uint32(n)
	s.ends = append(s.ends[:0], s.ends[n:]...)
	return s.line
}

// document reads the next one: an answer of the API, or the list alone, as promtool prints it. It returns io.EOF behind the last,
// io.ErrUnexpectedEOF within one, and errForm where it is none.
func (s *scanner) document(to visitor) error {
	s.at()
	token, err := s.in.Token()
	if errors.Is(err, io.EOF) {
		return err
	}
	if err == nil {
		switch token {
		case json.Delim('['):
			err = s.each(func() error { return s.series(to) })
		case json.Delim('{'):
			err = s.answer(to)
		default:
			err = errForm
		}
	}
	var form *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.As(err, &form):
		return fmt.Errorf("%w: %w", errForm, err)
	}
	return err
}

// each calls part before each element of what was entered, and leaves it behind the last.
func (s *scanner) each(part func() error) error {
	for s.in.More() {
		if err := part(); err != nil {
			return err
		}
	}
	_, err := s.in.Token()
	return err
}

// members calls member behind each key of an object that was entered.
func (s *scanner) members(member func(key string) error) error {
	return s.each(func() error {
		key, err := s.in.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // a key is one
		return member(name)
	})
}

// enter says whether the next value begins so. Another one is read to its end.
func (s *scanner) enter(open json.Delim) (bool, error) {
	token, err := s.in.Token()
	if err != nil || token == open {
		return err == nil, err
	}
	if other, ok := token.(json.Delim); ok {
		skip := func() error { return s.skip() }
		if other == '{' {
			return false, s.members(func(string) error { return skip() })
		}
		return false, s.each(skip)
	}
	return false, nil
}

func (s *scanner) skip() error {
	var value json.RawMessage
	return s.in.Decode(&value)
}

// text reads a text, and anything else as none.
func (s *scanner) text(text *string) error {
	var value any
	err := s.in.Decode(&value)
	*text, _ = value.(string)
	return err
}

// answer reads {"status":..., "data":{"resultType":"matrix","result":[...]}}.
func (s *scanner) answer(to visitor) error {
	status, kind, text := "", "", ""
	line := s.line
	err := s.members(func(key string) error {
		switch key {
		case "status":
			return s.text(&status)
		case "errorType":
			return s.text(&kind)
		case "error":
			return s.text(&text)
		case "warnings":
			is, err := s.enter('[')
			if !is {
				return err
			}
			return s.each(func() error {
				warning, at := "", s.at()
				err := s.text(&warning)
				if err == nil {
					to.warned(warning, at)
				}
				return err
			})
		case "data":
			is, err := s.enter('{')
			if !is {
				return err
			}
			return s.data(to)
		}
		return s.skip()
	})
	if err == nil && (status == "error" || text != "") {
		to.failed(strings.TrimPrefix(kind+": "+text, ": "), line)
	}
	return err
}

func (s *scanner) data(to visitor) error {
	kind := "matrix"
	return s.members(func(key string) error {
		switch {
		case key == "resultType":
			err := s.text(&kind)
			if err == nil && kind != "matrix" {
				to.strange("a "+kind, s.line)
			}
			return err
		case key == "result" && kind == "matrix":
			is, err := s.enter('[')
			if !is {
				return err
			}
			return s.each(func() error { return s.series(to) })
		}
		return s.skip()
	})
}

// series reads {"metric":{...},"values":[[t,"v"],...]}.
func (s *scanner) series(to visitor) error {
	line := s.at()
	s.row.at, s.row.values = s.row.at[:0], s.row.values[:0]
	told := struct {
		Metric map[string]any `json:"metric"`
		Values samples        `json:"values"`
	}{Values: samples{of: &s.row}}
	var other *json.UnmarshalTypeError
	if err := s.in.Decode(&told); err != nil && !errors.As(err, &other) {
		return err
	}
	if told.Metric == nil || !told.Values.are {
		to.strange("a series without labels or without values of a range", line)
		return nil
	}
	s.row.labels = make(map[string]string, len(told.Metric))
	for key, value := range told.Metric { //sluice:sorted into a map
		if text, ok := value.(string); ok {
			s.row.labels[key] = text
		}
	}
	to.series(&s.row, line)
	return nil
}

// samples puts a list of samples into a series. Those that are not in order, or no numbers, are left out.
type samples struct {
	of  *series
	are bool
}

// UnmarshalJSON reads [[t,"v"],...], which are JSON already: what does not look so is no sample.
func (x *samples) UnmarshalJSON(text []byte) error {
	x.are = text[0] == '['
	for pair := range bytes.SplitSeq(text, []byte("]")) {
		at, value, _ := bytes.Cut(bytes.TrimLeft(pair, "[, \t\r\n"), []byte(","))
		seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(at)), 64)
		if err != nil {
			continue
		}
		if v, err := strconv.ParseFloat(string(bytes.Trim(value, "\" \t\r\n")), 64); err == nil {
			x.of.take(seconds, v)
		}
	}
	return nil
}

func (s *series) take(at, value float64) {
	const latest = 4102444800 // 2100
	if !(at >= 0 && at < latest) || value != value {
		return
	}
	ms := int64(at*1000 + .5)
	if n := len(s.at); n > 0 && s.at[n-1] >= ms {
		return
	}
	s.at, s.values = append(s.at, ms), append(s.values, value)
}
