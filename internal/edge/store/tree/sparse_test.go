package tree

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestHolesStayHoles: a file that is mostly holes takes little of an archive, and has its holes again once it is unpacked.
func TestHolesStayHoles(t *testing.T) {
	const size = 3 << 30
	dir := t.TempDir()
	words := map[int64]string{0: "begin", 1 << 30: "middle", 1<<30 + 4096: "beside", size - 3: "end"}
	f, err := os.Create(filepath.Join(dir, "sparse\xe9"))
	if err != nil {
		t.Fatal(err)
	}
	for at, word := range words {
		if _, err := f.WriteAt([]byte(word), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, length := range map[string]int64{"empty": 1 << 30, "tail": 1 << 20} { // one without any part, one that ends with a hole
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o640); err != nil {
			t.Fatal(err)
		}
		if name == "tail" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Truncate(filepath.Join(dir, name), length); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close() }()
	if tr.Size() > 2<<20 {
		t.Skipf("the archive has %d bytes: the file system of %s keeps no holes", tr.Size(), dir)
	}
	archive, err := io.ReadAll(io.NewSectionReader(tr, 0, tr.Size()))
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "out")
	if _, n, err := Restore(bytes.NewReader(archive), into, Limits{Bytes: 8 << 30, Entries: 10}); err != nil || n != size+1<<30+1<<20 {
		t.Fatalf("%d bytes, %v, want all with their holes", n, err)
	}
	for name, length := range map[string]int64{"sparse\xe9": size, "empty": 1 << 30, "tail": 1 << 20} {
		info, err := os.Stat(filepath.Join(into, name))
		if err != nil {
			t.Fatal(err)
		}
		if disk := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != length || disk > 1<<20 {
			t.Errorf("%q has %d bytes, %d on the disk, want %d and few", name, info.Size(), disk, length)
		}
	}
	g, err := os.Open(filepath.Join(into, "sparse\xe9"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	for at, word := range words {
		got := make([]byte, len(word))
		if _, err := g.ReadAt(got, at); err != nil || string(got) != word {
			t.Errorf("at %d: %q, %v, want %q", at, got, err, word)
		}
	}
	if _, _, err := Restore(bytes.NewReader(archive), into+"2", Limits{Bytes: 1 << 30, Entries: 10}); err == nil {
		t.Error("what is larger than the limit by its holes was unpacked")
	}
}
