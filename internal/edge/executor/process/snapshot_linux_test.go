package process

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// Whatever a tar holds, nothing is written beside the directory it is unpacked into.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"a", "../a", "a/../../b", "/a", "a/b/c", ".", ".."} {
		header := make([]byte, 1536)
		copy(header, name)
		copy(header[257:], "ustar\x0000")
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		_, _ = z.Write(raw)
		_ = z.Close()
		outer := t.TempDir()
		inner := filepath.Join(outer, "in")
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(inner)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		_, _, _ = unpack(bytes.NewReader(buf.Bytes()), root, 1<<16, nil)
		if entries, err := os.ReadDir(outer); err != nil || len(entries) != 1 {
			t.Errorf("beside the directory lies %v, %v", entries, err)
		}
	})
}

func TestFoldersTellJobsApart(t *testing.T) {
	seen := map[string]job.ID{}
	for _, j := range []job.ID{"a", "A", "a.b", "a-b", ".", "..", "", "a/b", "=a", "=61", "-a", ".a", "ü", "a\x00b", job.ID(bytes.Repeat([]byte("x"), 300)), job.ID(bytes.Repeat([]byte("x"), 301))} {
		f := folder(j)
		if other, ok := seen[f]; ok {
			t.Errorf("%q and %q share the folder %q", j, other, f)
		}
		seen[f] = j
		if filepath.Base(f) != f || f == "." || f == ".." || len(f) > 255 {
			t.Errorf("job %q has the folder %q", j, f)
		}
		if back, ok := named(f); ok && back != j {
			t.Errorf("folder %q of %q is read as %q", f, j, back)
		}
	}
}
