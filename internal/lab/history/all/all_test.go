package all

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/history"
)

// TestRead: files of one cluster are read together, each by what is in it, whatever its name.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	jobs := write("a.csv", "JobID|Start|End|AllocTRES|NodeList|State\n1|2026-11-28T00:01:00|2026-11-28T00:02:00|gres/gpu=1|n1|COMPLETED\n"+
		"2|2026-11-28T00:03:00|2026-11-28T00:04:00|gres/gpu=1|n1|COMPLETED\n")
	nodes := write("b.swf", "NODELIST GRES\nn1 gpu:4\nn2 gpu:4\n")
	for _, paths := range [][]string{{jobs, nodes}, {nodes, jobs}} {
		h, err := Read(history.Options{}, paths...)
		if err != nil || len(h.Runs) != 2 || len(h.Devices) != 8 {
			t.Errorf("%v, %+v", err, h)
		}
	}
	_, err := Read(history.Options{}, jobs, write("c", "what is this?\n"), filepath.Join(dir, "gone"))
	if err == nil || !strings.Contains(err.Error(), "c: this is no log that is known") || !strings.Contains(err.Error(), "\n  slurm: ") ||
		!strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
	if _, err = Read(history.Options{}, filepath.Join(dir, "gone")); errkind.Of(err) != errkind.NotFound {
		t.Error(err)
	}
	for name, text := range map[string][2]string{
		"empty":      {"", "empty: there is nothing in it"},
		"cut.gz":     {"\x1f\x8b\x08", "cut.gz: there is nothing in it"},
		"sacct.txt":  {"7|7|u|a|p|COMPLETED|1790035200|1790035200|1790035300|gres/gpu=1|n1\n", "without their header: dump it again"},
		"sacct2.txt": {strings.ReplaceAll("7.batch|7.batch||a|p|COMPLETED|2026-09-22T00:00:00\n", "|", "\x1f"), "without their header"},
	} {
		if _, err = Read(history.Options{}, write(name, text[0])); errkind.Of(err) != errkind.Invalid ||
			!strings.Contains(err.Error(), text[1]) {
			t.Errorf("%s: %v; want %q", name, err, text[1])
		}
	}
	swf := write("x.swf", "1 0 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1\n")
	if _, err = Read(history.Options{}, jobs, swf); err == nil || !strings.Contains(err.Error(), "a.csv (slurm) and ") ||
		!strings.Contains(err.Error(), "x.swf (swf) are of several clusters") {
		t.Error(err)
	}
}

// TestPlacesNameFilesAlone: an answer is the same wherever its files lie, and shows no folder of the machine.
func TestPlacesNameFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.swf")
	text := "1 0 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1\n2 60 0 -1 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Read(history.Options{}, path)
	if err != nil || len(h.Oddities) != 1 || !slices.Equal(h.Oddities[0].Places, []string{"x.swf:2"}) {
		t.Errorf("%v, %+v", err, h)
	}
}

// TestAPipeIsReadWhole: finding out what a file is takes nothing away from it.
func TestAPipeIsReadWhole(t *testing.T) {
	const runs = 4000 // more than is looked at
	var text strings.Builder
	for i := range runs {
		fmt.Fprintf(&text, "%d %d 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1\n", i+1, 60*i)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = io.WriteString(w, text.String()) // who reads too little is found out below
		_ = w.Close()
	}()
	h, err := Read(history.Options{}, fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil || len(h.Runs) != runs {
		t.Errorf("%v, %d of %d runs", err, len(h.Runs), runs)
	}
}

// TestFormats: each has a name of its own and a line for people.
func TestFormats(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Formats() {
		if f.Name == "" || seen[f.Name] || f.Doc == "" || strings.Contains(f.Doc, "\n") {
			t.Errorf("%+v", f)
		}
		seen[f.Name] = true
		if f.Is(nil, "") {
			t.Errorf("%s: nothing is of it", f.Name)
		}
	}
}
