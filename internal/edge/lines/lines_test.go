package lines_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/lines"
)

// all reads what is left.
func all(s *lines.Scanner) (list []string, err error) {
	for {
		line, _, err := s.Next(nil)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, string(line))
	}
}

// plainLines is what lines of text are, told differently.
func plainLines(text string) (list []string) {
	for line := range strings.Lines(text) {
		list = append(list, strings.TrimSuffix(line, "\n")+"\n")
	}
	return list
}

// TestFromEveryLine: an index leads to the same lines as reading the file from its beginning, with and without a header.
func TestFromEveryLine(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(250, 1100)).Draw(t, "lines")
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "%d%s", i, rapid.SampledFrom([]string{"\n", "\r\n", " a longer line\n", "\n\n"}).Draw(t, "end"))
		}
		text.WriteString(rapid.SampledFrom([]string{"", "without an end"}).Draw(t, "last"))
		header := rapid.Bool().Draw(t, "header")
		want := plainLines(text.String())
		if header && len(want) > 0 {
			want = want[1:]
		}
		file, index := filepath.Join(dir, "f"), filepath.Join(dir, "i")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := lines.Build(file, job.Text, header)
		if err != nil {
			t.Fatal(err)
		}
		if x.Lines != int64(len(want)) {
			t.Fatalf("%d lines, want %d", x.Lines, len(want))
		}
		data, err := x.Bytes()
		if err == nil {
			err = os.WriteFile(index, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, len(want)).Draw(t, "from")
		for _, index := range []string{index, ""} {
			f, err := lines.Open(file, index, job.Text, header)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Unchanged(); err != nil {
				t.Error(err)
			}
			s, err := f.From(int64(from))
			if err != nil && len(want) > 0 {
				t.Fatal(err)
			}
			if err == nil {
				got, err := all(s)
				if err != nil || strings.Join(got, "") != strings.Join(want[from:], "") || len(got) != len(want)-from {
					t.Fatalf("from %d with index %q: %q %v, want %q", from, index, got, err, want[from:])
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzCSV: what a line of CSV is, as the standard library has it.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "\"a\nb\",2\n\n3,4", "\"a\"\"\n\"\"b\",1\r\n\r\nx", "a\"b,\"c\n\"\n", "\"open\n1\n2\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, ";\t|") || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
			return // separators of others, and line ends that only some know
		}
		r := csv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = -1
		want, err := r.ReadAll()
		if err != nil {
			return // not CSV: where its lines end is anybody's guess
		}
		got, err := all(lines.NewScanner(strings.NewReader(text), job.CSV, 0))
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %d lines (%q, %v), want %d", text, len(got), got, err, len(want))
		}
		for i, line := range got {
			r := csv.NewReader(strings.NewReader(line))
			r.FieldsPerRecord = -1
			if one, err := r.ReadAll(); err != nil || len(one) != 1 || strings.Join(one[0], "\x00") != strings.Join(want[i], "\x00") {
				t.Fatalf("%q: line %d is %q, which reads as %q (%v), want %q", text, i, line, one, err, want[i])
			}
		}
	})
}

// TestNumbers: which lines of a file units are, as an editor counts.
func TestNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("h,\"x\ny\"\n1,\"a\nb\"\n\n2,c\n3,d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		format job.LineFormat
		header bool
	}{"[3 6 7]": {job.CSV, true}, "[1 3 6]": {job.CSV, false}, "[2 3 4]": {job.Text, true}, "[1 2 3]": {job.Text, false}} {
		if got, err := lines.Numbers(path, c.format, c.header, []int64{0, 1, 2}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v %v: %v %v, want %s", c.format, c.header, got, err, want)
		}
	}
	if _, err := lines.Numbers(path, job.CSV, true, []int64{3}); err == nil {
		t.Error("a unit that is not there has a number")
	}
}

