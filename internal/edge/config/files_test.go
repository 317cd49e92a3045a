package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/strict"
)

var update = flag.Bool("update", false, "write what the reader says into the first lines of testdata/*.bad.yml")

// TestGoodFiles: every good file is read, and again from what RenderJob makes of it.
func TestGoodFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.good.yml")
	if len(files) < 4 {
		t.Fatalf("found %d good files", len(files))
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := ParseJobs(f, data)
		if err != nil {
			t.Errorf("%v", err)
		}
		for _, j := range jobs {
			text, err := RenderJob(j.Spec, j.Workdir)
			if err != nil {
				t.Fatal(err)
			}
			spec, workdir, err := ParseJob("rendered", text)
			if err != nil {
				t.Fatalf("%s: %v in\n%s", f, err, text)
			}
			if !reflect.DeepEqual(spec, j.Spec) || workdir != j.Workdir {
				t.Errorf("%s: rendered as\n%s\nread back as %+v, want %+v", f, text, spec, j.Spec)
			}
		}
	}
}

// TestBadFiles: every bad file has one mistake. Its first lines are comments that begin with "# want" and hold the
// message, which names the place counted without them.
func TestBadFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.bad.yml")
	if len(files) < 60 {
		t.Fatalf("found %d bad files", len(files))
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		body, want := string(data), ""
		for strings.HasPrefix(body, "# want ") {
			line, rest, _ := strings.Cut(body, "\n")
			body, want = rest, want+strings.TrimPrefix(line, "# want ")+"\n"
		}
		if strings.Contains(f, ".daemon.") {
			_, err = ParseDaemon("f", []byte(body))
		} else {
			_, err = ParseJobs("f", []byte(body))
		}
		var all *strict.Problems
		if !errors.As(err, &all) || errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: error %v of kind %s, want the problems, invalid", f, err, errkind.Of(err))
			continue
		}
		if got := err.Error() + "\n"; got != want {
			if *update {
				head := "# want " + strings.ReplaceAll(err.Error(), "\n", "\n# want ") + "\n"
				if err := os.WriteFile(f, []byte(head+body), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			t.Errorf("%s:\ngot  %swant %s", f, got, want)
		}
	}
}
