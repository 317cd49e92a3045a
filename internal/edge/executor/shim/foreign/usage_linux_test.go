package foreign

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(root, strconv.Itoa(i)), make([]byte, 10_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sparse, err := os.Create(filepath.Join(root, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err = sparse.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	if err = sparse.Close(); err != nil {
		t.Fatal(err)
	}
	if err = os.Symlink("/", filepath.Join(root, "link")); err != nil { // not followed
		t.Fatal(err)
	}
	var u Usage
	u.Add(root, Usage{})
	if u.Files != 22 || u.Bytes < 200_000 || u.Bytes > 1<<20 {
		t.Errorf("%+v, want 22 files and about 200 kB of disk: what is sparse takes none", u)
	}
	was := u
	if u.Add(filepath.Join(root, "gone"), Usage{Files: 1, Bytes: 1}); u != was {
		t.Errorf("%+v for a tree that is not there, had %+v", u, was)
	}
	for _, c := range []struct {
		most Usage
		over bool
	}{{Usage{}, false}, {Usage{Files: 22}, false}, {Usage{Files: 21}, true}, {Usage{Bytes: u.Bytes}, false},
		{Usage{Bytes: u.Bytes - 1, Files: 22}, true}} {
		var got Usage
		if got.Add(root, c.most); got.Over(c.most) != c.over {
			t.Errorf("within %+v: %+v, over %v, want %v", c.most, got, got.Over(c.most), c.over)
		}
	}
	deep := filepath.Join(t.TempDir(), strings.Repeat("d/", MaxDepth+5))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	var hidden Usage
	top, _, _ := strings.Cut(deep, "/d/")
	if hidden.Add(top, Usage{Bytes: 1 << 40}); !hidden.Over(Usage{Bytes: 1 << 40}) {
		t.Errorf("%+v: what can't be looked into is a way around the bound", hidden)
	}
}
