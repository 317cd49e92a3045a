package store

import (
	"bytes"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

func TestFoldersTellJobsApart(t *testing.T) {
	seen := map[string]job.ID{}
	for _, j := range []job.ID{"a", "A", "a.b", "a-b", ".", "..", "", "a/b", "=a", "=61", "-a", ".a", "ü", "a\x00b",
		job.ID(bytes.Repeat([]byte("x"), 300)), job.ID(bytes.Repeat([]byte("x"), 301))} {
		f := Folder(j)
		if other, ok := seen[f]; ok {
			t.Errorf("%q and %q share the folder %q", j, other, f)
		}
		seen[f] = j
		if filepath.Base(f) != f || f == "." || f == ".." || len(f) > 255 {
			t.Errorf("job %q has the folder %q", j, f)
		}
		if back, ok := JobOf(f); ok && back != j {
			t.Errorf("folder %q of %q is read as %q", f, j, back)
		}
	}
}
