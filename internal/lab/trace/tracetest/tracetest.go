// Package tracetest is the conformance suite that every kind of trace reader must pass, and finds the published traces
// for tests that read them whole.
package tracetest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/trace"
)

// Suite is what the conformance suite needs to know of one format.
type Suite struct {
	Format trace.Format
	// File is the name that the sample is read under.
	File string
	// Sample is a small file of the format, whole and right, written for the test; it ends in a line end.
	Sample string
	// Want is what the sample says.
	Want []trace.Record
	// Broken are ways to spoil the sample: at least a wrong number and, where the format has a header, a missing column.
	Broken []Broken
}

// Broken is a way to spoil the sample.
type Broken struct {
	Name string
	// Old is a part of the sample, found once; New replaces it.
	Old, New string
	// Place is the problem's "line:column"; empty for where Old begins.
	Place string
	// Says is a part of the problem's text.
	Says string
}

// Run checks a format.
func Run(t *testing.T, s Suite) {
	if s.Format.Name == "" || s.Format.Doc == "" || strings.Contains(s.Format.Doc, "\n") {
		t.Errorf("the format needs a name and one line of doc: %+v", s.Format)
	}
	t.Run("sample", s.sample)
	t.Run("line ends and compression", s.dresses)
	t.Run("every cut of a compressed file is noticed", s.cuts)
	t.Run("places of problems", s.broken)
	t.Run("problems have a limit", s.many)
	t.Run("an empty file", s.empty)
	t.Run("a file that is no text ends soon", s.endless)
	t.Run("a file that can't be read", s.unreadable)
	t.Run("memory", s.allocations)
}

// read reads everything, copying what a reader may reuse.
func read(f trace.Format, r io.Reader, file string) ([]trace.Record, error) {
	reader := f.Open(r, file)
	// What stands in the record before must not matter.
	rec := trace.Record{Kind: 99, Line: -7, At: 77, Job: trace.JobRecord{ID: "left over", Models: []string{"x"}},
		Curve: trace.CurveRecord{Values: []float64{1}}}
	var all []trace.Record
	for {
		err := reader.Next(&rec)
		if err != nil {
			for range 2 { // the end is the end
				if again := reader.Next(&rec); again == nil {
					return all, fmt.Errorf("after %w, Next goes on", err)
				} else if again.Error() != err.Error() {
					return all, fmt.Errorf("after %w, Next says: %w", err, again)
				}
			}
			if errors.Is(err, io.EOF) {
				return all, nil
			}
			return all, err
		}
		kept := rec
		kept.Job.Models = append([]string(nil), rec.Job.Models...)
		kept.Request.Blocks = append([]int64(nil), rec.Request.Blocks...)
		kept.Curve.Values = append([]float64(nil), rec.Curve.Values...)
		all = append(all, kept)
	}
}

func (s *Suite) read(content string) ([]trace.Record, error) {
	return read(s.Format, strings.NewReader(content), s.File)
}

func (s *Suite) sample(t *testing.T) {
	got, err := s.read(s.Sample)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(s.Want) {
		t.Fatalf("%d records, want %d", len(got), len(s.Want))
	}
	for i := range got {
		if !slices.Contains(s.Format.Kinds, got[i].Kind) {
			t.Errorf("record %d is of kind %d, which the format does not name", i, got[i].Kind)
		}
		if !reflect.DeepEqual(got[i], s.Want[i]) {
			t.Errorf("record %d is\n%+v, want\n%+v", i, got[i], s.Want[i])
		}
	}
}

func (s *Suite) dresses(t *testing.T) {
	half := strings.Index(s.Sample, "\n") + 1
	for name, content := range map[string]string{
		"carriage returns":      strings.ReplaceAll(s.Sample, "\n", "\r\n"),
		"no last line end":      strings.TrimSuffix(s.Sample, "\n"),
		"gzip":                  zipped(s.Sample),
		"gzip in two members":   zipped(s.Sample[:half]) + zipped(s.Sample[half:]),
		"byte order mark":       strict.ByteOrderMark + s.Sample,
		"gzip, byte order mark": zipped(strict.ByteOrderMark + s.Sample),
		"gzip, carriage return": zipped(strings.ReplaceAll(s.Sample, "\n", "\r\n")),
	} {
		for way, reader := range map[string]io.Reader{"": strings.NewReader(content),
			" byte by byte": iotest.OneByteReader(strings.NewReader(content))} {
			if got, err := read(s.Format, reader, s.File); err != nil || !reflect.DeepEqual(got, s.Want) {
				t.Errorf("%s%s: %v, %+v", name, way, err, got)
			}
		}
	}
}

func (s *Suite) cuts(t *testing.T) {
	whole := zipped(s.Sample)
	for n := range len(whole) {
		if _, err := s.read(whole[:n]); errkind.Of(err) != errkind.Invalid || !strings.HasPrefix(err.Error(), s.File+":") {
			t.Errorf("cut at byte %d of %d: %v", n, len(whole), err)
		}
	}
	flipped := []byte(whole)
	flipped[len(flipped)-8] ^= 1 // in the checksum
	if _, err := s.read(string(flipped)); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a wrong checksum: %v", err)
	}
}

