package trace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

var numbers = Format{Name: "numbers", Open: func(r io.Reader, file string) Reader {
	return OpenLines(r, file, func(l *Line, r *Record) bool {
		if l.Blanks([]string{"n"}) {
			r.Rank.Rank = l.Column(0).Count()
		}
		return true
	})
}}

func TestEach(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.txt")
	if err := os.WriteFile(path, []byte("4\n 5\t\n6"), 0o600); err != nil {
		t.Fatal(err)
	}
	var sum int64
	if err := Each(numbers, path, func(r *Record) error { sum += r.Rank.Rank * int64(r.Line); return nil }); err != nil ||
		sum != 4+2*5+3*6 {
		t.Errorf("%d, %v", sum, err)
	}
	enough := errors.New("enough")
	if err := Each(numbers, path, func(r *Record) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a visit's error: %v", err)
	}
	if err := Each(numbers, path+"x", nil); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "numbers trace") ||
		!strings.Contains(err.Error(), path+"x") {
		t.Errorf("no file: %v", err)
	}
	if err := Each(numbers, filepath.Dir(path), nil); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("a folder: %v", err)
	}
	if err := os.WriteFile(path, []byte("4\nx\n5 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := path + ":2:1: n is \"x\", expected a whole number, 0 or more\n" + path + ":3:3: the line has 2 fields, expected 1"
	if err := Each(numbers, path, func(*Record) error { return nil }); err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
}

func TestStem(t *testing.T) {
	for file, want := range map[string]string{"a/b/qps.csv.gz": "qps", "qps": "qps", "x.y/z_anon.csv": "z_anon"} {
		if got := Stem(file); got != want {
			t.Errorf("%s: %s", file, got)
		}
	}
}