// TestALineIsFoundByItsNumber: whatever way a file is indexed, each of its lines has the number that counting all before it gives.
func TestALineIsFoundByItsNumber(t *testing.T) {
	dir := t.TempDir()
	path, at := filepath.Join(dir, "f"), filepath.Join(dir, "index")
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		kinds := []string{"1,2", "x\r", "\"a\nb\n\",2", "\n\n3"}[:rapid.SampledFrom([]int{2, 4}).Draw(t, "kinds")]
		for i := range rapid.IntRange(1, 900).Draw(t, "records") {
			text.WriteString(rapid.SampledFrom(kinds).Draw(t, "record"))
			if i > 0 || rapid.Bool().Draw(t, "ended") {
				text.WriteByte('\n')
			}
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		format := rapid.SampledFrom([]job.LineFormat{job.Text, job.CSV}).Draw(t, "format")
		header, indexed := rapid.Bool().Draw(t, "header"), rapid.Bool().Draw(t, "indexed")
		x, err := lines.Build(path, format, header)
		if err != nil || x.Lines == 0 {
			t.Skip("the header is all", err)
		}
		data, err := x.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
		index := ""
		if indexed {
			index = at
		}
		f, err := lines.Open(path, index, format, header)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if format == job.CSV && !x.Numbered {
			plain, err := lines.Build(path, job.Text, header)
			if err != nil || plain.Lines != x.Lines {
				t.Fatalf("as text it has %d lines, and not %d: %v", plain.Lines, x.Lines, err)
			}
		}
		nth := rapid.Int64Range(0, x.Lines-1).Draw(t, "nth")
		want, err := lines.Numbers(path, format, header, []int64{nth})
		if got, failed := f.Number(nth); err != nil || failed != nil || got != want[0] {
			t.Fatalf("line %d: %d %v, want %v %v", nth, got, failed, want, err)
		}
		if got, err := f.Number(x.Lines); err == nil {
			t.Fatalf("line %d is not there, and has number %d", x.Lines, got)
		}
	})
}

// TestWhatIsRefused: files that can't be cut into lines, and an index that is of another file.
func TestWhatIsRefused(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	long := put("long", bytes.Repeat([]byte{'x'}, lines.MaxLine+1))
	open := put("open", []byte("a,b\n1,\"2\n3,4\n"))
	for path, c := range map[string]struct {
		format job.LineFormat
		want   string
	}{
		long: {job.Text, "line 1 is longer than 64 MiB; is it text?"},
		open: {job.CSV, "the record that begins at line 2 has a double quote that nothing closes"},
		dir:  {job.Text, "is no plain file"},
	} {
		if _, err := lines.Build(path, c.format, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", path, err, c.want)
		}
	}

	file := put("file", []byte("1\n2\n"))
	x, err := lines.Build(file, job.Text, false)
	if err != nil {
		t.Fatal(err)
	}
	data, err := x.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	index, torn := put("index", data), put("torn", data[:10])
	put("file", []byte("1\n2\n3\n"))
	if _, err := lines.Open(file, index, job.Text, false); err == nil || !strings.Contains(err.Error(), "it had 4 bytes, and has 6") {
		t.Errorf("an index of the file as it was: %v", err)
	}
	put("file", []byte("1\n2\n"))
	if _, err := lines.Open(file, torn, job.Text, false); err == nil || !strings.Contains(err.Error(), "is no index of lines") {
		t.Errorf("a torn index: %v", err)
	}
	if _, err := lines.Open(file, filepath.Join(dir, "nothing"), job.Text, false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no index: %v", err)
	}
	f, err := lines.Open(file, index, job.Text, false)
	if err != nil {
		t.Fatal(err)
	}
	old := x.Modified.Add(-5e9)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if err := f.Unchanged(); err == nil || !strings.Contains(err.Error(), "after its lines were counted") {
		t.Errorf("a file that was written again: %v", err)
	}
}

// BenchmarkBuild indexes 256 MiB of lines; B/op is what it holds of them.
func BenchmarkBuild(b *testing.B) {
	path := filepath.Join(b.TempDir(), "lines")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	chunk := bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 1<<20/100)
	size := int64(0)
	for size < 256<<20 {
		n, err := f.Write(chunk)
		if err != nil {
			b.Fatal(err)
		}
		size += int64(n)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		x, err := lines.Build(path, job.Text, false)
		if err != nil || x.Lines != size/100 {
			b.Fatal(x, err)
		}
	}
}