func (s *Suite) broken(t *testing.T) {
	if len(s.Broken) == 0 {
		t.Fatal("the suite needs ways to break the sample")
	}
	for _, b := range s.Broken {
		at := strings.Index(s.Sample, b.Old)
		if at < 0 || strings.Count(s.Sample, b.Old) != 1 {
			t.Fatalf("%s: %q is not once in the sample", b.Name, b.Old)
		}
		content := s.Sample[:at] + b.New + s.Sample[at+len(b.Old):]
		place := b.Place
		if before := s.Sample[:at]; place == "" {
			place = fmt.Sprintf("%d:%d", strings.Count(before, "\n")+1, at-strings.LastIndex(before, "\n"))
		}
		_, err := s.read(content)
		if place = s.File + ":" + place + ": "; errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), place) ||
			!strings.Contains(err.Error(), b.Says) {
			t.Errorf("%s: want a problem at %s that says %q:\n%v", b.Name, place, b.Says, err)
		}
	}
}

func (s *Suite) many(t *testing.T) {
	first := strings.Repeat("\x01\n", 40)
	_, err := s.read(s.Sample + first)
	if err == nil {
		t.Fatal("lines of control characters are taken")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 21 || !strings.Contains(lines[20], "stopped at 20") {
		t.Errorf("want 20 problems and a word about the rest:\n%v", err)
	}
	for i, l := range lines[:20] {
		if !strings.HasPrefix(l, fmt.Sprintf("%s:%d:", s.File, strings.Count(s.Sample, "\n")+1+i)) {
			t.Errorf("problem %d is %q", i, l)
		}
	}
}

func (s *Suite) empty(t *testing.T) {
	for name, content := range map[string]string{"plain": "", "gzip": zipped("")} {
		if got, err := s.read(content); len(got) > 0 || errkind.Of(err) != errkind.Invalid ||
			!strings.Contains(err.Error(), s.File+":1:1: the file is empty") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endless gives a sample and then the same bytes for ever.
type endless struct {
	fill byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.fill
	}
	e.read += len(p)
	return len(p), nil
}

func (s *Suite) endless(t *testing.T) {
	for _, fill := range []byte{'x', ',', ' ', '1', '{', 0} {
		e := &endless{fill: fill}
		_, err := read(s.Format, io.MultiReader(strings.NewReader(s.Sample), e), s.File)
		if errkind.Of(err) != errkind.Invalid {
			t.Errorf("endless %q: %v", fill, err)
		}
		if e.read > 4<<20 {
			t.Errorf("endless %q: stopped only after %d bytes", fill, e.read)
		}
	}
}

func (s *Suite) unreadable(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := read(s.Format, io.MultiReader(strings.NewReader(s.Sample), iotest.ErrReader(broken)), s.File)
	if errkind.Of(err) != errkind.Unavailable || !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), s.File+":") {
		t.Errorf("%v of kind %v", err, errkind.Of(err))
	}
}

func (s *Suite) allocations(t *testing.T) {
	const records = 2000
	reader := s.Format.Open(strings.NewReader(s.long(records+200)), s.File)
	var r trace.Record
	for range 100 { // past the header and the first names
		if err := reader.Next(&r); err != nil {
			t.Fatal(err)
		}
	}
	// Ids share allocations of 4 KiB, and the first ones grow buffers; one for each record would be 2000.
	got := testing.AllocsPerRun(1, func() {
		for range records / 2 {
			if err := reader.Next(&r); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got > records/2/20 {
		t.Errorf("%v allocations for %d records", got, records/2)
	}
}

// long is a file with at least n records: the sample's last line again and again.
func (s *Suite) long(n int) string {
	last := s.Sample[strings.LastIndex(strings.TrimSuffix(s.Sample, "\n"), "\n")+1:]
	return s.Sample + strings.Repeat(last, n)
}

func zipped(content string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, content); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

// Bench measures a reader on records like the sample's last one, without compression.
func Bench(b *testing.B, s Suite) {
	const records = 10000
	content := s.long(records)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		reader := s.Format.Open(strings.NewReader(content), s.File)
		var r trace.Record
		for {
			err := reader.Next(&r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}

// Fuzz looks for content that breaks a reader: every input ends in io.EOF or in problems with places, and records are in
// order and within their ranges.
func Fuzz(f *testing.F, s Suite) {
	f.Add([]byte(s.Sample))
	f.Add([]byte(zipped(s.Sample)))
	f.Add([]byte(strings.ReplaceAll(s.Sample, "\n", "\r\n")))
	for _, b := range s.Broken {
		f.Add([]byte(strings.Replace(s.Sample, b.Old, b.New, 1)))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := read(s.Format, bytes.NewReader(content), s.File)
		if err != nil && (errkind.Of(err) != errkind.Invalid || !strings.HasPrefix(err.Error(), s.File+":")) {
			t.Fatalf("the problem has no place or no kind: %v", err)
		}
		line := 0
		for i := range got {
			if got[i].Line <= line {
				t.Fatalf("line %d comes after line %d", got[i].Line, line)
			}
			line = got[i].Line
			inRange(t, reflect.ValueOf(got[i]))
		}
	})
}

// inRange checks that no number of a record is less than Unknown, and that no text has a control character. Samples may
// be any number.
func inRange(t *testing.T, v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			if f.Int() < trace.Unknown {
				t.Fatalf("%s is %d", v.Type().Field(i).Name, f.Int())
			}
		case reflect.String:
			if strings.ContainsAny(f.String(), "\n\r\x00\x1b\"") {
				t.Fatalf("%s is %q", v.Type().Field(i).Name, f.String())
			}
		case reflect.Struct:
			inRange(t, f)
		default: // kinds and floats may be anything
		}
	}
}
